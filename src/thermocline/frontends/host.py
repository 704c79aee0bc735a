"""Densities that JAX cannot look into: value and gradient from outside, in NumPy or anything that NumPy can call."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.support.errors import ThermoclineError, brief, reason
from thermocline.support.flat import ravelled, ravelled_rows, unravelled
from thermocline.support.precision import cast, computing_in, to_numpy
from thermocline.target import Target, check_position, describe

Rows = Callable[[np.ndarray], np.ndarray]  # (row, dim) -> (row, size)


def from_numpy(value_and_grad: Callable[[Any], tuple[Any, Any]], initial_position: Any) -> Target:
    """A target from a host function that returns the log density and its gradient, shaped like the position.

    A function that also takes positions with a leading axis, and returns values and gradients with it, is called once
    for all chains.
    """
    if not callable(value_and_grad):
        raise ThermoclineError(f"value_and_grad is {brief(value_and_grad)}; give a function of a position.")
    check_position(initial_position)
    with computing_in("float64"):
        start = to_numpy(cast(initial_position, "float64"))
    _check(value_and_grad, start)

    @rowwise
    def one_by_one(vector: np.ndarray) -> np.ndarray:
        value, gradient = value_and_grad(unravelled(vector, start))
        return np.append(float(value), ravelled(gradient))

    def at_once(rows: np.ndarray) -> np.ndarray:
        values, gradient = value_and_grad(unravelled(rows, start))
        return np.concatenate([np.reshape(values, (len(rows), 1)), ravelled_rows(gradient)], axis=1)

    rows = ravelled(start) + 1e-3 * np.random.default_rng(0).normal(size=(3, ravelled(start).size))
    try:
        is_batched = bool(np.allclose(at_once(rows), one_by_one(rows), rtol=1e-6, equal_nan=True))
    except Exception:  # noqa: BLE001 - whatever a function written for one position says to several
        is_batched = False
    function = at_once if is_batched else one_by_one
    log_density = on_host(function)

    def host(rows: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
        both = function(rows)
        return both[:, 0], both[:, 1:]

    return Target(lambda position: log_density(ravel_pytree(position)[0], None), start, host=host)


def _check(value_and_grad: Callable[[Any], Any], position: Any) -> None:
    """One call at the start must give a number and a gradient of the position's shape."""
    try:
        outcome = value_and_grad(position)
    except Exception as error:
        raise ThermoclineError(
            f"value_and_grad could not be called at the initial position: {reason(error)}."
        ) from error
    if not (isinstance(outcome, tuple | list) and len(outcome) == 2):
        raise ThermoclineError(
            f"value_and_grad returns {type(outcome).__name__} where a pair is needed: log density, gradient."
        )
    value, gradient = outcome
    if np.size(value) != 1 or not np.issubdtype(np.asarray(value).dtype, np.number):
        raise ThermoclineError(f"value_and_grad returns {brief(value)} as the log density where one number is needed.")
    expected, actual = ([np.shape(leaf) for leaf in jax.tree.leaves(tree)] for tree in (position, gradient))
    if expected != actual or jax.tree.structure(gradient) != jax.tree.structure(position):
        raise ThermoclineError(
            f"value_and_grad returns a gradient of shapes {actual} where the position has {expected}; "
            "return it as the same PyTree."
        )
    if not np.isfinite(value):
        raise ThermoclineError(
            f"log density is {float(value)} at the initial position ({describe(position)}); "
            "pass an `initial_position` inside the support."
        )


def on_host(function: Rows) -> Callable[[jax.Array, Any], jax.Array]:
    """The log density of a vector from a host function of rows, to rows of a value and its gradient."""

    def evaluate(vector: jax.Array, data: Any) -> tuple[jax.Array, jax.Array]:
        both = call_host(function, vector, vector.size + 1)
        return both[0], both[1:]

    return differentiable(evaluate)


def differentiable(
    evaluate: Callable[[jax.Array, Any], tuple[jax.Array, jax.Array]],
) -> Callable[[jax.Array, Any], jax.Array]:
    """The log density of (vector, data) from what evaluates it together with its gradient.

    Its gradient costs one evaluation. Second derivatives, which fits at an optimum ask for, are
    central differences of gradients.
    """
    evaluated = jax.custom_jvp(evaluate)

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


def call_host(function: Rows, vector: jax.Array, size: int) -> jax.Array:
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


def rowwise(function: Rows) -> Rows:
    """A function of one vector as a function of rows."""
    return lambda rows: np.stack([function(row) for row in rows])
