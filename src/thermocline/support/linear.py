r"""Scale factors $L$ of a covariance $LL^\top$: a vector is a diagonal, a matrix is lower triangular.

A Gaussian base and the metric of a mover are both one of these.
"""

from typing import Any

import jax
import jax.numpy as jnp


def multiply(scale: jax.Array, vector: jax.Array) -> jax.Array:
    """L v."""
    return scale * vector if scale.ndim == 1 else scale @ vector


def solve(scale: jax.Array, vector: jax.Array) -> jax.Array:
    """L⁻¹ v, by a product: mapped over many vectors, triangular solves are slow on CPUs and can hang on two cores."""
    return vector / scale if scale.ndim == 1 else inverse(scale) @ vector


def whiten(base: Any, vector: jax.Array) -> jax.Array:
    """L⁻¹ v of a base, by the inverse that it keeps if it does."""
    return solve(base.scale_tril, vector) if base.whitening is None else base.whitening @ vector


def inverse(scale: jax.Array) -> jax.Array:
    """The inverse of a lower triangular matrix, or of a stack of them."""
    identity = jnp.broadcast_to(jnp.eye(scale.shape[-1], dtype=scale.dtype), scale.shape)
    return jax.scipy.linalg.solve_triangular(scale, identity, lower=True)


def log_determinant(scale: jax.Array) -> jax.Array:
    """Log |det L|."""
    diagonal = scale if scale.ndim == 1 else jnp.diagonal(scale)
    return jnp.sum(jnp.log(jnp.abs(diagonal)))


def covariance(scale: jax.Array) -> jax.Array:
    """L Lᵀ: the variances for a diagonal, the matrix otherwise."""
    return scale**2 if scale.ndim == 1 else scale @ scale.T
