r"""Stochastic ascent of a Gaussian on any objective, in the Gaussian's own coordinates.

A move shifts $m \to m + Lu$ and $L \to L(I + W)$, so that steps have the size of the approximation whatever the scale
and the correlations of the target; the diagonal of $I + W$ is taken as $e^{W_{ii}}$, which keeps it positive.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from thermocline.support import linear

BLOCK = 100  # steps between looks at the objective
FIRST_STEP = 0.3  # of Adam, in standard deviations
DECAY = 1 / 3
NUM_DECAYS = 6
LEAST_GAIN = 1e-3  # of a block, in nats, below which nothing is gained whatever the noise


class Normal(NamedTuple):
    """Mean and scale factor (see linear.py) of a Gaussian on ravelled positions."""

    mean: jax.Array
    scale: jax.Array

    def at(self, noise: jax.Array) -> jax.Array:
        """The positions that standard normal noise, one a row, becomes."""
        return self.mean + (noise * self.scale if self.scale.ndim == 1 else noise @ self.scale.T)

    def noise_at(self, positions: jax.Array) -> jax.Array:
        """The noise that would become these positions, one a row; for many, inverting is far faster than solving."""
        if self.scale.ndim == 1:
            return (positions - self.mean) / self.scale
        identity = jnp.eye(self.mean.size, dtype=self.mean.dtype)
        return (positions - self.mean) @ linear.solve(self.scale, identity).T

    def log_densities(self, noise: jax.Array) -> jax.Array:
        """The Gaussian's log density where noise takes it."""
        constant = 0.5 * noise.shape[1] * jnp.log(2 * jnp.pi) + linear.log_determinant(self.scale)
        return -0.5 * jnp.sum(noise**2, axis=1) - constant

    def whitened(self, gradients: jax.Array) -> jax.Array:
        """Gradients with respect to positions, one a row, as gradients with respect to the noise."""
        return gradients * self.scale if self.scale.ndim == 1 else gradients @ self.scale

    def moved(self, shift: jax.Array, stretch: jax.Array) -> "Normal":
        """The Gaussian after a move (u, W); W of a diagonal scale is a vector."""
        mean = self.at(shift[None])[0]
        if self.scale.ndim == 1:
            return Normal(mean, self.scale * jnp.exp(stretch))
        return Normal(mean, self.scale @ (jnp.tril(stretch, -1) + jnp.diag(jnp.exp(jnp.diagonal(stretch)))))

    def stretch(self, left: jax.Array, right: jax.Array) -> jax.Array:
        """What W keeps of the sum of outer products of rows: the diagonal, or the lower triangle."""
        return jnp.sum(left * right, axis=0) if self.scale.ndim == 1 else jnp.tril(left.T @ right)


class Height(NamedTuple):
    """The objective on draws that stay the same, and each draw's influence: their spread is its noise."""

    value: jax.Array
    influence: jax.Array


class Ascent(NamedTuple):
    """Where an ascent ended; `trace` has the objective by block, NaN after the last."""

    normal: Normal
    trace: jax.Array
    num_blocks: jax.Array
    has_converged: jax.Array


Direction = Callable[[jax.Array, Normal], tuple[jax.Array, jax.Array]]


class _State(NamedTuple):
    normal: Normal
    adam: optax.OptState
    best: Normal
    best_height: Height
    num_blocks: jax.Array
    num_decays: jax.Array
    trace: jax.Array


def ascend(
    key: jax.Array,
    start: Normal,
    start_height: Height,
    direction: Direction,
    height: Callable[[Normal], Height],
    *,
    most_steps: int,
) -> Ascent:
    """Adam along `direction(key, normal) -> (u, W)`, in blocks, until `height` rises no more.

    After each block the average of its later half stands for it. Unless that is higher than the best so far by a
    thousandth of a nat and twice the noise of the difference (the same draws measure both), the ascent goes back to
    the best with a third of the step; after six such decays it has converged. A block that ran away is undone.
    """
    most_blocks = max(most_steps // BLOCK, 1)

    def goes_on(state: _State) -> jax.Array:
        return (state.num_blocks < most_blocks) & (state.num_decays < NUM_DECAYS)

    def block(state: _State) -> _State:
        size = FIRST_STEP * DECAY**state.num_decays
        normal, adam, average = _walk(jax.random.fold_in(key, state.num_blocks), state, direction, size)
        reached = height(average)
        is_higher = reached.value > state.best_height.value
        best, best_height = _choose(is_higher, (average, reached), (state.best, state.best_height))
        has_stalled = ~(reached.value - state.best_height.value > LEAST_GAIN + 2 * _noise(reached, state.best_height))
        return _State(
            _choose(has_stalled, best, normal),
            adam,
            best,
            best_height,
            state.num_blocks + 1,
            state.num_decays + has_stalled,
            state.trace.at[state.num_blocks].set(reached.value),
        )

    trace = jnp.full(most_blocks, jnp.nan, start.mean.dtype)
    begin = _State(start, _ADAM.init(tuple(start)), start, start_height, jnp.asarray(0), jnp.asarray(0), trace)
    end = jax.lax.while_loop(goes_on, block, begin)
    return Ascent(end.best, end.trace, end.num_blocks, end.num_decays == NUM_DECAYS)


_ADAM = optax.scale_by_adam(b1=0.9, b2=0.99)


def _walk(
    key: jax.Array, state: _State, direction: Direction, size: jax.Array
) -> tuple[Normal, optax.OptState, Normal]:
    """One block of steps, and the average over its later half.

    A matrix of D² moves, each of Adam's unit size, is divided by the root of D, or it would stretch by D at once.
    """
    width = 1.0 if state.normal.scale.ndim == 1 else jnp.sqrt(state.normal.mean.size)

    def step(index: jax.Array, carry: tuple[Normal, optax.OptState, Normal]):
        normal, adam, total = carry
        move, adam = _ADAM.update(direction(jax.random.fold_in(key, index), normal), adam)
        shift, stretch = jax.tree.leaves(move)
        normal = normal.moved(size * shift, size * stretch / width)
        return normal, adam, jax.tree.map(lambda sum, leaf: sum + leaf * (index >= BLOCK // 2), total, normal)

    nothing = jax.tree.map(jnp.zeros_like, state.normal)
    normal, adam, total = jax.lax.fori_loop(0, BLOCK, step, (state.normal, state.adam, nothing))
    return normal, adam, jax.tree.map(lambda sum: sum / (BLOCK - BLOCK // 2), total)


def _noise(one: Height, other: Height) -> jax.Array:
    """Standard error of the difference of two heights measured with the same draws."""
    return jnp.std(one.influence - other.influence) / jnp.sqrt(one.influence.size)


def _choose(condition: jax.Array, one, other):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), one, other)
