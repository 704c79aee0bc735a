"""A Gaussian whose correlations have low rank: many dimensions at little cost."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.support import linear
from thermocline.support.pytree import pytree


@pytree
class LowRankGaussian:
    r"""A Gaussian on any PyTree with covariance $\mathrm{diag}(d^2) + FF^\top$ of the ravelled position.

    `deviations` is the vector $d$ and `factor` the matrix $F$, of a row for each of $D$ coordinates and $R$
    columns. Density and draw cost $O(DR^2)$ and no matrix has more than $DR$ entries.
    """

    mean: Any
    deviations: Any
    factor: Any

    def log_density(self, position: Any) -> jax.Array:
        return self.log_density_of_rows(ravel_pytree(position)[0], jnp)

    def log_density_of_rows(self, rows: Any, namespace: Any = np) -> Any:
        r"""Woodbury's identity as ridge regression, and the matrix determinant lemma, in NumPy or JAX.

        With $w = (x - m)/d$ and $W = F/d$ the squared distance is $\min_c |w - Wc|^2 + |c|^2$: a sum of squares,
        where the usual $|w|^2 - |C^{-1}W^\top w|^2$ would cancel for a factor much wider than the deviations.
        """
        deviations = namespace.asarray(self.deviations)
        white = (rows - linear.ravelled(self.mean, namespace)) / deviations
        factor = namespace.asarray(self.factor) / deviations[:, None]
        root = namespace.linalg.cholesky(namespace.eye(factor.shape[1], dtype=factor.dtype) + factor.T @ factor)
        half = linear.inverse(root, namespace)
        coefficients = (white @ factor) @ half.T @ half
        rest = white - coefficients @ factor.T
        log_determinant = linear.log_determinant(deviations, namespace) + linear.log_determinant(root, namespace)
        distance = namespace.sum(rest**2, axis=-1) + namespace.sum(coefficients**2, axis=-1)
        return -0.5 * (distance + white.shape[-1] * np.log(2 * np.pi)) - log_determinant

    def sample(self, key: jax.Array) -> Any:
        flat, unravel = ravel_pytree(self.mean)
        key_own, key_shared = jax.random.split(key)
        own = self.deviations * jax.random.normal(key_own, flat.shape, flat.dtype)
        shared = self.factor @ jax.random.normal(key_shared, self.factor.shape[-1:], flat.dtype)
        return unravel(flat + own + shared)

    def sample_rows(self, generator: np.random.Generator, number: int) -> np.ndarray:
        """Exact draws, ravelled, one a row, in NumPy."""
        mean, factor = linear.ravelled(self.mean, np), np.asarray(self.factor)
        own = np.asarray(self.deviations) * generator.normal(size=(number, mean.size))
        return mean + own + generator.normal(size=(number, factor.shape[1])) @ factor.T

    def moments(self, namespace: Any = np) -> tuple[Any, Any]:
        """Exact mean and variances of the ravelled position."""
        own, shared = namespace.square(self.deviations), namespace.sum(namespace.square(self.factor), axis=1)
        return linear.ravelled(self.mean, namespace), own + shared

    def covariance(self, namespace: Any = np) -> Any:
        """Exact covariance matrix of the ravelled position."""
        factor = namespace.asarray(self.factor)
        return namespace.diag(namespace.square(self.deviations)) + factor @ factor.T
