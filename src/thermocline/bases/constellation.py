"""Gaussians of one covariance about many centres: a mixture for targets with hundreds of modes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.linalg import solve_triangular

from thermocline.support.pytree import pytree


@pytree
class Constellation:
    """A mixture whose components share their covariance.

    A density costs one product with a matrix of centres, not one with a matrix for each component, so that a thousand
    modes are affordable. Such a base is multimodal; give it to a method that jumps.
    """

    origin: Any  # a position of the target, to which the centres are relative
    white_centres: Any  # (component, dimension), whitened
    log_weights: Any  # -inf is padding
    scale_tril: Any
    whitening: Any

    @classmethod
    def of(cls, centres: Any, log_weights: Any, covariance: Any, like: Any, *, room: int = 1024) -> "Constellation":
        """From ravelled centres, one a row, padded to a multiple of `room`; `like` is a position of the target."""
        centres, log_weights = np.asarray(centres, float), np.asarray(log_weights, float)
        weights = np.exp(log_weights - np.logaddexp.reduce(log_weights))
        middle, scale = weights @ centres, np.linalg.cholesky(covariance)
        whitening = solve_triangular(scale, np.eye(len(scale)), lower=True)
        size = -(-len(centres) // room) * room
        white, padded = np.zeros((size, len(middle))), np.full(size, -np.inf)
        white[: len(centres)] = (centres - middle) @ whitening.T
        padded[: len(centres)] = np.log(weights)
        return cls(jax.tree.map(np.asarray, ravel_pytree(like)[1](middle)), white, padded, scale, whitening)

    @property
    def num_components(self) -> int:
        """Components that are not padding."""
        return int(np.sum(np.isfinite(self.log_weights)))

    def log_density(self, position: Any) -> jax.Array:
        white = jnp.asarray(self.whitening) @ (ravel_pytree(position)[0] - ravel_pytree(self.origin)[0])
        centres = jnp.asarray(self.white_centres)
        heights = jnp.asarray(self.log_weights) + centres @ white - 0.5 * jnp.sum(centres**2, axis=1)
        log_determinant = jnp.sum(jnp.log(jnp.diagonal(jnp.asarray(self.scale_tril))))
        constant = -0.5 * white.size * np.log(2 * np.pi) - log_determinant
        return jax.nn.logsumexp(heights) - 0.5 * white @ white + constant

    def sample(self, key: jax.Array) -> Any:
        key_component, key_draw = jax.random.split(key)
        origin, unravel = ravel_pytree(self.origin)
        index = jax.random.categorical(key_component, jnp.asarray(self.log_weights))
        noise = jax.random.normal(key_draw, origin.shape, origin.dtype)
        return unravel(origin + jnp.asarray(self.scale_tril) @ (jnp.asarray(self.white_centres)[index] + noise))

    def moments(self) -> tuple[jax.Array, jax.Array]:
        """Exact mean and variances of the ravelled position."""
        weights, scale = jnp.exp(jnp.asarray(self.log_weights)), jnp.asarray(self.scale_tril)
        centres = jnp.asarray(self.white_centres) @ scale.T
        mean = weights @ centres
        variances = weights @ (centres - mean) ** 2 + jnp.sum(scale**2, axis=1)
        return ravel_pytree(self.origin)[0] + mean, variances

    def centres(self) -> jax.Array:
        """The components' means, ravelled, one a row."""
        relative = jnp.asarray(self.white_centres) @ jnp.asarray(self.scale_tril).T
        return ravel_pytree(self.origin)[0] + relative
