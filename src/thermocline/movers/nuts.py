"""The No-U-Turn sampler: BlackJAX's, adapted at this one seam."""

from typing import Any

import jax
import jax.numpy as jnp

from thermocline.movers.metric import Scale
from thermocline.movers.mover import Density, Keys, Move
from thermocline.support.pytree import pytree, static


@pytree
class NUTS:
    """BlackJAX's iterative NUTS, run in coordinates whitened by the metric.

    Every chain takes its own number of steps, so chains run side by side wait for the
    longest: fewer chains than with HMC, and longer, suit it.
    """

    step_size: float | None = None
    max_doublings: int = static(default=8)
    target_acceptance: float = static(default=0.8)

    def move(self, keys: Keys, density: Density, step_size: jax.Array, scale: Scale, point: Any) -> tuple[Any, Move]:
        from blackjax.mcmc import hmc, nuts

        origin = density.position(point)
        white = jnp.zeros_like(origin)  # the current point is the origin of the white coordinates

        def log_density(white: jax.Array) -> jax.Array:
            value = density.log_density_at(origin + scale.multiply(white))
            return jnp.where(jnp.isposinf(value), jnp.nan, value)  # BlackJAX counts NaN as a divergence

        state: Any = hmc.HMCState  # its annotations say float where it takes arrays
        start = state(white, density.log_density(point), scale.multiply_transposed(density.gradient(point)))
        kernel: Any = nuts.build_kernel()
        end, info = kernel(keys.own, start, log_density, step_size, jnp.ones_like(white), self.max_doublings)
        proposal = density.evaluate(origin + scale.multiply(end.position))
        usable = jnp.isfinite(density.log_density(proposal))
        chosen = jax.tree.map(lambda new, old: jnp.where(usable, new, old), proposal, point)
        return chosen, Move(
            acceptance=jnp.nan_to_num(info.acceptance_rate),
            is_divergent=info.is_divergent,
            is_nonfinite=~usable | _met_nan(info),
            num_gradients=info.num_integration_steps + 1,
        )


def _met_nan(info: Any) -> jax.Array:
    """Whether the density, or a momentum kicked by its gradient, is NaN at an end, where a trajectory stops at one."""
    ends = info.trajectory_leftmost_state, info.trajectory_rightmost_state
    return jnp.any(jnp.stack([jnp.isnan(end.logdensity) | jnp.any(jnp.isnan(end.momentum)) for end in ends]))
