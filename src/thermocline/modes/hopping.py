"""Optima of a target that has hundreds: hops from those known to others, as in differential evolution.

Random starts find modes by the size of their basins, which says little of their mass. Hops from high optima, by
differences of optima and so on the scale of the target, find the heavy ones (basin hopping: Wales and Doye 1997).
"""

from typing import Any, NamedTuple

import numpy as np

from thermocline.bases import TiedMixture
from thermocline.evaluator import Evaluator
from thermocline.fits.curvature import curvature_at
from thermocline.fits.lbfgs import Optima

MOST_HOPS = 128
NUM_STEPS = 24  # of an ascent, which begins near an optimum
MOST_COMPONENTS = 2048  # of a base
MOST_OPTIMA = 4096
WINDOW = 8  # hops over which the gain of mass is looked at
NOISE = 0.3  # of a hop, in the spread of the optima
NUM_BREEDING = 256  # optima, in effect, from which hops are made
SAME = 0.05  # deviations between ends that are one optimum
SLOPE = 1e-2  # of the log density, in a coordinate's spread, at an end that has arrived
LEAST_EIGENVALUE = 1e-10  # of correlations
GROUP = 1024  # hops at once
NUM_CURVED = 64  # of the heaviest optima, whose curvature gives the shared covariance


class ManyOptima(NamedTuple):
    """Optima, best first, and the covariance they share."""

    optima: Optima
    covariance: np.ndarray
    num_hops: int

    def base(self, like: Any) -> TiedMixture:
        """A Gaussian about every optimum, and one over all, from which chains find optima that are not listed.

        With one covariance for all, the masses of optima are as their heights.
        """
        best = self.highest(MOST_COMPONENTS)
        return TiedMixture.of(best.position, best.log_density, self.covariance, like, room=MOST_COMPONENTS)

    def highest(self, number: int) -> Optima:
        return self.optima.chosen(np.arange(min(number, len(self.optima.position))))

    def joined_by(self, ends: Optima) -> tuple[float, "ManyOptima"]:
        """With further ends of ascents, and the share of these that were not known."""
        whitening = np.linalg.inv(np.linalg.cholesky(self.covariance))
        distance, _ = _tree(self.optima.position @ whitening.T).query(ends.position @ whitening.T)
        return float(np.mean(distance > SAME)), self._replace(
            optima=distinct(merged(self.optima, arrived(ends)), self.covariance)
        )


def hop(evaluate: Evaluator, known: Optima, seed: int, least_gain: float) -> ManyOptima:
    """Hop until the last few hops have added less than `least_gain` to the log of the mass of all optima."""
    generator = np.random.default_rng([seed, 0x40B5])
    order = np.argsort(-known.log_density)
    covariance = shared_covariance(evaluate, known.chosen(order[:NUM_CURVED]))
    optima, masses, num_hops = distinct(known, covariance), [], 0
    for num_hops in range(1, MOST_HOPS + 1):
        starts = hopped(optima, generator)
        ends = ascend(evaluate, starts, covariance)
        optima = distinct(merged(optima, arrived(ends)), covariance)
        masses.append(np.logaddexp.reduce(optima.log_density))
        if num_hops > WINDOW and masses[-1] - masses[-1 - WINDOW] < least_gain:
            break
    covariance = shared_covariance(evaluate, optima.chosen(np.arange(min(NUM_CURVED, len(optima.position)))))
    return ManyOptima(distinct(optima, covariance), covariance, num_hops)


def ascend(evaluate: Evaluator, starts: np.ndarray, covariance: np.ndarray) -> Optima:
    """Newton's steps with the shared covariance for the inverse of the curvature, shortened where they would go down.

    Near an optimum of about that curvature they arrive as soon as L-BFGS does, at a tenth of its overhead.
    """
    position, length = starts, np.ones(len(starts))
    value, gradient = evaluate(position)
    for _ in range(NUM_STEPS):
        tried = position + length[:, None] * gradient @ covariance
        new_value, new_gradient = evaluate(tried)
        better = new_value > value
        position = np.where(better[:, None], tried, position)
        value, gradient = np.where(better, new_value, value), np.where(better[:, None], new_gradient, gradient)
        length = np.where(better, np.minimum(1.5 * length, 1.5), 0.4 * length)
    return Optima(position, value, gradient, np.zeros(len(starts), int))


