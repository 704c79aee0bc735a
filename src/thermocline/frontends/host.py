"""Densities that JAX cannot look into: a value and a gradient from outside, made differentiable twice."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Evaluate = Callable[[jax.Array, Any], tuple[jax.Array, jax.Array]]  # (vector, data) -> value, gradient


def differentiable(evaluate: Evaluate) -> Callable[[jax.Array, Any], jax.Array]:
    """The log density of a vector from what evaluates it together with its gradient.

    Its gradient costs one evaluation. Second derivatives, which fits at an optimum ask for, are
    central differences of gradients.
    """

    @jax.custom_jvp
    def evaluated(vector: jax.Array, data: Any) -> tuple[jax.Array, jax.Array]:
        return evaluate(vector, data)

    @evaluated.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (vector, data), (direction, _) = primals, tangents
        value, gradient = evaluated(vector, data)
        width = jnp.finfo(vector.dtype).eps ** (1 / 3) * (1 + jnp.max(jnp.abs(vector)))
        step = width / jnp.maximum(jnp.max(jnp.abs(direction)), jnp.finfo(vector.dtype).tiny)
        ahead, behind = (evaluate(vector + sign * step * direction, data)[1] for sign in (1, -1))
        return (value, gradient), (gradient @ direction, (ahead - behind) / (2 * step))

    @jax.custom_jvp
    def log_density(vector: jax.Array, data: Any) -> jax.Array:
        return evaluate(vector, data)[0]

    @log_density.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        value, gradient = evaluated(*primals)
        return value, gradient @ tangents[0]

    return log_density


def on_host(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[jax.Array, Any], jax.Array]:
    """The log density of a vector from a host function of rows, to rows of a value and its gradient."""

    def evaluate(vector: jax.Array, data: Any) -> tuple[jax.Array, jax.Array]:
        both = call_host(function, vector, vector.size + 1)
        return both[0], both[1:]

    return differentiable(evaluate)


def call_host(function: Callable[[np.ndarray], np.ndarray], vector: jax.Array, size: int) -> jax.Array:
    """`function` of NumPy rows (row, dim) to rows (row, size), called from a JAX program; one call for all chains.

    Numbers travel as bits: JAX's callbacks run outside the precision context and would round doubles.
    """
    words = vector.dtype.itemsize // 4

    def on_bits(bits: Any) -> np.ndarray:
        bits = np.ascontiguousarray(np.asarray(bits))
        rows = bits.view(vector.dtype).reshape(-1, vector.size)
        results = np.ascontiguousarray(function(rows.astype(float)), vector.dtype)
        return results.view(np.uint32).reshape(*bits.shape[:-1], size * words)

    bits = jax.lax.bitcast_convert_type(vector, jnp.uint32).reshape(vector.size * words)
    shape = jax.ShapeDtypeStruct((size * words,), jnp.uint32)
    outcome = jax.pure_callback(on_bits, shape, bits, vmap_method="broadcast_all")
    pairs = outcome.reshape(size, words) if words > 1 else outcome
    return jax.lax.bitcast_convert_type(pairs, vector.dtype)


def rowwise(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """A function of one vector as a function of rows."""
    return lambda rows: np.stack([function(row) for row in rows])
