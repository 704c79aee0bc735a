"""Gaussians of one covariance about many centres: a mixture for targets with hundreds of modes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.support import linear
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
        whitening = linear.inverse(scale, np)
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
        return self.log_density_of_rows(ravel_pytree(position)[0], jnp)

    def log_density_of_rows(self, rows: Any, namespace: Any = np) -> Any:
        """At ravelled positions along the last axis, in NumPy or JAX."""
        white = (rows - linear.ravelled(self.origin, namespace)) @ namespace.asarray(self.whitening).T
        centres = namespace.asarray(self.white_centres)
        heights = namespace.asarray(self.log_weights) + white @ centres.T - 0.5 * namespace.sum(centres**2, axis=1)
        constant = 0.5 * white.shape[-1] * np.log(2 * np.pi) + linear.log_determinant(
            namespace.asarray(self.scale_tril), namespace
        )
        return linear.log_sum_exp(heights, namespace) - 0.5 * namespace.sum(white**2, axis=-1) - constant

    def sample(self, key: jax.Array) -> Any:
        key_component, key_draw = jax.random.split(key)
        origin, unravel = ravel_pytree(self.origin)
        index = jax.random.categorical(key_component, jnp.asarray(self.log_weights))
        noise = jax.random.normal(key_draw, origin.shape, origin.dtype)
        return unravel(origin + jnp.asarray(self.scale_tril) @ (jnp.asarray(self.white_centres)[index] + noise))

    def sample_rows(self, generator: np.random.Generator, number: int) -> np.ndarray:
        """Exact draws, ravelled, one a row, in NumPy."""
        weights, centres = np.exp(np.asarray(self.log_weights, float)), np.asarray(self.white_centres)
        index = generator.choice(len(weights), number, p=weights / weights.sum())
        white = centres[index] + generator.normal(size=(number, centres.shape[1]))
        return linear.ravelled(self.origin, np) + white @ np.asarray(self.scale_tril).T

    def moments(self, namespace: Any = np) -> tuple[Any, Any]:
        """Exact mean and variances of the ravelled position."""
        weights, scale = namespace.exp(namespace.asarray(self.log_weights)), namespace.asarray(self.scale_tril)
        centres = namespace.asarray(self.white_centres) @ scale.T
        mean = weights @ centres
        variances = weights @ (centres - mean) ** 2 + namespace.sum(scale**2, axis=1)
        return linear.ravelled(self.origin, namespace) + mean, variances

    def centres(self, namespace: Any = np) -> Any:
        """The components' means, ravelled, one a row."""
        relative = namespace.asarray(self.white_centres) @ namespace.asarray(self.scale_tril).T
        return linear.ravelled(self.origin, namespace) + relative
