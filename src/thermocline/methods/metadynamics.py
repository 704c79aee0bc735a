"""The bias of metadynamics, which flattens the law of the control variable."""

from typing import Any

import jax
import jax.numpy as jnp

from thermocline.support.pytree import pytree

NUM_BINS = 16  # of the bias, between the two plateaus of beta


@pytree
class Bias:
    """Metadynamics' potential at equally spaced places between the plateaus, and on them; what warm-up learns."""

    values: Any

    def at(self, place: jax.Array) -> jax.Array:
        """Linear between the middles of the bins; `place` is 0 on the plateau of the target, 1 on the hottest."""
        centres = jnp.concatenate([jnp.zeros(1), (jnp.arange(NUM_BINS) + 0.5) / NUM_BINS, jnp.ones(1)])
        return jnp.interp(place, centres.astype(self.values.dtype), self.values)
