"""Optima of a target from many starts at once, and the exact curvature there, for those that hold no evaluator yet."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.evaluator import Evaluator
from thermocline.fits import curvature as differences
from thermocline.fits.lbfgs import maximise
from thermocline.support.precision import to_numpy
from thermocline.target import Target

NUM_STEPS = 150
CURVATURE_BYTES = 2e8  # of the matrices of curvature held at once
FLAT = 1e-8  # curvature, relative to the largest, that counts as none
GROUP_OF_POINTS = 256  # whose curvature is found at once


class Optima(NamedTuple):
    """Where starts ended, (start, dimension); log density and its gradient there."""

    position: np.ndarray
    log_density: np.ndarray
    gradient: np.ndarray

    def chosen(self, index: np.ndarray) -> "Optima":
        """Some of the rows."""
        return Optima(*(leaf[index] for leaf in self))


def climb(target: Target, starts: np.ndarray, *, num_steps: int = NUM_STEPS) -> tuple[Optima, int]:
    """Where L-BFGS ends from each ravelled start, one a row, and the gradients spent."""
    evaluate = Evaluator(target, str(jnp.asarray(starts).dtype))
    ends = maximise(evaluate, starts, num_iterations=num_steps)
    return Optima(ends.position, ends.log_density, ends.gradient), evaluate.num_rows


class Curvature(NamedTuple):
    """Minus the Hessians of the log density at some points, by their eigenvalues and eigenvectors."""

    values: np.ndarray
    vectors: np.ndarray

    def variances(self) -> np.ndarray:
        """Laplace's, along the eigenvectors; a direction of next to no curvature is given the least that counts."""
        return 1 / np.maximum(self.values, FLAT * self.values[:, -1:])


def curvature_at(target: Target, positions: np.ndarray) -> Curvature:
    """The curvature at each row, a group at a time; NaN where it is not a number."""
    dimension = positions.shape[1]
    group = int(np.clip(CURVATURE_BYTES / (8 * dimension**2), 1, GROUP_OF_POINTS))
    parts = []
    for begin in range(0, len(positions), group):
        rows = positions[begin : begin + group]
        room = np.concatenate(
            [rows, np.broadcast_to(rows[:1], (group - len(rows), dimension))]
        )  # one size, one program
        parts.append(to_numpy(_curvature(target, room))[: len(rows)])
    matrices = np.concatenate(parts) if parts else np.zeros((0, dimension, dimension))
    usable = np.all(np.isfinite(matrices), axis=(1, 2), keepdims=True)[:, 0, 0]
    matrices = np.where(usable[:, None, None], 0.5 * (matrices + np.swapaxes(matrices, 1, 2)), np.eye(dimension))
    values, vectors = np.linalg.eigh(matrices)
    return Curvature(np.where(usable[:, None], values, np.nan), vectors)


def are_optima(curvature: Curvature, gradient: np.ndarray) -> np.ndarray:
    """Whether a Newton step would gain less than a hundredth of a nat, and the log density bends down (curvature.py).

    Judged in units of each coordinate's own deviation: beside a curvature of 1e11 a slope of 8 must not look flat.
    """
    values, vectors = curvature
    usable = np.all(np.isfinite(values), axis=1, keepdims=True)
    matrices = (np.where(usable, values, 1.0)[:, None] * vectors) @ vectors.swapaxes(1, 2)
    diagonal = np.abs(np.diagonal(matrices, axis1=1, axis2=2))
    units = 1 / np.sqrt(np.maximum(diagonal, FLAT * diagonal.max(axis=1, keepdims=True, initial=1e-300)))
    scaled, directions = np.linalg.eigh(matrices * units[:, :, None] * units[:, None])
    scaled = np.where(usable, scaled, np.nan)
    return differences.are_optima(differences.Curvature(units[:, :, None] * directions, scaled), gradient)


@jax.jit
def _curvature(target: Target, positions: jax.Array) -> jax.Array:
    unravel = ravel_pytree(target.initial_position)[1]
    return jax.vmap(jax.hessian(lambda position: -target(unravel(position))))(positions)
