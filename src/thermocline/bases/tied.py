"""Gaussians of one covariance about many centres: a mixture for targets with hundreds of modes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.support import linear
from thermocline.support.flat import unravelled
from thermocline.support.pytree import pytree


@pytree
class TiedMixture:
    r"""$(1 - b) \sum_k w_k N(c_k, LL^\top) + b\, N(m, S)$, with $m$ and $S$ the moments of the sum before it.

    A density costs one product with a matrix of centres, not one with a matrix for each component, so that thousands
    of modes are affordable; the broad Gaussian is there for modes that are not listed. Such a base is multimodal; give
    it to a method that jumps. Centres and the broad scale are whitened: in units of $L$, about $m$.
    """

    mean: Any  # a position of the target
    white_centres: Any  # (component, dimension)
    log_weights: Any  # of the components, the broad one last; -inf is padding
    scale_tril: Any
    whitening: Any
    broad_tril: Any
    broad_whitening: Any

    @classmethod
    def of(
        cls, centres: Any, log_weights: Any, covariance: Any, like: Any, *, broad_weight: float = 0.1, room: int = 1
    ) -> "TiedMixture":
        """From ravelled centres, one a row, padded to a multiple of `room`; `like` is a position of the target."""
        centres, log_weights = np.asarray(centres, float), np.asarray(log_weights, float)
        weights = np.exp(log_weights - np.logaddexp.reduce(log_weights))
        mean, scale = weights @ centres, np.linalg.cholesky(covariance)
        whitening = linear.inverse(scale, np)
        number = len(centres)
        white = np.zeros((-(-number // room) * room, len(mean)))
        white[:number] = (centres - mean) @ whitening.T
        padded = np.full(len(white) + 1, -np.inf)
        padded[:number], padded[-1] = np.log1p(-broad_weight) + np.log(weights), np.log(broad_weight)
        broad = np.linalg.cholesky(np.eye(len(mean)) + (white[:number].T * weights) @ white[:number])
        return cls(unravelled(mean, like), white, padded, scale, whitening, broad, linear.inverse(broad, np))

    @property
    def num_components(self) -> int:
        """Components that are not padding, the broad one included."""
        return int(np.sum(np.isfinite(self.log_weights)))

    def log_density(self, position: Any) -> jax.Array:
        return self.log_density_of_rows(ravel_pytree(position)[0], jnp)

    def log_density_of_rows(self, rows: Any, namespace: Any = np) -> Any:
        """At ravelled positions along the last axis, in NumPy or JAX."""
        scale, broad, centres = map(namespace.asarray, (self.scale_tril, self.broad_tril, self.white_centres))
        white = (rows - linear.ravelled(self.mean, namespace)) @ namespace.asarray(self.whitening).T
        narrow = white @ centres.T - 0.5 * namespace.sum(centres**2, axis=1)
        narrow = narrow - 0.5 * namespace.sum(white**2, axis=-1, keepdims=True)
        wide = -0.5 * namespace.sum((white @ namespace.asarray(self.broad_whitening).T) ** 2, axis=-1, keepdims=True)
        heights = namespace.concatenate([narrow, wide - linear.log_determinant(broad, namespace)], axis=-1)
        constant = 0.5 * white.shape[-1] * np.log(2 * np.pi) + linear.log_determinant(scale, namespace)
        return linear.log_sum_exp(namespace.asarray(self.log_weights) + heights, namespace) - constant

    def sample(self, key: jax.Array) -> Any:
        key_component, key_draw = jax.random.split(key)
        mean, unravel = ravel_pytree(self.mean)
        centres = jnp.asarray(self.white_centres)
        index = jax.random.categorical(key_component, jnp.asarray(self.log_weights))
        noise = jax.random.normal(key_draw, mean.shape, mean.dtype)
        narrow = centres[jnp.minimum(index, len(centres) - 1)] + noise
        white = jnp.where(index == len(centres), jnp.asarray(self.broad_tril) @ noise, narrow)
        return unravel(mean + jnp.asarray(self.scale_tril) @ white)

    def sample_rows(self, generator: np.random.Generator, number: int) -> np.ndarray:
        """Exact draws, ravelled, one a row, in NumPy."""
        weights, centres = np.exp(np.asarray(self.log_weights, float)), np.asarray(self.white_centres)
        index = generator.choice(len(weights), number, p=weights / weights.sum())
        noise, is_broad = generator.normal(size=(number, centres.shape[1])), index == len(centres)
        white = noise + centres[np.where(is_broad, 0, index)]
        white[is_broad] = noise[is_broad] @ np.asarray(self.broad_tril).T
        return linear.ravelled(self.mean, np) + white @ np.asarray(self.scale_tril).T

    def moments(self, namespace: Any = np) -> tuple[Any, Any]:
        """Exact mean and variances of the ravelled position: those of the broad Gaussian."""
        root = namespace.asarray(self.scale_tril) @ namespace.asarray(self.broad_tril)
        return linear.ravelled(self.mean, namespace), namespace.sum(root**2, axis=1)

    def centres(self, namespace: Any = np) -> Any:
        """The components' means, ravelled, one a row."""
        relative = namespace.asarray(self.white_centres) @ namespace.asarray(self.scale_tril).T
        return linear.ravelled(self.mean, namespace) + relative
