"""A base for a target of more modes than one can list: Gaussians of one covariance about all that hops find."""


import numpy as np

from thermocline.auto.design import first_mixture
from thermocline.auto.pilots import LENGTHS, join_chains
from thermocline.bases import BaseFit
from thermocline.engine.explore import explore, resampled
from thermocline.engine.progress import Part, Reporter
from thermocline.evaluator import Evaluator
from thermocline.fits.lbfgs import Optima, maximise
from thermocline.fits.pool import Pool
from thermocline.methods import GibbsTempering
from thermocline.modes.find import MOST_MODES, Search
from thermocline.modes.hopping import hop
from thermocline.modes.local import local_modes
from thermocline.modes.peaks import admitted
from thermocline.support.precision import cast

MOST_PILOTS = 2  # each is dear here
NUM_ASCENTS = 1024  # from a pilot's draws
NUM_DRAWS = 4096  # of a base, to weigh it
STREAM = 0x3A9F


def fit_many_modes(
    evaluate: Evaluator, search: Search, seed: int, target_error: float, reporter: Reporter
) -> BaseFit:
    """Hops from the optima known, then pilots while their draws lie at optima that are not; the highest are listed."""
    reporter.phase("hopping between modes", None)
    like, generator = evaluate.target.initial_position, np.random.default_rng([seed, STREAM])
    optima = hop(evaluate, optima_of(search), seed, target_error / 20)
    notes = [f"More than {MOST_MODES} modes; {optima.num_hops} hops found {len(optima.optima.position)} optima."]
    share_new, pool = 1.0, Pool.empty(evaluate.dimension)
    for number in range(MOST_PILOTS):
        if share_new < target_error / 5:
            break
        base = optima.base(like)
        pool, _ = pool.drawn(generator, evaluate, base, NUM_DRAWS)
        start = seed, evaluate.target, cast(base, evaluate.precision), pool.log_evidence
        part, options = Part(f"pilot {number + 1}", reporter), {"runner": evaluate.runner, "number": number + 1}
        explored = explore(*start, GibbsTempering(), LENGTHS, part, **options)
        pool = join_chains(pool, explored)
        share_new, optima = optima.joined_by(maximise(evaluate, resampled(explored, seed, NUM_ASCENTS), confirms=False))
        evaluate.count(explored.outcome.num_gradients)
        notes.append(f"A pilot: log Z about {pool.log_evidence:.2f}, {share_new:.1%} of its draws at unknown optima.")
    search.peaks, _ = admitted(evaluate, optima.highest(MOST_MODES), [], "hop", MOST_MODES)
    search.counts, search.group = [1] * len(search.peaks), list(range(len(search.peaks)))
    modes = local_modes(search.found(), first_mixture(search.peaks))
    return BaseFit(optima.base(like), pool.log_evidence, evaluate.num_rows, modes=modes, notes=tuple(notes))


def optima_of(search: Search) -> Optima:
    """The peaks of a search, as hops begin with them."""
    positions = np.array([peak.location for peak in search.peaks])
    heights = np.array([peak.log_density for peak in search.peaks])
    return Optima(positions, heights, np.zeros_like(positions), np.zeros(len(heights), int))
