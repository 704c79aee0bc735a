"""After a run: every mode that the search or the chains have found, with its mass by importance sampling."""

import numpy as np

from thermocline.auto.black_box import searched
from thermocline.auto.design import first_mixture
from thermocline.auto.many_dimensions import MOST_DIMENSIONS
from thermocline.bases import BaseFit
from thermocline.engine.explore import Exploration, resampled
from thermocline.engine.progress import Reporter
from thermocline.evaluator import Evaluator
from thermocline.fits.student_mixture import StudentMixture, em_fit_student
from thermocline.modes.find import Found, Search
from thermocline.modes.local import LocalModes, local_modes
from thermocline.modes.peaks import Peak, peak_of
from thermocline.modes.table import mode_masses
from thermocline.modes.tail_index import tail_index
from thermocline.records import ModeTable

NUM_STARTS = 16  # draws of a given base from which ascents start
NUM_ASCENTS = 64  # from draws of the chains
NUM_FITTED = 2048  # draws of the chains to which the fits are drawn
NEW_SHARE = 0.05  # of the weight, for each mode that chains have found
NUM_FAR = 1024  # draws from which the tail is looked at
MASSES, AGAIN = 0xCE45, 0xA6A1  # streams of random numbers


def table_of_modes(
    seed: int, evaluate: Evaluator, fit: BaseFit, explored: Exploration, reporter: Reporter
) -> ModeTable | None:
    """What is known of the modes after a run; nothing in too many dimensions for it.

    A base that came without a search for modes gets one here, from the start and from its own draws: that a base was
    given does not mean that it covers the target.
    """
    if evaluate.dimension > MOST_DIMENSIONS:
        return None
    if fit.modes is None:
        rows = explored.base_draws.position[np.isfinite(explored.base_draws.log_ratio)]
        starts = np.concatenate([evaluate.initial_position[None], rows[:NUM_STARTS]])
        search = searched(evaluate, seed, starts, reporter, rows[NUM_STARTS:])
        modes = local_modes(search.found(), first_mixture(search.peaks))
    else:
        modes = fit.modes
    return measured(seed, evaluate, modes, explored, reporter)


def table_of_modes_again(
    seed: int, evaluate: Evaluator, table: ModeTable, explored: Exploration, reporter: Reporter
) -> ModeTable:
    """The table of a run that went on: the modes that were known, and those that its chains have found since."""
    each = table.fits.each()[: len(table.owner)]
    scales = np.stack([np.asarray(base.scale_tril) for base in each])
    degrees = np.array([float(base.degrees_of_freedom) for base in each])
    log_weight = np.asarray(table.fits.log_weights)[: len(each)]
    mixture = StudentMixture(table.fits.centres()[: len(each)], scales, degrees, log_weight)
    peaks = [_peak(table, mixture, i) for i in range(len(table.location))]
    found = Found(peaks, list(table.counts), np.arange(len(peaks)), table.search)
    modes = LocalModes(found, mixture, table.owner)
    return measured(seed, evaluate, modes, explored, reporter)


def measured(
    seed: int, evaluate: Evaluator, modes: LocalModes, explored: Exploration, reporter: Reporter
) -> ModeTable:
    """The modes joined by those that draws of the chains lead to, their fits drawn to the chains, and weighed."""
    search = Search.resumed(evaluate, np.random.default_rng([seed, AGAIN]), reporter, modes.found)
    search.admit(search.ascended(resampled(explored, seed, evaluate.sized(NUM_ASCENTS))), "chains")
    new = [peak for peak in search.peaks if not any(peak is old for old in modes.found.peaks)]
    rows, found = resampled(explored, seed, NUM_FITTED), search.found()
    mixture = em_fit_student(with_modes(modes.mixture, new), rows, np.full(len(rows), 1 / len(rows)))
    known = local_modes(found, mixture)
    pairs = zip(found.peaks, found.mode, strict=True)
    left = [peak for peak, mode in pairs if mode not in known.owner]  # close to others, to which its fit has gone
    known = local_modes(found, with_modes(mixture, left))
    table = mode_masses(np.random.default_rng([seed, MASSES]), evaluate, known)
    return table._replace(tail_index=tail_index(evaluate, rows[: evaluate.sized(NUM_FAR)]))


def with_modes(mixture: StudentMixture, peaks: list[Peak]) -> StudentMixture:
    """With a component for each of some modes."""
    if not peaks:
        return mixture
    return mixture.joined_by(first_mixture(peaks), np.log1p(-((1 - NEW_SHARE) ** len(peaks))))


def _peak(table: ModeTable, mixture: StudentMixture, mode: int) -> Peak:
    """A mode of the table as a peak, of the shape of its heaviest component."""
    own = np.flatnonzero(table.owner == mode)
    scale = mixture.scale[own[np.argmax(mixture.log_weight[own])]] if len(own) else mixture.scale[0]
    return peak_of(table.location[mode], table.log_density[mode], scale, table.found_by[mode])
