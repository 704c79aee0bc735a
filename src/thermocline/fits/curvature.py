"""Curvature of a log density at some points: central differences of gradients, in units that the target gives."""

from typing import NamedTuple

import numpy as np

from thermocline.evaluator import RowDensity

STEP = 0.01  # of a difference, in deviations along its direction
NEAR_ZERO = 1e-3  # below which a coordinate gives no hint of its scale, and 1 is the first guess
OFF = 10.0  # times too long or too short, at which a step is tried again
NUM_REFINEMENTS = 16
NUM_BOLD = 4  # refinements that go where the last points
MOST_GROWTHS = 5  # thousandfold, of a step along which nothing bends, until that direction is flat
ROUNDING = 64.0  # units in the last place of the gradients, below which a difference is none
FLAT = 1e-8  # curvature, relative to the largest in these units, that counts as none
SKEWED = 1e-5  # likewise, below which differences are taken anew, along the directions found
BENT_UP = 1e-4  # likewise, at which a point is no optimum
DECREMENT = 0.01  # predicted gain, in nats, below which an optimum is one
CURVATURE_BYTES = 2e8  # of the matrices of curvature held at once
LARGEST = 1e100  # of a curvature in units of those along the coordinates, beyond which it is noise


class Curvature(NamedTuple):
    """Minus the Hessians H at some points: directions U, in columns, of about a deviation, with Uᵀ H U = diag(values).

    In such units scales of 1e-6 and 1e6 meet without loss. Values ascend; NaN where the curvature is not a number.
    """

    directions: np.ndarray  # (point, dimension, direction)
    values: np.ndarray  # (point, direction)

    def chosen(self, index: np.ndarray) -> "Curvature":
        """Some of the points."""
        return Curvature(*(leaf[index] for leaf in self))

    @property
    def is_usable(self) -> np.ndarray:
        """Whether it is known, and not so steep that its root is nothing in floating point."""
        is_known = np.all(np.isfinite(self.values), axis=1, keepdims=True)
        roots = np.where(is_known[..., None], self.roots(), 0.0)
        return np.isfinite(np.linalg.slogdet(roots)[1])

    def roots(self) -> np.ndarray:
        """Matrices R with Laplace's covariance R Rᵀ; next to no curvature is given the least that counts.

        A direction that bends up has the variance of one that bends down as much.
        """
        values = np.abs(self.values)
        least = FLAT * values.max(axis=1, keepdims=True, initial=0.0)
        return self.directions / np.sqrt(np.maximum(values, np.where(least > 0, least, 1.0)))[:, None]

    def covariances(self) -> np.ndarray:
        """Laplace's."""
        roots = self.roots()
        return roots @ roots.swapaxes(1, 2)

    def log_volumes(self) -> np.ndarray:
        """Log of the integral of exp(-½ xᵀ H x): what Laplace's formula adds to the log density."""
        roots = self.roots()
        return np.linalg.slogdet(roots)[1] + 0.5 * roots.shape[1] * np.log(2 * np.pi)

    def gains(self, gradient: np.ndarray) -> np.ndarray:
        """Predicted gain of Newton's step, in nats: half the squared slope in units of Laplace's deviations."""
        return 0.5 * np.sum((gradient[:, None] @ self.roots()) ** 2, axis=(1, 2))


def curvature_at(evaluate: RowDensity, positions: np.ndarray, *, deviations: np.ndarray | None = None) -> Curvature:
    """The curvature at each row; steps begin at a hundredth of `deviations` (row, dimension), where they are known."""
    number, dimension = positions.shape
    positions = np.asarray(positions, evaluate.precision)
    size = np.abs(positions)
    guess = np.broadcast_to(np.where(size < NEAR_ZERO, 1.0, size) if deviations is None else deviations, size.shape)
    group = int(max(CURVATURE_BYTES / (8 * dimension**2), 1))
    parts = [
        _curvature(evaluate, positions[begin : begin + group], guess[begin : begin + group])
        for begin in range(0, max(number, 1), group)
    ]
    return Curvature(*(np.concatenate(leaves) for leaves in zip(*parts, strict=True)))


def are_optima(curvature: Curvature, gradient: np.ndarray) -> np.ndarray:
    """Whether Newton's step would gain less than a hundredth of a nat, and the log density bends down.

    Directions of no curvature are let off if they have no slope: a ridge is a continuum of optima. Whatever ran
    off or stopped short is no optimum.
    """
    values = np.where(curvature.is_usable[:, None], curvature.values, -1.0)
    bends_down = (values > -BENT_UP * values[:, -1:]).all(axis=1) & (values[:, -1] > 0)
    with np.errstate(invalid="ignore", over="ignore"):
        return bends_down & (curvature.gains(gradient) < DECREMENT)  # NaN where either is unknown


