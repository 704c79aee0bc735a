r"""The metric of a move: a covariance $S S^\top$ that follows the path from base to target.

Between a Gaussian base with covariance $\Sigma_0$ and a Gaussian target with $\Sigma_1$ the precision is exactly
$(1-\beta)\Sigma_0^{-1} + \beta\Sigma_1^{-1}$. One basis diagonalises both, so that a beta of its own for every chain
costs a vector of widths, not a factorisation.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

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

    base_scale: jax.Array
    basis: jax.Array
    variances: jax.Array  # of the target, relative to the base
    centres: jax.Array | None = None  # of the components of a base that is a mixture, one a row

    def at(self, inverse_temperature: jax.Array) -> Scale:
        """The scale at one beta."""
        precision = (1 - inverse_temperature) + inverse_temperature / self.variances
        return Scale(self.basis, precision**-0.5)

    def adapted(self, position: jax.Array, weight: jax.Array) -> "Metric":
        """Refitted to (chain, draw) positions weighted for the target, shrunk towards the shape of the base.

        The weights' effective number counts only as far as chains share it: one chain that sits still somewhere
        has no spread and knows nothing. Where the base is a mixture, spread is counted about the mean of the draws
        nearest to the same centre: what a move has to cross is a mode, not the distance between modes.
        """
        num_chains, by_chain = weight.shape[0], jnp.sum(weight, axis=1)
        shared_by = 1.0 if num_chains == 1 else (1 / jnp.sum(by_chain**2) - 1) / (num_chains - 1)
        position, weight = position.reshape(-1, position.shape[-1]), jnp.ravel(weight)
        white = jax.vmap(linear.solve, (None, 0))(self.base_scale, position - self._means(position, weight))
        size = shared_by / jnp.sum(weight**2)
        dimension = position.shape[1]
        diagonal = jnp.maximum(weight @ white**2, 1e-12)
        prior_size = 10.0 + (dimension if self.base_scale.ndim == 2 else 0)
        shrinkage = prior_size / (prior_size + size)
        typical = jnp.exp((1 - shrinkage) * jnp.mean(jnp.log(diagonal)))  # with no draws, the base's own
        if self.base_scale.ndim == 1:
            basis, variances = self.base_scale, (1 - shrinkage) * diagonal + shrinkage * typical
        else:
            covariance = (1 - shrinkage) * (white.T * weight) @ white + shrinkage * typical * jnp.eye(dimension)
            variances, vectors = jnp.linalg.eigh(covariance)
            basis = self.base_scale @ vectors
        usable = jnp.all(jnp.isfinite(basis)) & jnp.all(jnp.isfinite(variances)) & jnp.all(variances > 0)
        return self._replace(
            basis=jnp.where(usable, basis, self.basis), variances=jnp.where(usable, variances, self.variances)
        )

    def _means(self, position: jax.Array, weight: jax.Array) -> jax.Array:
        """For each draw, the mean of the draws of its neighbourhood."""
        if self.centres is None:
            return weight @ position
        solve = jax.vmap(linear.solve, (None, 0))
        white, centres = solve(self.base_scale, position), solve(self.base_scale, self.centres)
        squares = jnp.sum(centres**2, axis=1) - 2 * white @ centres.T
        belongs = jax.nn.one_hot(jnp.argmin(squares, axis=1), len(centres), dtype=position.dtype)
        totals = belongs.T @ weight
        means = (belongs.T * weight) @ position / jnp.where(totals > 0, totals, 1.0)[:, None]
        return belongs @ means


def metric_of(base_scale: jax.Array, centres: jax.Array | None = None) -> Metric:
    """Before anything is known of the target: the base's covariance everywhere."""
    return Metric(base_scale, base_scale, jnp.ones(base_scale.shape[0], base_scale.dtype), centres)
