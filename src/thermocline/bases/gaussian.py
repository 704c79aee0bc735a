"""The Gaussian base, over any PyTree."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline import linear
from thermocline.pytree import pytree


@pytree
class Gaussian:
    """A Gaussian on any PyTree.

    `scale_tril` acts on the ravelled position: a lower triangular matrix $L$ with covariance
    $LL^T$, or a vector of standard deviations for independent coordinates.
    """

    mean: Any
    scale_tril: Any

    @classmethod
    def diagonal(cls, mean: Any, standard_deviation: Any) -> "Gaussian":
        """Independent coordinates; `standard_deviation` is a number or a PyTree like `mean`."""
        mean = jax.tree.map(_as_floats, mean)
        deviations = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(standard_deviation)]).astype(float)
        size = sum(np.size(leaf) for leaf in jax.tree.leaves(mean))
        return cls(mean, np.broadcast_to(deviations, (size,)))

    @classmethod
    def from_covariance(cls, mean: Any, covariance: Any) -> "Gaussian":
        """The Gaussian with this mean and this covariance matrix of the ravelled position."""
        return cls(jax.tree.map(_as_floats, mean), np.linalg.cholesky(np.atleast_2d(covariance)))

    def log_density(self, position: Any) -> jax.Array:
        centred = ravel_pytree(position)[0] - ravel_pytree(self.mean)[0]
        white = linear.solve(self.scale_tril, centred)
        return -0.5 * (white @ white + white.size * jnp.log(2 * jnp.pi)) - linear.log_determinant(self.scale_tril)

    def sample(self, key: jax.Array) -> Any:
        flat, unravel = ravel_pytree(self.mean)
        return unravel(flat + linear.multiply(self.scale_tril, jax.random.normal(key, flat.shape, flat.dtype)))

    def moments(self) -> tuple[jax.Array, jax.Array]:
        """Exact mean and variances of the ravelled position."""
        variances = linear.covariance(self.scale_tril)
        return ravel_pytree(self.mean)[0], variances if variances.ndim == 1 else jnp.diagonal(variances)


def _as_floats(leaf: Any) -> Any:
    """A leaf as it is, unless it holds integers."""
    return leaf if np.issubdtype(np.asarray(leaf).dtype, np.floating) else np.asarray(leaf, float)
