"""Curvature of a log density at some points: central differences of gradients, in units that the target gives itself."""

from typing import NamedTuple

import numpy as np

from thermocline.evaluator import Evaluator

STEP = 0.01  # of a difference, in deviations of its coordinate with the others held
FIRST_STEP = 0.01  # relative to the coordinate or to 1, where nothing is known
OFF = 10.0  # times too long or too short, at which a step is tried again
NUM_REFINEMENTS = 12
MOST_GROWTHS = 4  # thousandfold, of a step along which nothing bends, until that direction is flat
ROUNDING = 64.0  # units in the last place of the gradients, below which a difference is none
FLAT = 1e-8  # curvature, relative to the largest in these units, that counts as none
BENT_UP = 1e-4  # likewise, at which a point is no optimum
DECREMENT = 0.01  # predicted gain, in nats, below which an optimum is one
CURVATURE_BYTES = 2e8  # of the matrices of curvature held at once


class Curvature(NamedTuple):
    """Minus the Hessians at some points, in units of `deviations`: there by eigenvalues and eigenvectors.

    Deviations are of each coordinate with the others held, so that the matrix has a unit diagonal and scales of 1e-6
    and 1e6 meet in it without loss. Eigenvalues ascend; NaN where the curvature is not a number.
    """

    deviations: np.ndarray  # (point, dimension)
    values: np.ndarray  # (point, dimension)
    vectors: np.ndarray  # (point, dimension, dimension)

    def chosen(self, index: np.ndarray) -> "Curvature":
        """Some of the points."""
        return Curvature(*(leaf[index] for leaf in self))

    @property
    def is_usable(self) -> np.ndarray:
        return np.isfinite(self.values).all(axis=1)

    @property
    def bends_down(self) -> np.ndarray:
        """Whether no direction bends up, and some bends down."""
        values = np.where(self.is_usable[:, None], self.values, -1.0)
        return (values > -BENT_UP * values[:, -1:]).all(axis=1) & (values[:, -1] > 0)

    def variances(self) -> np.ndarray:
        """Laplace's, along the eigenvectors and in these units; next to no curvature is given the least that counts.

        A direction that bends up has the variance of one that bends down as much.
        """
        values = np.abs(self.values)
        return 1 / np.maximum(values, FLAT * values.max(axis=1, keepdims=True, initial=0.0))

    def roots(self) -> np.ndarray:
        """Matrices R, in the target's own coordinates, with Laplace's covariance R Rᵀ."""
        return self.deviations[:, :, None] * self.vectors * np.sqrt(self.variances())[:, None]

    def covariances(self) -> np.ndarray:
        """Laplace's, in the target's own coordinates."""
        roots = self.roots()
        return roots @ roots.swapaxes(1, 2)

    def log_volumes(self) -> np.ndarray:
        """Log of the integral of exp(-½ xᵀ C⁻¹ x): what Laplace's formula adds to the log density."""
        return np.sum(np.log(self.deviations) + 0.5 * np.log(2 * np.pi * self.variances()), axis=1)

    def gains(self, gradient: np.ndarray) -> np.ndarray:
        """Predicted gain of Newton's step, in nats: half the squared slope in units of Laplace's deviations."""
        return 0.5 * np.sum((gradient[:, None] @ self.roots()) ** 2, axis=(1, 2))


def curvature_at(evaluate: Evaluator, positions: np.ndarray, *, deviations: np.ndarray | None = None) -> Curvature:
    """The curvature at each row; steps begin at a hundredth of `deviations` (row, dimension), where they are known."""
    number, dimension = positions.shape
    positions = np.asarray(positions, evaluate.precision)
    steps = FIRST_STEP * np.where(positions == 0, 1.0, np.abs(positions))
    if deviations is not None:
        steps = STEP * np.broadcast_to(deviations, positions.shape)
    group = int(max(CURVATURE_BYTES / (8 * dimension**2), 1))
    parts = [
        _decomposed(*_differences(evaluate, positions[begin : begin + group], steps[begin : begin + group]))
        for begin in range(0, number, group)
    ]
    if not parts:
        return Curvature(np.ones((0, dimension)), np.ones((0, dimension)), np.ones((0, dimension, dimension)))
    return Curvature(*(np.concatenate(leaves) for leaves in zip(*parts, strict=True)))


