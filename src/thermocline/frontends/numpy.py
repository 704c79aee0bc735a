"""Any host function with a gradient, in NumPy or anything that NumPy can call."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.frontends.host import on_host, rowwise
from thermocline.support.errors import ThermoclineError
from thermocline.support.flat import ravelled, ravelled_rows, unravelled
from thermocline.support.precision import cast, computing_in, to_numpy
from thermocline.target import Target, check_position, describe


def from_numpy(value_and_grad: Callable[[Any], tuple[Any, Any]], initial_position: Any) -> Target:
    """A target from a host function that returns the log density and its gradient, shaped like the position.

    A function that also takes positions with a leading axis, and returns values and gradients with it, is called once
    for all chains.
    """
    if not callable(value_and_grad):
        raise ThermoclineError(f"value_and_grad is {value_and_grad!r}; give a function of a position.")
    check_position(initial_position)
    with computing_in("float64"):
        start = to_numpy(cast(initial_position, "float64"))

    def one(vector: np.ndarray) -> np.ndarray:
        value, gradient = value_and_grad(unravelled(vector, start))
        return np.append(float(value), ravelled(gradient))

    def many(rows: np.ndarray) -> np.ndarray:
        values, gradient = value_and_grad(unravelled(rows, start))
        return np.concatenate([np.reshape(values, (len(rows), 1)), ravelled_rows(gradient)], axis=1)

    _check(value_and_grad, start)
    function = many if _is_batched(many, one, ravelled(start)) else rowwise(one)
    log_density = on_host(function)

    def host(rows: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
        both = function(rows)
        return both[:, 0], both[:, 1:]

    return Target(lambda position: log_density(ravel_pytree(position)[0], None), start, host=host)


def _check(value_and_grad: Callable[[Any], Any], position: Any) -> None:
    """One call at the start must give a number and a gradient of the position's shape."""
    outcome = value_and_grad(position)
    if not (isinstance(outcome, tuple | list) and len(outcome) == 2):
        raise ThermoclineError(
            f"value_and_grad returns {type(outcome).__name__} where a pair is needed: log density, gradient."
        )
    value, gradient = outcome
    if np.size(value) != 1 or not np.issubdtype(np.asarray(value).dtype, np.number):
        raise ThermoclineError(f"value_and_grad returns {value!r} as the log density where one number is needed.")
    expected = [np.shape(leaf) for leaf in jax.tree.leaves(position)]
    actual = [np.shape(leaf) for leaf in jax.tree.leaves(gradient)]
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


def _is_batched(many: Callable[[np.ndarray], np.ndarray], one: Callable[[np.ndarray], np.ndarray], flat: Any) -> bool:
    """Whether rows at once give what they give one by one."""
    rows = flat + 1e-3 * np.random.default_rng(0).normal(size=(3, flat.size))
    try:
        return bool(np.allclose(many(rows), rowwise(one)(rows), rtol=1e-6, equal_nan=True))
    except Exception:  # noqa: BLE001 - whatever a function written for one position says to several
        return False
