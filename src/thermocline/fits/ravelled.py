"""A target as a function of one vector: what every fit works on."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from thermocline.support.precision import cast
from thermocline.support.pytree import pytree
from thermocline.target import Target, check_target


@pytree
class Ravelled:
    """The log density of the ravelled position; what is not a number, or is +inf, counts as off the support."""

    target: Target

    @classmethod
    def of(cls, target: Target, precision: str) -> "Ravelled":
        """The target in `precision`, once checked."""
        target = cast(target, precision)
        check_target(target)
        return cls(target)

    def __call__(self, position: jax.Array) -> jax.Array:
        value = jnp.asarray(self.target(self.unravel(position)), position.dtype)
        return jnp.where(jnp.isfinite(value), value, -jnp.inf)

    @property
    def initial_position(self) -> jax.Array:
        return ravel_pytree(self.target.initial_position)[0]

    def unravel(self, position: jax.Array) -> Any:
        return ravel_pytree(self.target.initial_position)[1](position)
