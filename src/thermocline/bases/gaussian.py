"""The Gaussian base, over any PyTree."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.linalg import solve_triangular

from thermocline.bases.low_rank import LowRankGaussian
from thermocline.support import linear
from thermocline.support.pytree import pytree


@pytree
class Gaussian:
    """A Gaussian on any PyTree.

    `scale_tril` acts on the ravelled position: a lower triangular matrix $L$ with covariance
    $LL^T$, or a vector of standard deviations for independent coordinates.
    """

    mean: Any
    scale_tril: Any
    whitening: Any = None  # the inverse of `scale_tril`, kept where many densities are asked for: a product is faster

    @classmethod
    def diagonal(cls, mean: Any, standard_deviation: Any) -> "Gaussian":
        """Independent coordinates; `standard_deviation` is a number or a PyTree like `mean`."""
        return cls(jax.tree.map(_as_floats, mean), _ravelled_like(mean, standard_deviation))

    @classmethod
    def from_covariance(cls, mean: Any, covariance: Any) -> "Gaussian":
        """The Gaussian with this mean and this covariance matrix of the ravelled position."""
        return cls(jax.tree.map(_as_floats, mean), np.linalg.cholesky(np.atleast_2d(covariance))).whitened()

    def whitened(self) -> "Gaussian":
        """The same, with the inverse of its scale at hand."""
        if np.ndim(self.scale_tril) == 1:
            return self
        identity = np.eye(np.shape(self.scale_tril)[-1], dtype=np.asarray(self.scale_tril).dtype)
        return Gaussian(self.mean, self.scale_tril, solve_triangular(self.scale_tril, identity, lower=True))

    @staticmethod
    def low_rank(mean: Any, deviations: Any, factor: Any) -> LowRankGaussian:
        """Covariance diag(deviations²) + factor factorᵀ; `deviations` is a number or a PyTree like `mean`."""
        return LowRankGaussian(
            jax.tree.map(_as_floats, mean), _ravelled_like(mean, deviations), np.asarray(factor, float)
        )

    def log_density(self, position: Any) -> jax.Array:
        white = linear.whiten(self, ravel_pytree(position)[0] - ravel_pytree(self.mean)[0])
        return -0.5 * (white @ white + white.size * jnp.log(2 * jnp.pi)) - linear.log_determinant(self.scale_tril)

    def sample(self, key: jax.Array) -> Any:
        flat, unravel = ravel_pytree(self.mean)
        return unravel(flat + linear.multiply(self.scale_tril, jax.random.normal(key, flat.shape, flat.dtype)))

    def moments(self) -> tuple[jax.Array, jax.Array]:
        """Exact mean and variances of the ravelled position."""
        variances = linear.covariance(self.scale_tril)
        return ravel_pytree(self.mean)[0], variances if variances.ndim == 1 else jnp.diagonal(variances)

    def covariance(self) -> jax.Array:
        """Exact covariance matrix of the ravelled position."""
        squared = linear.covariance(self.scale_tril)
        return jnp.diag(squared) if squared.ndim == 1 else squared


def _ravelled_like(mean: Any, values: Any) -> np.ndarray:
    """A number, or a PyTree like `mean`, as a vector of the mean's size."""
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(values)]).astype(float)
    return np.broadcast_to(flat, (sum(np.size(leaf) for leaf in jax.tree.leaves(mean)),))


def _as_floats(leaf: Any) -> Any:
    """A leaf as it is, unless it holds integers."""
    return leaf if np.issubdtype(np.asarray(leaf).dtype, np.floating) else np.asarray(leaf, float)
