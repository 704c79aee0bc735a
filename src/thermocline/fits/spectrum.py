r"""Curvature in more dimensions than matrices are affordable in: its diagonal, and the directions that are wider.

In units of the deviations on its diagonal minus the Hessian has a diagonal of ones. Where coordinates are independent
it is one; a few directions in which the target is much wider than these units say are eigenvectors of small
eigenvalues, which Lanczos's steps find from products alone: differences of two gradients each.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from thermocline.bases.gaussian import Gaussian, LowRankGaussian
from thermocline.evaluator import RowDensity
from thermocline.fits.curvature import FLAT, NUM_REFINEMENTS, OFF, STEP
from thermocline.support.flat import unravelled

AT_ONCE = 128  # coordinates along which differences are taken in one batch
NUM_STEPS = 96  # of Lanczos
REACH = 0.1  # of the differences for these, in units of the deviations, over all coordinates together
CONVERGED = 0.3  # residual of an eigenvector, relative to its eigenvalue
WIDER = 1.1  # variance along a direction, relative to what most have, from which it is worth a column
ENDED = 1e-6  # of what a step of Lanczos adds, where nothing is left


class Spectrum(NamedTuple):
    """Deviations of independent coordinates, and columns F of what some directions are wider: diag(d²) + F Fᵀ."""

    deviations: np.ndarray
    factor: np.ndarray  # (dimension, direction), of no columns where no direction is wider
    log_volume: float  # what Laplace's formula adds to the log density

    def base(self, location: np.ndarray, like: object) -> Gaussian | LowRankGaussian:
        """A Gaussian about a place, as a base on PyTrees like this one."""
        mean = unravelled(location, like)
        if not self.factor.shape[1]:
            return Gaussian(mean, self.deviations).prepared()
        return LowRankGaussian(mean, self.deviations, self.factor)


def spectrum_at(generator: np.random.Generator, evaluate: RowDensity, location: np.ndarray) -> Spectrum:
    """The curvature about a place.

    Directions in which it is narrower than most stay as wide as the others: a base that is too wide there loses draws,
    one that is too narrow elsewhere would lose the answer.
    """
    own = deviations_at(evaluate, location)
    product = whitened_product(evaluate, location, own)
    values, vectors = lanczos(product, generator.normal(size=own.size), NUM_STEPS)
    values = np.maximum(np.abs(values), FLAT)
    rest = own.size - len(values)  # of which the trace, the dimension, tells what they are on average
    most = (own.size - values.sum()) / rest if rest > own.size / 2 else np.median(values)
    most = max(float(most), FLAT)
    wide = values * WIDER < most
    columns = vectors[:, wide] * np.sqrt(most / values[wide] - 1)
    deviations = own / np.sqrt(most)
    log_volume = np.sum(np.log(deviations)) - 0.5 * np.sum(np.log(values / most)) + 0.5 * own.size * np.log(2 * np.pi)
    return Spectrum(deviations, deviations[:, None] * columns, float(log_volume))


def deviations_at(evaluate: RowDensity, location: np.ndarray) -> np.ndarray:
    """1/√(minus the second derivative) along each coordinate, the others held.

    A step is tried again until it is about a hundredth of the deviation that it finds: beyond an edge a shorter one,
    where nothing bends a longer one. A coordinate along which nothing ever bends has the largest of the others.
    """
    found, steps = np.full(location.size, np.inf), np.full(location.size, STEP)
    left = np.arange(location.size)
    for index in range(NUM_REFINEMENTS):
        groups = [left[first : first + AT_ONCE] for first in range(0, len(left), AT_ONCE)]
        falls = np.concatenate([_falls(evaluate, location, group, steps[group]) for group in groups])
        bends = np.isfinite(falls) & (falls != 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found[left] = np.where(bends, 1 / np.sqrt(np.abs(falls)), np.inf)
        wanted, size = STEP * found[left], steps[left]
        is_settled = bends & (size < OFF * wanted) & (size > wanted / OFF)
        damped = np.sqrt(size * wanted) if index > NUM_REFINEMENTS // 2 else wanted
        steps[left] = np.where(bends, damped, size * np.where(np.isfinite(falls), 1e3, 1e-2))
        left = left[~is_settled]
        if not len(left):
            break
    known = found[np.isfinite(found)]
    return np.where(np.isfinite(found), found, known.max(initial=0.0) or 1.0)


def _falls(evaluate: RowDensity, location: np.ndarray, which: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Minus the second derivative along some coordinates; NaN beyond an edge."""
    rows, place = np.tile(location, (2 * len(which), 1)), np.arange(len(which))
    ahead, behind = place, len(which) + place
    rows[ahead, which] += steps
    rows[behind, which] -= steps
    values, gradients = evaluate(rows)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        fall = gradients[behind, which] - gradients[ahead, which]
        fall = fall / (rows[ahead, which] - rows[behind, which])  # as rounded
    return np.where(np.isfinite(values[ahead]) & np.isfinite(values[behind]), fall, np.nan)


def whitened_product(
    evaluate: RowDensity, location: np.ndarray, deviations: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Minus the Hessian, in units of these deviations, times a direction of length one."""

    def product(direction: np.ndarray) -> np.ndarray:
        step = REACH * deviations * direction
        _, (ahead, behind) = evaluate(np.stack([location + step, location - step]))
        return deviations * (behind - ahead) / (2 * REACH)

    return product


def lanczos(
    product: Callable[[np.ndarray], np.ndarray], start: np.ndarray, num_steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of a symmetric matrix that have converged, and their vectors in columns.

    Every step is made orthogonal to all before it, twice: without that rounding finds the outermost again and again.
    """
    basis, diagonal, beside = [start / np.linalg.norm(start)], [], [0.0]
    while len(diagonal) < num_steps:
        image = product(basis[-1])
        if not np.all(np.isfinite(image)):  # an edge, or no curvature at all
            return np.zeros(0), np.zeros((start.size, 0))
        diagonal.append(float(image @ basis[-1]))
        for _ in range(2):
            known = np.array(basis)
            image = image - known.T @ (known @ image)
        beside.append(float(np.linalg.norm(image)))
        if beside[-1] < ENDED * np.abs(diagonal).max():
            break
        basis.append(image / beside[-1])
    size = len(diagonal)
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside[1:size], 1) + np.diag(beside[1:size], -1))
    is_known = beside[size] * np.abs(vectors[-1]) < CONVERGED * np.abs(values)
    return values[is_known], np.array(basis[:size]).T @ vectors[:, is_known]
