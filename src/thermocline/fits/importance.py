"""Importance samples, and a Gaussian mixture drawn to the target by them: population Monte Carlo (Cappé et al. 2008).

Each round draws from the mixture, weights the draws for the target, and fits the mixture to them, which lowers the
divergence from the target to the mixture: it covers modes where variational fits choose one.
"""

from typing import Any, NamedTuple

import numpy as np

from thermocline.bases import Mixture
from thermocline.estimators.resampling import systematic_resample
from thermocline.evaluator import Evaluator
from thermocline.fits.expectation_maximisation import em_fit

NUM_DRAWS = 4096
MOST_ROUNDS = 10
LEAST_SHARE = 0.02  # of draws that must be effective for a round to be learned from
NUM_STEPS = 20  # of expectation maximisation
STRAYED = 16.0  # squared deviations a dimension, of both the old fit and the new: so far off lies another mode
LEAST_WEIGHT = 1e-3  # of a component, so that a mode once known goes on being looked at
GAIN = 1.02  # of the effective share that makes another round worth it


class ImportanceSample(NamedTuple):
    """Draws of a mixture, ravelled, with log weights for the target relative to it and the target's log density."""

    position: np.ndarray
    log_weight: np.ndarray
    log_target: np.ndarray

    def part(self, rows: slice) -> "ImportanceSample":
        """Some of the draws."""
        return ImportanceSample(*(leaf[rows] for leaf in self))

    @property
    def log_evidence(self) -> float:
        """Importance sampling's estimate."""
        return float(np.logaddexp.reduce(self.log_weight) - np.log(self.log_weight.size))

    @property
    def effective_share(self) -> float:
        """Kish's effective number of weights, as a share of the draws; none where all are off the support."""
        if not self.log_weight.max() > -np.inf:
            return 0.0
        weight = np.exp(self.log_weight - self.log_weight.max())
        return float(weight.sum() ** 2 / np.sum(weight**2) / weight.size)


def draw_importance(
    generator: np.random.Generator, evaluate: Evaluator, mixture: Any, *, num_draws: int = NUM_DRAWS
) -> ImportanceSample:
    """Fresh draws of the mixture, weighted for the target; off its support, or where it is NaN, they weigh nothing."""
    positions = mixture.sample_rows(generator, num_draws)
    log_target = evaluate.values(positions)
    return ImportanceSample(positions, log_target - mixture.log_density_of_rows(positions), log_target)


def adapt_by_importance(
    generator: np.random.Generator, evaluate: Evaluator, mixture: Mixture
) -> tuple[Mixture, ImportanceSample]:
    """The best mixture of a few rounds, and its own draws.

    A mixture that covers the target poorly is left alone: its few heavy draws would pull it onto themselves. For
    the same reason a round that finds less mass is no gain, however even its weights.
    """
    best, best_sample = mixture, draw_importance(generator, evaluate, mixture)
    num_rounds = 1
    while num_rounds < MOST_ROUNDS and best_sample.effective_share > LEAST_SHARE:
        current = em_update(best, best_sample.position, best_sample.log_weight)
        sample = draw_importance(generator, evaluate, current)
        num_rounds += 1
        if not is_better(sample, best_sample):
            break
        best, best_sample = current, sample
    return best, best_sample


def is_better(sample: ImportanceSample, than: ImportanceSample) -> bool:
    """More even weights, and no mass lost."""
    return has_lost_no_mass(sample, than) and sample.effective_share > GAIN * than.effective_share


def has_lost_no_mass(sample: ImportanceSample, than: ImportanceSample) -> bool:
    """Whether it finds as much as another does, but for what chance can do."""
    chance = np.hypot(*(1 / np.sqrt(p.effective_share * p.log_weight.size) for p in (sample, than)))
    return bool(than.log_evidence - sample.log_evidence < 2 * chance)


def em_update(mixture: Mixture, positions: np.ndarray, log_weight: np.ndarray) -> Mixture:
    """The mixture after expectation maximisation on weighted draws; a mode once known goes on being looked at.

    Whatever their number, as many are resampled as an importance sample has.
    """
    positions = positions[systematic_resample(log_weight, NUM_DRAWS, 0)]
    fitted = em_fit(mixture, positions, np.ones(len(positions)), most_steps=NUM_STEPS).mixture
    is_padding = np.isneginf(mixture.log_weights)
    log_weights = np.where(is_padding, -np.inf, np.maximum(fitted.log_weights, np.log(LEAST_WEIGHT)))
    farthest = STRAYED * positions.shape[1]
    has_strayed = (_distance(mixture, fitted) > farthest) & (_distance(fitted, mixture) > farthest)
    pairs = zip(mixture.each(), fitted.each(), has_strayed, strict=True)
    components = [(old if strayed else new).prepared() for old, new, strayed in pairs]
    return Mixture.stacked(components, log_weights - np.logaddexp.reduce(log_weights))


def _distance(mixture: Mixture, other: Mixture) -> np.ndarray:
    """Squared distance of each component's mean from its counterpart's, in its own deviations."""
    offset = other.centres() - mixture.centres()
    white = [base.prepared().whitening @ offset[k] for k, base in enumerate(mixture.each())]
    return np.sum(np.square(white), axis=1)
