"""A Gaussian whose correlations have low rank: many dimensions at little cost."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

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
        r"""Woodbury's identity as ridge regression, and the matrix determinant lemma.

        With $w = (x - m)/d$ and $W = F/d$ the squared distance is $\min_c |w - Wc|^2 + |c|^2$: a sum of squares,
        where the usual $|w|^2 - |C^{-1}W^\top w|^2$ would cancel for a factor much wider than the deviations.
        """
        white = (ravel_pytree(position)[0] - ravel_pytree(self.mean)[0]) / self.deviations
        factor = self.factor / jnp.asarray(self.deviations)[:, None]
        root = jnp.linalg.cholesky(jnp.eye(factor.shape[1], dtype=factor.dtype) + factor.T @ factor)
        coefficients = jax.scipy.linalg.cho_solve((root, True), factor.T @ white)
        rest = white - factor @ coefficients
        log_determinant = jnp.sum(jnp.log(jnp.abs(self.deviations))) + jnp.sum(jnp.log(jnp.diagonal(root)))
        distance = rest @ rest + coefficients @ coefficients
        return -0.5 * (distance + white.size * jnp.log(2 * jnp.pi)) - log_determinant

    def sample(self, key: jax.Array) -> Any:
        flat, unravel = ravel_pytree(self.mean)
        key_own, key_shared = jax.random.split(key)
        own = self.deviations * jax.random.normal(key_own, flat.shape, flat.dtype)
        shared = self.factor @ jax.random.normal(key_shared, self.factor.shape[-1:], flat.dtype)
        return unravel(flat + own + shared)

    def moments(self) -> tuple[jax.Array, jax.Array]:
        """Exact mean and variances of the ravelled position."""
        return ravel_pytree(self.mean)[0], jnp.square(self.deviations) + jnp.sum(jnp.square(self.factor), axis=1)

    def covariance(self) -> jax.Array:
        """Exact covariance matrix of the ravelled position."""
        return jnp.diag(jnp.square(self.deviations)) + self.factor @ self.factor.T