def are_optima(curvature: Curvature, gradient: np.ndarray) -> np.ndarray:
    """Whether Newton's step would gain less than a hundredth of a nat, and the log density bends down.

    Directions of no curvature are let off if they have no slope: a ridge is a continuum of optima. Whatever ran
    off or stopped short is no optimum.
    """
    usable = curvature.is_usable & np.isfinite(gradient).all(axis=1)
    gains = np.full(len(gradient), np.inf)
    gains[usable] = curvature.chosen(usable).gains(gradient[usable])
    return usable & curvature.bends_down & (gains < DECREMENT)


def _differences(evaluate: Evaluator, positions: np.ndarray, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Minus the Hessians, a row by differences along each coordinate, and which coordinates never settled.

    A step is tried again, ten times at most, until it is about a hundredth of the deviation that it finds.
    Beyond an edge it shrinks; where nothing bends it grows, until the coordinate counts as flat.
    """
    number, dimension = positions.shape
    matrices, steps = np.zeros((number, dimension, dimension)), steps.astype(float)
    is_open, num_growths = np.ones((number, dimension), bool), np.zeros((number, dimension), int)
    for _ in range(NUM_REFINEMENTS):
        place = np.nonzero(is_open)
        if not len(place[0]):
            break
        falls, is_finite, bends = _falls(evaluate, positions, *place, steps[place])
        matrices[place] = np.where(bends[:, None], falls, 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            wanted = STEP / np.sqrt(np.abs(falls[np.arange(len(falls)), place[1]]))
        is_settled = bends & (steps[place] < OFF * wanted) & (steps[place] > wanted / OFF)
        num_growths[place] += is_finite & ~bends
        is_open[place] = ~is_settled & (num_growths[place] < MOST_GROWTHS)
        steps[place] = np.where(bends, wanted, steps[place] * np.where(is_finite, 1e3, 1e-2))
    return matrices, is_open


def _falls(
    evaluate: Evaluator, positions: np.ndarray, point: np.ndarray, coordinate: np.ndarray, steps: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Minus the derivative of the gradient along a coordinate, by pairs of rows; whether it is finite; and not zero."""
    which = np.arange(len(point))
    ahead, behind = positions[point], positions[point]
    ahead[which, coordinate] += steps
    behind[which, coordinate] -= steps
    values, gradients = evaluate(np.concatenate([ahead, behind]))
    lengths = ahead[which, coordinate].astype(float) - behind[which, coordinate]  # as rounded
    first, second = np.split(gradients.astype(float), 2)
    is_finite = np.isfinite(values).reshape(2, -1).all(axis=0) & np.isfinite(first + second).all(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        falls = (second - first) / lengths[:, None]
        own, size = np.abs(second - first)[which, coordinate], np.abs(second)[which, coordinate]
    is_finite &= np.isfinite(falls).all(axis=1) | (lengths == 0)
    bends = is_finite & (lengths > 0) & (own > ROUNDING * np.finfo(gradients.dtype).eps * size)
    return falls, is_finite, bends


def _decomposed(matrices: np.ndarray, is_open: np.ndarray) -> Curvature:
    """In units of the deviations on the diagonal; a flat coordinate has the largest of the others."""
    dimension = matrices.shape[1]
    usable = ~is_open.any(axis=1) & np.isfinite(matrices).all(axis=(1, 2))
    matrices = np.where(usable[:, None, None], 0.5 * (matrices + matrices.swapaxes(1, 2)), np.eye(dimension))
    diagonal = np.abs(np.diagonal(matrices, axis1=1, axis2=2))
    deviations = 1 / np.sqrt(np.where(diagonal > 0, diagonal, np.inf))
    largest = deviations.max(axis=1, keepdims=True)
    deviations = np.where(diagonal > 0, deviations, np.where(largest > 0, largest, 1.0))
    values, vectors = np.linalg.eigh(matrices * deviations[:, :, None] * deviations[:, None])
    return Curvature(deviations, np.where(usable[:, None], values, np.nan), vectors)
