"""The Gaussian base, over any PyTree."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.bases.low_rank import LowRankGaussian
from thermocline.support import linear
from thermocline.support.pytree import pytree

LOG_TWO_PI = float(np.log(2 * np.pi))


@pytree
class Gaussian:
    """A Gaussian on any PyTree.

    `scale_tril` acts on the ravelled position: a lower triangular matrix $L$ with covariance
    $LL^T$, or a vector of standard deviations for independent coordinates.
    """

    mean: Any
    scale_tril: Any
    whitening: Any = None  # the inverse of `scale_tril`, kept where many densities are asked for: a product is faster
    log_constant: Any = None  # of the density at the mean, kept likewise

    @classmethod
    def diagonal(cls, mean: Any, standard_deviation: Any) -> "Gaussian":
        """Independent coordinates; `standard_deviation` is a number or a PyTree like `mean`."""
        return cls(jax.tree.map(_as_floats, mean), _ravelled_like(mean, standard_deviation))

    @classmethod
    def from_covariance(cls, mean: Any, covariance: Any) -> "Gaussian":
        """The Gaussian with this mean and this covariance matrix of the ravelled position."""
        return cls(jax.tree.map(_as_floats, mean), np.linalg.cholesky(np.atleast_2d(covariance))).prepared()

    def prepared(self, namespace: Any = np) -> "Gaussian":
        """The same, with all that its density needs besides the position at hand."""
        scale = namespace.asarray(self.scale_tril)
        whitening = linear.inverse(scale, namespace) if scale.ndim == 2 and self.whitening is None else self.whitening
        return Gaussian(self.mean, self.scale_tril, whitening, self._log_constant(namespace))

    @staticmethod
    def low_rank(mean: Any, deviations: Any, factor: Any) -> LowRankGaussian:
        """Covariance diag(deviations²) + factor factorᵀ; `deviations` is a number or a PyTree like `mean`."""
        return LowRankGaussian(
            jax.tree.map(_as_floats, mean), _ravelled_like(mean, deviations), np.asarray(factor, float)
        )

    def log_density(self, position: Any) -> jax.Array:
        return self.log_density_of_rows(ravel_pytree(position)[0], jnp)

    def log_density_of_rows(self, rows: Any, namespace: Any = np) -> Any:
        """At ravelled positions along the last axis, in NumPy or JAX."""
        scale, centred = namespace.asarray(self.scale_tril), rows - linear.ravelled(self.mean, namespace)
        white = linear.whiten(scale, self.whitening, centred, namespace)
        constant = self._log_constant(namespace) if self.log_constant is None else self.log_constant
        return constant - 0.5 * namespace.sum(white**2, axis=-1)

    def _log_constant(self, namespace: Any) -> Any:
        scale = namespace.asarray(self.scale_tril)
        return -0.5 * scale.shape[-1] * LOG_TWO_PI - linear.log_determinant(scale, namespace)

    def sample(self, key: jax.Array) -> Any:
        flat, unravel = ravel_pytree(self.mean)
        noise = jax.random.normal(key, flat.shape, flat.dtype)
        return unravel(flat + linear.multiply(jnp.asarray(self.scale_tril), noise))

    def sample_rows(self, generator: np.random.Generator, number: int) -> np.ndarray:
        """Exact draws, ravelled, one a row, in NumPy."""
        mean = linear.ravelled(self.mean, np)
        return mean + linear.multiply(np.asarray(self.scale_tril), generator.normal(size=(number, mean.size)))

    def moments(self, namespace: Any = np) -> tuple[Any, Any]:
        """Exact mean and variances of the ravelled position."""
        variances = linear.covariance(namespace.asarray(self.scale_tril))
        diagonal = variances if variances.ndim == 1 else namespace.diagonal(variances)
        return linear.ravelled(self.mean, namespace), diagonal

    def covariance(self, namespace: Any = np) -> Any:
        """Exact covariance matrix of the ravelled position."""
        squared = linear.covariance(namespace.asarray(self.scale_tril))
        return namespace.diag(squared) if squared.ndim == 1 else squared


def _ravelled_like(mean: Any, values: Any) -> np.ndarray:
    """A number, or a PyTree like `mean`, as a vector of the mean's size."""
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(values)]).astype(float)
    return np.broadcast_to(flat, (sum(np.size(leaf) for leaf in jax.tree.leaves(mean)),))


def _as_floats(leaf: Any) -> Any:
    """A leaf as it is, unless it holds integers."""
    return leaf if np.issubdtype(np.asarray(leaf).dtype, np.floating) else np.asarray(leaf, float)
