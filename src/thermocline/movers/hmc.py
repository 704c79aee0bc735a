"""Hamiltonian Monte Carlo with our own leapfrog, because a point carries base and target apart."""

from typing import Any

import jax
import jax.numpy as jnp

from thermocline.movers.metric import Scale
from thermocline.movers.mover import Density, Keys, Move
from thermocline.support.pytree import pytree, static

DIVERGENCE_THRESHOLD = 1000.0


@pytree
class HMC:
    """Leapfrog trajectories of about `num_steps` steps and a Metropolis test (paper, section 2).

    The number of steps is uniform between `num_steps * (1 - jitter)` and `num_steps * (1 + jitter)`
    and common to all chains, which otherwise would wait for the longest. `step_size` is in units
    of the metric; left out, warm-up tunes it, at each inverse temperature, to `target_acceptance`.
    `scale` fixes that metric at every inverse temperature, where warm-up would learn it: standard deviations of the
    ravelled position, or one for all. With 1 the mass matrix is the identity and steps are in the position's own units.
    """

    step_size: float | None = None
    num_steps: int = static(default=8)
    jitter: float = static(default=0.5)
    target_acceptance: float = static(default=0.9)
    scale: Any = None

    def move(self, keys: Keys, density: Density, step_size: jax.Array, scale: Scale, point: Any) -> tuple[Any, Move]:
        key_momentum, key_accept = jax.random.split(keys.own)
        position = density.position(point)
        momentum = jax.random.normal(key_momentum, position.shape, position.dtype)
        num_steps = self._draw_num_steps(keys.shared)
        proposal, end = leapfrog(density, step_size, scale, num_steps, point, momentum)
        log_density, proposed = density.log_density(point), density.log_density(proposal)
        gain = proposed - 0.5 * end @ end - log_density + 0.5 * momentum @ momentum
        is_nonfinite = jnp.isnan(gain) | jnp.isposinf(proposed)
        gain = jnp.where(is_nonfinite, -jnp.inf, gain)
        accept = jnp.log(jax.random.uniform(key_accept, (), position.dtype)) < gain
        chosen = jax.tree.map(lambda new, old: jnp.where(accept, new, old), proposal, point)
        is_divergent = (gain < -DIVERGENCE_THRESHOLD) & jnp.isfinite(gain)
        acceptance = jnp.exp(jnp.minimum(gain, 0.0))
        return chosen, Move(acceptance, is_divergent, is_nonfinite, num_steps)

    def _draw_num_steps(self, key: jax.Array) -> jax.Array:
        shortest = max(1, round(self.num_steps * (1 - self.jitter)))
        longest = max(shortest, round(self.num_steps * (1 + self.jitter)))
        return jax.random.randint(key, (), shortest, longest + 1)


def leapfrog(
    density: Density, step_size: jax.Array, scale: Scale, num_steps: jax.Array, point: Any, momentum: jax.Array
) -> tuple[Any, jax.Array]:
    """Stoermer-Verlet in white momenta z: the kinetic energy is z'z/2, where p = S^-T z.

    The metric then costs one product with S and one with its transpose; each step evaluates the path once.
    """

    def kick(point: Any, momentum: jax.Array, share: float) -> jax.Array:
        return momentum + share * step_size * scale.multiply_transposed(density.gradient(point))

    def step(_: int, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
        point, momentum = carry
        point = density.evaluate(density.position(point) + step_size * scale.multiply(momentum))
        return point, kick(point, momentum, 1.0)

    start = point, kick(point, momentum, 0.5)
    end, momentum = jax.lax.fori_loop(0, num_steps, step, start)
    return end, kick(end, momentum, -0.5)