def hopped(optima: Optima, generator: np.random.Generator) -> np.ndarray:
    """From an optimum along part of the way between two others, and a little aside; the better ones more often."""
    positions = optima.position
    first, second, third = generator.choice(len(positions), p=chances(optima.log_density), size=(3, GROUP))
    along = generator.uniform(0, 1, (GROUP, 1)) * (positions[second] - positions[third])
    aside = NOISE * generator.uniform(0, 1, (GROUP, 1)) * positions.std(axis=0)
    return positions[first] + along + aside * generator.normal(size=along.shape)


def chances(log_density: np.ndarray) -> np.ndarray:
    """Heights tempered until about `NUM_BREEDING` optima have a part in the next hop."""
    relative = log_density - log_density.max()
    weights = np.exp(np.geomspace(1, 1e-3, 31)[:, None] * relative)
    is_enough = weights.sum(axis=1) ** 2 >= NUM_BREEDING * np.sum(weights**2, axis=1)
    weight = weights[np.argmax(is_enough) if is_enough.any() else -1]
    return weight / weight.sum()


def arrived(ends: Optima) -> Optima:
    """Those of next to no slope."""
    spread = ends.position.std(axis=0)
    return ends.chosen(np.flatnonzero(np.abs(ends.gradient * spread).max(axis=1) < SLOPE))  # a NaN is not less


def distinct(optima: Optima, covariance: np.ndarray) -> Optima:
    """One of every heap of ends, best first, and no more than there is room for."""
    optima = optima.chosen(np.argsort(-optima.log_density, kind="stable"))
    white = np.linalg.solve(np.linalg.cholesky(covariance), optima.position.T).T
    first = np.sort(np.unique(np.round(white / SAME), axis=0, return_index=True)[1])  # most of the repeats
    optima, white = optima.chosen(first), white[first]
    pairs = _tree(white).query_pairs(SAME, output_type="ndarray")
    repeats = np.unique(pairs.max(axis=1)) if len(pairs) else np.zeros(0, int)
    return optima.chosen(np.setdiff1d(np.arange(len(white)), repeats)[:MOST_OPTIMA])


def shared_covariance(evaluate: Evaluator, optima: Optima) -> np.ndarray:
    """Laplace's covariances of some optima, weighted by their heights."""
    curvature = curvature_at(evaluate, optima.position)
    usable = curvature.is_usable & (np.nan_to_num(curvature.values[:, 0]) > 0)
    weight = np.where(usable, np.exp(optima.log_density - optima.log_density.max()), 0.0)
    if not weight.sum() > 0:
        return np.diag(optima.position.var(axis=0) + 1e-12)
    chosen = np.flatnonzero(weight > 0)
    total = np.einsum("m,mij->ij", weight[chosen] / weight.sum(), curvature.chosen(chosen).covariances())
    return conditioned(total)


def _tree(positions: np.ndarray) -> Any:
    from scipy.spatial import KDTree  # slow to import

    return KDTree(positions)


def merged(*parts: Optima) -> Optima:
    """All rows together, without their paths."""
    position, log_density, gradient, ending = (
        np.concatenate(leaves) for leaves in zip(*(part[:4] for part in parts), strict=True)
    )
    return Optima(position, log_density, gradient, ending)


def conditioned(covariance: np.ndarray) -> np.ndarray:
    """A covariance whose correlations have no eigenvalue too small for floating point; others as they are."""
    deviations = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(deviations, deviations))
    if values[0] > LEAST_EIGENVALUE:
        return covariance
    correlations = (vectors * np.maximum(values, LEAST_EIGENVALUE)) @ vectors.T
    return correlations * np.outer(deviations, deviations)
