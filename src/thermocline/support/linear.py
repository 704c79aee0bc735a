r"""Scale factors $L$ of a covariance $LL^\top$: a vector is a diagonal, a matrix is lower triangular.

A Gaussian base and the metric of a mover are both one of these. Vectors lie along the last axis, behind any others;
where a formula serves NumPy and JAX alike, the namespace (`np` or `jnp`) is its last argument.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.support import flat


def ravelled(tree: Any, namespace: Any) -> Any:
    """The leaves of a PyTree as one vector."""
    return flat.ravelled(tree) if namespace is np else ravel_pytree(tree)[0]


def multiply(scale: Any, vector: Any) -> Any:
    """L v."""
    return scale * vector if scale.ndim == 1 else vector @ scale.T


def inverse(scale: Any, namespace: Any = jnp) -> Any:
    """The inverse of a lower triangular matrix, or of a stack of them.

    Products with it serve for solves, which, mapped over many vectors, are slow on CPUs and can hang on two cores.
    """
    if namespace is not np:
        identity = jnp.broadcast_to(jnp.eye(scale.shape[-1], dtype=scale.dtype), scale.shape)
        return jax.scipy.linalg.solve_triangular(scale, identity, lower=True)
    diagonal = np.diagonal(scale, axis1=-2, axis2=-1)  # in its units rounding is that of a triangular solve
    return np.tril(np.linalg.inv(scale / diagonal[..., None])) / diagonal[..., None, :]


def log_determinant(scale: Any, namespace: Any = jnp) -> Any:
    """Log |det L|."""
    diagonal = scale if namespace.ndim(scale) == 1 else namespace.diagonal(scale, axis1=-2, axis2=-1)
    return namespace.sum(namespace.log(namespace.abs(diagonal)), axis=-1)


def log_sum_exp(values: Any, namespace: Any = np, axis: int = -1) -> Any:
    """Log of the sum of exponentials along an axis."""
    if namespace is not np:
        return jax.nn.logsumexp(values, axis=axis)
    largest = np.max(values, axis=axis, keepdims=True)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.sum(np.exp(values - shift), axis=axis)) + np.squeeze(shift, axis=axis)


def triangular(root: np.ndarray) -> np.ndarray:
    """The lower triangle L with L Lᵀ = R Rᵀ: by QR, so that the narrow is not lost beside the wide."""
    upper = np.linalg.qr(root.T)[1]
    return (upper * np.where(np.diagonal(upper) < 0, -1.0, 1.0)[:, None]).T
