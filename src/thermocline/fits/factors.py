"""The factors of a target on rows of a Gaussian's own coordinates, and the few directions that each depends on."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.evaluator import Evaluator
from thermocline.fits.gaussian_ascent import LocationScale
from thermocline.support.errors import ThermoclineError, reason
from thermocline.support.precision import computing_in
from thermocline.support.programs import jit_by

WIDTH = 64  # rows of the one size in which the programs are compiled
NUM_SLOPES = 32  # places at which slopes tell what a factor depends on: more than the directions that it may have
PARALLEL = {"float64": 1e-7, "float32": 1e-3}  # share of the largest singular value of slopes that is none


class Factors:
    """Log factors of positions m + L z, by z, one a row; what is NaN counts as -inf."""

    evaluate: Evaluator
    frame: LocationScale
    number: int

    def __init__(self, evaluate: Evaluator, frame: LocationScale) -> None:
        self.evaluate, self.frame = evaluate, frame
        try:
            self.number = self.values(np.zeros((1, len(frame.mean)))).shape[1]
        except Exception as error:  # noqa: BLE001 - whatever the user's code says
            raise ThermoclineError(f"factors of the target could not be called: {reason(error)}.") from None

    def values(self, rows: np.ndarray) -> np.ndarray:
        """Log of every factor, (row, factor)."""
        return np.concatenate(list(self.blocks(rows)))

    def blocks(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """The same in blocks of rows, so that many rows of many factors need not be held at once."""
        for found in self._run(_values, rows):
            self.evaluate.count(WIDTH)
            yield np.where(np.isnan(found), -np.inf, found)

    def slopes(self, rows: np.ndarray) -> np.ndarray:
        """Gradients in z of every factor, (row, factor, dimension)."""
        found = np.concatenate(list(self._run(_slopes, rows)))
        self.evaluate.count(WIDTH * min(self.number, rows.shape[1]))  # so many sweeps make a Jacobian
        return found @ self.frame.scale

    def _run(self, program: Callable[..., Any], rows: np.ndarray) -> Iterator[np.ndarray]:
        target, precision = self.evaluate.target, self.evaluate.precision
        positions = np.asarray(self.frame.at(rows), precision)
        for first in range(0, len(rows), WIDTH):
            part = positions[first : first + WIDTH]
            padded = np.concatenate([part, np.broadcast_to(part[:1], (WIDTH - len(part), part.shape[1]))])
            with computing_in(precision):
                found = program(target.factors, target.initial_position, target.data, padded)
            yield np.asarray(found, float)[: len(part)]


class Directions(NamedTuple):
    """What factors depend on: one direction each, many, or nothing."""

    none: np.ndarray  # indices of factors that are constants
    single: np.ndarray
    unit: np.ndarray  # (single, dimension), their directions
    wide: list[tuple[int, np.ndarray]]  # index and orthonormal (direction, dimension)


def directions_of(factors: Factors, draws: np.ndarray) -> Directions:
    """From slopes at some draws: a factor of one linear predictor has parallel slopes everywhere."""
    slopes = np.nan_to_num(factors.slopes(draws[:NUM_SLOPES]), posinf=0.0, neginf=0.0).swapaxes(0, 1)
    sizes, vectors = np.linalg.svd(slopes, full_matrices=False)[1:]
    ranks = np.sum(sizes > PARALLEL[factors.evaluate.precision] * sizes[:, :1], axis=1)
    single = np.flatnonzero(ranks == 1)
    wide = [(int(i), vectors[i, : ranks[i]]) for i in np.flatnonzero(ranks > 1)]
    unit = vectors[single, 0]
    first = np.take_along_axis(unit, np.argmax(np.abs(unit), axis=1)[:, None], axis=1)
    return Directions(np.flatnonzero(ranks == 0), single, unit * np.sign(first), wide)


def _ravelled(factors: Callable[..., Any], position: Any, data: Any) -> Callable[[jax.Array], jax.Array]:
    """All log factors as one vector, of a ravelled position."""
    unravel = ravel_pytree(position)[1]

    def of(row: jax.Array) -> jax.Array:
        found = factors(unravel(row)) if data is None else factors(unravel(row), data)
        return jnp.asarray(ravel_pytree(found)[0], row.dtype)

    return of


@jit_by()
def _values(factors: Callable[..., Any], position: Any, data: Any, rows: jax.Array) -> jax.Array:
    return jax.vmap(_ravelled(factors, position, data))(rows)


@jit_by()
def _slopes(factors: Callable[..., Any], position: Any, data: Any, rows: jax.Array) -> jax.Array:
    of = _ravelled(factors, position, data)
    number, size = jax.eval_shape(of, rows[0]).size, rows.shape[1]
    jacobian: Any = jax.jacfwd if size <= number else jax.jacrev
    return jax.lax.map(jacobian(of), rows[:NUM_SLOPES])
