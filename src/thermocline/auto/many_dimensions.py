"""A base in more dimensions than matrices are affordable in: Gaussians of independent coordinates and a few directions.

No mode is looked for by looking widely, and no table of modes is made: ascents begin from the start, from draws of the
prior and from modes that the user knows of. Memory and work for the base go with the dimension, not with its square.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from thermocline.bases import BaseFit, Gaussian, LowRankGaussian, Mixture
from thermocline.engine.prepare import MOST_BASE_DRAWS
from thermocline.engine.progress import Reporter
from thermocline.estimators.convergence import kish_share
from thermocline.evaluator import Evaluator
from thermocline.fits.advi import advi
from thermocline.fits.lbfgs import MOST_DIMENSIONS, Ending, Optima, maximise
from thermocline.fits.pool import NEGLIGIBLE
from thermocline.fits.spectrum import Spectrum, deviations_at, spectrum_at
from thermocline.support.budget import BudgetSpentError
from thermocline.support.errors import ThermoclineError
from thermocline.support.flat import unravelled

MOST_ROUNDS = 8  # of ascents, each in the metric of where the best of those before ended
MOST_MODES = 4  # that get a Gaussian
SAME = 0.3  # deviations, and as many times the fourth root of the dimension, between ends that are one optimum
NUM_DRAWS = 512  # to judge a base by
FEWEST_EFFECTIVE = 8  # of them, below which a share is noise and ELBOs decide
STREAM = 0xD1A6  # of random numbers
NOT_LOOKED_FOR = (
    f"In more than {MOST_DIMENSIONS:,} dimensions modes are not looked for, and no table of them is made: no check "
    "says whether one was missed."
)


@dataclass(frozen=True)
class Judged:
    """A base, by its own draws: the share that counts, log Z, and the ELBO."""

    base: Any
    share: float
    log_evidence: float
    elbo: float

    @property
    def rank(self) -> tuple[float, float]:
        """The higher the better: draws that count; where hardly any does, how near they come to it."""
        return (self.share if self.share * NUM_DRAWS > FEWEST_EFFECTIVE else 0.0), self.elbo


def fit_many_dimensions(
    evaluate: Evaluator, starts: np.ndarray, seed: int, target_error: float, reporter: Reporter
) -> BaseFit:
    """By curvature at the optima that ascents reach; where too few of its draws count, also a variational fit."""
    generator, candidates, notes = np.random.default_rng([seed, STREAM]), [], [NOT_LOOKED_FOR]
    reporter.phase("ascending", None)
    try:
        with evaluate.within(evaluate.budget.half()):
            base, number = by_curvature(generator, evaluate, starts)
            notes.append(f"{len(starts)} ascents ended at {number} optim{'um' if number == 1 else 'a'}.")
            candidates += [] if base is None else [judged(generator, evaluate, base)]
            if not candidates or candidates[0].share < 1 / (MOST_BASE_DRAWS * target_error**2):
                reporter.phase("fitting the base", None)
                normal = advi(generator, evaluate, evaluate.initial_position)[0].normal
                like = evaluate.target.initial_position
                base = Gaussian(unravelled(normal.mean, like), normal.scale).prepared()
                candidates.append(judged(generator, evaluate, base))
    except BudgetSpentError as limit:
        notes.append(f"The search was cut short by {limit}.")
    usable = [each for each in candidates if np.isfinite(each.elbo)]
    if not usable:
        raise ThermoclineError(
            f"no base could be fitted in {evaluate.dimension:,} dimensions: neither ascents nor a variational fit from "
            "the initial position led to where the log density is finite; start elsewhere, or give base=."
        )
    best = max(usable, key=lambda each: each.rank)
    share = f"{best.share:.0%}" if best.share >= 0.01 else "less than 1%"
    notes.append(f"The base is {described(best.base)}; {share} of its own draws count.")
    return BaseFit(best.base, best.log_evidence, evaluate.num_rows, notes=tuple(notes))


def by_curvature(
    generator: np.random.Generator, evaluate: Evaluator, starts: np.ndarray
) -> tuple[Any | None, int]:
    """A Gaussian about each of the heaviest optima, weighted by Laplace's formula, and how many optima there are."""
    ends, deviations = ascended(evaluate, starts)
    places = distinct(ends, deviations)
    if not places:
        return None, 0
    spectra = [spectrum_at(generator, evaluate, ends.position[place]) for place in places[:MOST_MODES]]
    pairs = list(zip(places, spectra, strict=False))
    masses = np.array([ends.log_density[place] + spectrum.log_volume for place, spectrum in pairs])
    kept = [pairs[i] for i in np.flatnonzero(masses > masses.max() - NEGLIGIBLE)]
    like, widest = evaluate.target.initial_position, max(spectrum.factor.shape[1] for _, spectrum in kept)
    if len(kept) == 1:
        return kept[0][1].base(ends.position[kept[0][0]], like), len(places)
    each = [_low_rank(ends.position[place], spectrum, max(widest, 1), like) for place, spectrum in kept]
    return Mixture.of(each, masses[masses > masses.max() - NEGLIGIBLE]), len(places)


