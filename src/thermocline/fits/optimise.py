"""Optima of a density from many starts at once, and the curvature there: the only file that knows Optax's L-BFGS."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from thermocline.support.precision import to_numpy
from thermocline.target import Target

NUM_STEPS = 150
NUM_LINE_SEARCH = 15
CURVATURE_BYTES = 2e8  # of the matrices of curvature held at once
FLAT = 1e-8  # curvature, relative to the largest, that counts as none
GROUP_OF_POINTS = 256  # whose curvature is found at once
LEAST_GAIN = 1e-9  # of a step, in nats, that counts as one
PATIENCE = 3  # steps without gain that end a climb: a line search may fail once
DECREMENT = 0.01  # half the Newton decrement, in nats, below which an optimum is one


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
    *ends, num_gradients = to_numpy(maximise(target, jnp.asarray(starts), num_steps=num_steps))
    return Optima(*ends), int(num_gradients)


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
    """Whether a Newton step would gain less than a hundredth of a nat, and the log density bends down.

    Directions of no curvature are let off if they have no slope: a ridge is a continuum of optima. Whatever ran
    off or stopped short is no optimum.
    """
    values, vectors = curvature
    usable = np.isfinite(np.sum(values, axis=1) + np.sum(gradient, axis=1))
    values, gradient = np.where(usable[:, None], values, 1.0), np.where(usable[:, None], gradient, 0.0)
    slopes = np.einsum("sij,si->sj", vectors, gradient)
    decrement = 0.5 * np.sum(slopes**2 / np.maximum(np.abs(values), FLAT * values[:, -1:]), axis=1)
    bends_down = (values > -1e-4 * values[:, -1:]).all(axis=1) & (values[:, -1] > 0)
    return usable & bends_down & (decrement < DECREMENT)


@jax.jit
def maximise(
    target: Target, starts: jax.Array, *, num_steps: int | jax.Array = NUM_STEPS
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """L-BFGS from every start: position, log density and gradient at the end, and gradients spent in all."""
    unravel = ravel_pytree(target.initial_position)[1]
    search = optax.scale_by_zoom_linesearch(max_linesearch_steps=NUM_LINE_SEARCH, initial_guess_strategy="one")
    optimiser = optax.lbfgs(linesearch=search)

    def loss(position: jax.Array) -> jax.Array:
        value = -target(unravel(position))
        return jnp.where(jnp.isnan(value), jnp.inf, value)

    value_and_gradient = optax.value_and_grad_from_state(loss)

    def climb_from(start: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        def goes_on(carry: tuple) -> jax.Array:
            _, _, step, _, num_idle = carry
            return (step < num_steps) & (num_idle < PATIENCE)

        def step(carry: tuple) -> tuple:
            position, state, step, spent, num_idle = carry
            value, gradient = value_and_gradient(position, state=state)
            update: Any
            update, state = optimiser.update(gradient, state, position, value=value, grad=gradient, value_fn=loss)
            tried = jnp.asarray(optax.tree.get(state, "num_linesearch_steps"), spent.dtype)
            moved = position + update
            usable = jnp.all(jnp.isfinite(moved))
            return (
                jnp.where(usable, moved, position),
                state,
                step + 1,
                spent + tried,
                jnp.where(jnp.abs(gradient @ update) > LEAST_GAIN, 0, num_idle + 1),
            )

        begin = start, optimiser.init(start), 0, jnp.zeros((), int), 0
        position, _, _, spent, _ = jax.lax.while_loop(goes_on, step, begin)
        value, gradient = jax.value_and_grad(loss)(position)
        return position, -value, -gradient, spent

    position, log_density, gradient, spent = jax.vmap(climb_from)(starts)
    return position, log_density, gradient, jnp.sum(spent)


@jax.jit
def _curvature(target: Target, positions: jax.Array) -> jax.Array:
    unravel = ravel_pytree(target.initial_position)[1]
    return jax.vmap(jax.hessian(lambda position: -target(unravel(position))))(positions)
