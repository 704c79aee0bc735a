r"""The metric of a move: a covariance $S S^\top$ that follows the path from base to target.

Between a Gaussian base with covariance $\Sigma_0$ and a Gaussian target with $\Sigma_1$ the precision is exactly
$(1-\beta)\Sigma_0^{-1} + \beta\Sigma_1^{-1}$. One basis diagonalises both, so that a beta of its own for every chain
costs a vector of widths, not a factorisation.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.records import Array
from thermocline.support import linear


class Scale(NamedTuple):
    """S = basis times diag(widths); a basis given as a vector is diagonal."""

    basis: jax.Array
    widths: jax.Array

    def multiply(self, vector: jax.Array) -> jax.Array:
        """S v."""
        return linear.multiply(self.basis, self.widths * vector)

    def multiply_transposed(self, vector: jax.Array) -> jax.Array:
        """The transpose of S times v."""
        return self.widths * (self.basis * vector if self.basis.ndim == 1 else vector @ self.basis)

    def append(self, width: jax.Array) -> "Scale":
        """The scale with one more, independent coordinate."""
        if self.basis.ndim == 1:
            basis = jnp.append(self.basis, 1.0)
        else:
            basis = jax.scipy.linalg.block_diag(self.basis, jnp.ones((1, 1), self.basis.dtype))
        return Scale(basis, jnp.append(self.widths, width))


class Metric(NamedTuple):
    """The base's scale, a basis in which base and target are both diagonal, and the target's variances in it."""

    base_scale: Array
    basis: Array
    variances: Array  # of the target, relative to the base
    centres: Array | None = None  # of the components of a base that is a mixture, one a row

    def at(self, inverse_temperature: jax.Array) -> Scale:
        """The scale at one beta."""
        precision = (1 - inverse_temperature) + inverse_temperature / self.variances
        return Scale(self.basis, precision**-0.5)

    def mean_log_width(self, betas: np.ndarray) -> np.ndarray:
        """Log of the widths at some betas, averaged over coordinates; on the host, with leading axes."""
        precision = (1 - betas)[:, None] + betas[:, None] / self.variances[..., None, :]
        return -0.5 * np.mean(np.log(precision), axis=-1)

    def adapted(self, position: np.ndarray, weight: np.ndarray) -> "Metric":
        """Refitted to (chain, draw) positions weighted for the target, shrunk towards the shape of the base.

        The weights' effective number counts only as far as chains share it: one chain that sits still somewhere
        has no spread and knows nothing. Where the base is a mixture, spread is counted about the mean of the draws
        nearest to the same centre: what a move has to cross is a mode, not the distance between modes.

        On the host; leading axes, over targets, go through.
        """
        num_chains, by_chain = weight.shape[-2], np.sum(weight, axis=-1)
        shared_by = 1.0 if num_chains == 1 else (1 / np.sum(by_chain**2, axis=-1) - 1) / (num_chains - 1)
        dimension = position.shape[-1]
        white = self._whitened(position.reshape(*position.shape[:-3], -1, dimension))
        weight = weight.reshape(*weight.shape[:-2], -1)
        white = white - self._means(white, weight)
        size = (shared_by / np.sum(weight**2, axis=-1))[..., None]
        diagonal = np.maximum((weight[..., None, :] @ white**2)[..., 0, :], 1e-12)
        prior_size = 10.0 + (dimension if self.is_dense else 0)
        shrinkage = prior_size / (prior_size + size)
        typical = np.exp((1 - shrinkage) * np.mean(np.log(diagonal), axis=-1, keepdims=True))  # no draws: the base's
        if self.is_dense:
            covariance = (1 - shrinkage)[..., None] * (np.swapaxes(white, -1, -2) * weight[..., None, :]) @ white
            covariance = covariance + (shrinkage * typical)[..., None] * np.eye(dimension)
            variances, vectors = eigenvectors(covariance)
            basis = self.base_scale @ vectors
        else:
            basis, variances = self.base_scale, (1 - shrinkage) * diagonal + shrinkage * typical
        return self._where_usable(basis, variances)

    @property
    def is_dense(self) -> bool:
        return self.base_scale.ndim > self.variances.ndim

    def _where_usable(self, basis: np.ndarray, variances: np.ndarray) -> "Metric":
        """With a new basis and variances where these are numbers."""
        usable = np.all(np.isfinite(variances) & (variances > 0), axis=-1, keepdims=True)
        if self.is_dense:
            usable = usable & np.all(np.isfinite(basis), axis=(-1, -2))[..., None]
        return self._replace(
            basis=np.where(usable[..., None] if self.is_dense else usable, basis, self.basis),
            variances=np.where(usable, variances, self.variances),
        )

    def _whitened(self, rows: np.ndarray) -> np.ndarray:
        """Rows in units of the base's scale."""
        if not self.is_dense:
            return rows / self.base_scale[..., None, :]
        return rows @ np.swapaxes(np.linalg.inv(self.base_scale), -1, -2)

    def _means(self, white: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """For each draw, the mean of the draws that are nearest to the same centre; in units of the base's scale."""
        if self.centres is None:
            return weight[..., None, :] @ white
        is_alone = self.centres == self.centres[..., :1, :]  # target by target: none may depend on its company
        is_alone = np.all(is_alone | np.isnan(self.centres), axis=(-2, -1), keepdims=True) & (white.ndim > 2)
        overall = np.sum(weight[..., None] * white, axis=-2, keepdims=True)
        if is_alone.all():
            return overall
        centres = self._whitened(self.centres)
        squares = np.sum(centres**2, axis=-1)[..., None, :] - 2 * white @ np.swapaxes(centres, -1, -2)
        nearest = np.argmin(squares, axis=-1)
        belongs = (nearest[..., None, :] == np.arange(centres.shape[-2])[:, None]).astype(white.dtype)
        totals = belongs @ weight[..., None]
        means = (belongs * weight[..., None, :]) @ white / np.where(totals > 0, totals, 1.0)
        return np.where(is_alone, overall, np.take_along_axis(means, nearest[..., None], axis=-2))


def eigenvectors(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors; NaN for a matrix that is not all numbers."""
    is_usable = np.all(np.isfinite(covariance), axis=(-1, -2), keepdims=True)
    symmetric = 0.5 * (covariance + np.swapaxes(covariance, -1, -2))
    values, vectors = np.linalg.eigh(np.where(is_usable, symmetric, np.eye(covariance.shape[-1])))
    return np.where(is_usable[..., 0], values, np.nan), vectors


def metric_of(base_scale: Array, centres: Array | None = None) -> Metric:
    """Before anything is known of the target: the base's covariance everywhere."""
    return Metric(base_scale, base_scale, np.ones(base_scale.shape[0], base_scale.dtype), centres)
