"""Underdamped Langevin dynamics, with a Metropolis test of the whole trajectory or without one."""

from typing import Any

import jax
import jax.numpy as jnp

from thermocline.movers.hmc import DIVERGENCE_THRESHOLD, leapfrog
from thermocline.movers.metric import Scale
from thermocline.movers.mover import Density, Keys, Move
from thermocline.support.pytree import pytree, static


@pytree
class Langevin:
    """`num_steps` leapfrog steps, with friction and noise on the momentum before and after each.

    Noise and friction leave the momentum's own law unchanged, so that only the energy that leapfrog steps gain
    matters: the trajectory is accepted with the probability of their sum (Bussi and Parrinello 2007). With
    `is_adjusted=False` it is always accepted, as in molecular dynamics, and the law is then off by a bias of the
    order of the squared step size; the acceptance recorded is still what the test would have given.
    """

    step_size: float | None = None
    num_steps: int = static(default=8)
    friction: float = static(default=0.5)
    is_adjusted: bool = static(default=True)
    target_acceptance: float = static(default=0.9)

    def move(self, keys: Keys, density: Density, step_size: jax.Array, scale: Scale, point: Any) -> tuple[Any, Move]:
        key_momentum, key_noise, key_accept = jax.random.split(keys.own, 3)
        position = density.position(point)
        kept = jnp.exp(-0.5 * self.friction * step_size)

        def refreshed(key: jax.Array, momentum: jax.Array) -> jax.Array:
            return kept * momentum + jnp.sqrt(1 - kept**2) * jax.random.normal(key, momentum.shape, momentum.dtype)

        def step(i: jax.Array, carry: tuple[Any, jax.Array, jax.Array]) -> tuple[Any, jax.Array, jax.Array]:
            point, momentum, gain = carry
            before, after = jax.random.split(jax.random.fold_in(key_noise, i))
            start = refreshed(before, momentum)
            moved, end = leapfrog(density, step_size, scale, jnp.asarray(1), point, start)
            gain += density.log_density(moved) - density.log_density(point) - 0.5 * (end @ end - start @ start)
            return moved, refreshed(after, end), gain

        momentum = jax.random.normal(key_momentum, position.shape, position.dtype)
        proposal, _, gain = jax.lax.fori_loop(0, self.num_steps, step, (point, momentum, jnp.zeros((), position.dtype)))
        is_nonfinite = jnp.isnan(gain) | jnp.isposinf(density.log_density(proposal))
        gain = jnp.where(is_nonfinite, -jnp.inf, gain)
        accept = jnp.log(jax.random.uniform(key_accept, (), position.dtype)) < gain
        if not self.is_adjusted:
            accept = jnp.isfinite(gain)
        chosen = jax.tree.map(lambda new, old: jnp.where(accept, new, old), proposal, point)
        is_divergent = (gain < -DIVERGENCE_THRESHOLD) & jnp.isfinite(gain)
        return chosen, Move(jnp.exp(jnp.minimum(gain, 0.0)), is_divergent, is_nonfinite, jnp.asarray(self.num_steps))