def _low_rank(location: np.ndarray, spectrum: Spectrum, width: int, like: Any) -> LowRankGaussian:
    """With as many columns as the others of a mixture have."""
    factor = np.zeros((location.size, width))
    factor[:, : spectrum.factor.shape[1]] = spectrum.factor
    return LowRankGaussian(unravelled(location, like), spectrum.deviations, factor)


def ascended(evaluate: Evaluator, starts: np.ndarray) -> tuple[Optima, np.ndarray]:
    """Where ascents end, and the deviations of independent coordinates where the highest did."""
    ends, deviations = maximise(evaluate, starts, confirms=False), np.ones(evaluate.dimension)
    for _ in range(MOST_ROUNDS):
        best = int(np.argmax(np.where(np.isfinite(ends.log_density), ends.log_density, -np.inf)))
        deviations = deviations_at(evaluate, ends.position[best])
        ends = maximise(evaluate, ends.position, root=deviations, confirms=False)
        if np.all(ends.ending != Ending.RAN_OUT):
            break
    return ends, deviations


def distinct(ends: Optima, deviations: np.ndarray) -> list[int]:
    """Ends that are optima of their own, the highest first."""
    found: list[int] = []
    for place in np.argsort(-ends.log_density, kind="stable"):
        distances = np.linalg.norm((ends.position[found] - ends.position[place]) / deviations, axis=1)
        is_usable = ends.ending[place] == Ending.ARRIVED and np.isfinite(ends.log_density[place])
        if is_usable and np.all(distances > SAME * (1 + deviations.size**0.25)):
            found.append(int(place))
    return found


def judged(generator: np.random.Generator, evaluate: Evaluator, base: Any) -> Judged:
    """By fresh draws."""
    rows = base.sample_rows(generator, evaluate.sized(NUM_DRAWS))
    log_weight = evaluate.values(rows) - base.log_density_of_rows(rows)
    log_weight = np.where(np.isfinite(log_weight), log_weight, -np.inf)
    log_evidence = float(np.logaddexp.reduce(log_weight) - np.log(len(log_weight)))
    return Judged(base, kish_share(log_weight), log_evidence, float(np.mean(log_weight)))


def described(base: Any) -> str:
    """In words: of how many Gaussians, and how many directions are wider."""
    each = base.each()[: base.num_components] if isinstance(base, Mixture) else [base]
    number = max(one.factor.shape[1] if isinstance(one, LowRankGaussian) else 0 for one in each)
    wider = f" and {number} direction{'' if number == 1 else 's'} that are wider" if number else ""
    return f"{'a Gaussian' if len(each) == 1 else f'{len(each)} Gaussians'} of independent coordinates{wider}"