def _curvature(evaluate: RowDensity, positions: np.ndarray, deviations: np.ndarray) -> Curvature:
    """Along the coordinates first; where scales differ much along others, once more along the directions found.

    Seen from its coordinates, a long thin ridge across them is thin in all: the length shows from its own.
    """
    found = _along(evaluate, positions, deviations[:, :, None] * np.eye(positions.shape[1]))
    skewed = np.flatnonzero(found.is_usable & (np.abs(found.values).min(axis=1) < SKEWED * found.values[:, -1]))
    if len(skewed):
        again = _along(evaluate, positions[skewed], found.chosen(skewed).roots())
        for leaf, new in zip(found, again, strict=True):
            leaf[skewed[again.is_usable]] = new[again.is_usable]
    return found


def _along(evaluate: RowDensity, positions: np.ndarray, units: np.ndarray) -> Curvature:
    """By differences along the columns of `units` (point, dimension, direction), whose lengths need not be right.

    A step is tried again until it is about a hundredth of the deviation that it finds. Beyond an edge it shrinks;
    where nothing bends it grows, until the direction counts as flat.
    """
    number, dimension = positions.shape
    matrices, steps = np.zeros((number, dimension, dimension)), np.full((number, dimension), STEP)
    is_open, num_growths = np.ones((number, dimension), bool), np.zeros((number, dimension), int)
    for index in range(NUM_REFINEMENTS):
        place = np.nonzero(is_open)
        if not len(place[0]):
            break
        falls, is_finite, bends = _falls(evaluate, positions, units, place[0], place[1], steps[place])
        matrices[place] = np.where(bends[:, None], falls, 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            wanted = STEP / np.sqrt(np.abs(falls[np.arange(len(falls)), place[1]]))
        is_settled = bends & (steps[place] < OFF * wanted) & (steps[place] > wanted / OFF)
        num_growths[place] += is_finite & ~bends
        is_open[place] = ~is_settled & (num_growths[place] < MOST_GROWTHS)
        wanted = np.sqrt(steps[place] * wanted) if index > NUM_BOLD else wanted  # what swings to and fro is damped
        steps[place] = np.where(bends, wanted, steps[place] * np.where(is_finite, 1e3, 1e-2))
    return _decomposed(matrices, units, np.sum(is_open, axis=1) == 0)


def _falls(
    evaluate: RowDensity,
    positions: np.ndarray,
    units: np.ndarray,
    point: np.ndarray,
    which: np.ndarray,
    steps: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Minus the derivative of the gradient along one direction a row, in `units`; is it finite; is it not zero."""
    direction = units[point, :, which]
    ahead, behind = ((positions[point] + sign * steps[:, None] * direction).astype(positions.dtype) for sign in (1, -1))
    values, gradients = evaluate(np.concatenate([ahead, behind]))
    firsts = np.searchsorted(point, np.arange(len(positions) + 1))  # of the rows of each point
    slopes = np.empty((2, len(point), positions.shape[1]))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for index, rows in enumerate(map(slice, firsts[:-1], firsts[1:])):
            slopes[:, rows] = gradients.reshape(slopes.shape)[:, rows] @ units[index]
        lengths = np.sum((ahead - behind) * direction, axis=1) / np.sum(direction**2, axis=1)  # as rounded
        falls = (slopes[1] - slopes[0]) / lengths[:, None]
        own, size = (np.abs(leaf[np.arange(len(which)), which]) for leaf in (slopes[1] - slopes[0], slopes[1]))
    is_finite = np.isfinite(values).reshape(2, -1).all(axis=0) & np.isfinite(slopes).all(axis=(0, 2))
    is_finite &= np.isfinite(falls).all(axis=1) | (lengths == 0)
    bends = is_finite & (lengths > 0) & (own > ROUNDING * np.finfo(gradients.dtype).eps * size)
    return falls, is_finite, bends


def _decomposed(matrices: np.ndarray, units: np.ndarray, usable: np.ndarray) -> Curvature:
    """In units of the deviations on the diagonal; a flat direction has the largest of the others, as the units go."""
    usable &= np.isfinite(matrices).all(axis=(1, 2))
    matrices = np.where(usable[:, None, None], 0.5 * (matrices + matrices.swapaxes(1, 2)), np.eye(matrices.shape[1]))
    diagonal = np.abs(np.diagonal(matrices, axis1=1, axis2=2))
    lengths = np.linalg.norm(units, axis=1)
    deviations = lengths / np.sqrt(np.where(diagonal > 0, diagonal, np.inf))
    largest = deviations.max(axis=1, keepdims=True)
    deviations = np.where(diagonal > 0, deviations, np.where(largest > 0, largest, 1.0)) / lengths
    with np.errstate(over="ignore", invalid="ignore"):  # where next to nothing bends along some, but much across them
        scaled = matrices * deviations[:, :, None] * deviations[:, None]
    usable &= (np.abs(scaled) < LARGEST).all(axis=(1, 2))
    values, vectors = np.linalg.eigh(np.where(usable[:, None, None], scaled, np.eye(matrices.shape[1])))
    return Curvature(units @ (deviations[:, :, None] * vectors), np.where(usable[:, None], values, np.nan))
