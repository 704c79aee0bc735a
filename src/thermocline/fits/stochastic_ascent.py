"""A Gaussian on ravelled positions in JAX, as expectation maximisation measures draws by it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from thermocline.support import linear


class Normal(NamedTuple):
    """Mean and scale factor (see linear.py) of a Gaussian on ravelled positions."""

    mean: jax.Array
    scale: jax.Array

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
