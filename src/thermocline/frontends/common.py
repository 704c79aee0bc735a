"""What front ends share: optional packages, data as leaves, and a first position."""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import to_numpy
from thermocline.target import describe

NUM_STARTS = 256
WIDTH = 2.0  # of the box in which a start is looked for, as Stan and NumPyro have it


def needs(package: str, extra: str) -> Any:
    """An optional package, or a sentence on how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ThermoclineError(
            f"{package} is not installed ({error}); run `pip install 'thermocline[{extra}]'`."
        ) from error


def those_that_trace(function: Callable[[list[Any]], Any], leaves: Sequence[Any]) -> list[bool]:
    """Which leaves may be inputs of a compiled program, instead of constants: those that decide no shape or branch."""
    if _traces(function, leaves, [True] * len(leaves)):
        return [True] * len(leaves)
    chosen = [False] * len(leaves)
    for i in range(len(leaves)):
        chosen[i] = True
        chosen[i] = _traces(function, leaves, chosen)
    return chosen


def _traces(function: Callable[[list[Any]], Any], leaves: Sequence[Any], chosen: list[bool]) -> bool:
    def partly(inputs: list[Any]) -> Any:
        given = iter(inputs)
        return function([next(given) if use else leaf for leaf, use in zip(leaves, chosen, strict=True)])

    try:
        jax.eval_shape(partly, [leaf for leaf, use in zip(leaves, chosen, strict=True) if use])
    except Exception:  # noqa: BLE001 - a model that cannot be traced says so in many ways
        return False
    return True


def first_position(log_density: Callable[[Any, Any], Any], guess: Any, data: Any) -> Any:
    """The guess where the log density is finite, else the best of random positions around it."""
    flat, unravel = ravel_pytree(guess)
    offsets = np.random.default_rng(0).uniform(-WIDTH, WIDTH, (NUM_STARTS, flat.size))
    offsets[0] = 0

    @jax.jit
    def one(position: jax.Array, data: Any) -> tuple[jax.Array, jax.Array]:
        value, gradient = jax.value_and_grad(lambda flat: log_density(unravel(flat), data))(position)
        return value, jnp.all(jnp.isfinite(gradient))

    value, has_slope = to_numpy(one(flat, data))
    if np.isfinite(value) and has_slope:
        return to_numpy(guess)
    values, have_slopes = to_numpy(jax.vmap(one, (0, None))(flat + offsets, data))
    usable = np.isfinite(values) & have_slopes
    if not usable.any():
        raise ThermoclineError(
            f"log density is not finite at {NUM_STARTS} positions tried as a start ({value} at {describe(guess)}, "
            "unconstrained); are all data inside the support of their distributions?"
        )
    return to_numpy(unravel(jnp.asarray(flat + offsets[np.argmax(np.where(usable, values, -np.inf))])))


def not_a_number(values: dict[str, Any], what: str) -> None:
    """Raise where an observation is missing."""
    for name, value in values.items():
        array = np.ma.asarray(value)
        if array.dtype.kind not in "fc":
            continue
        missing = np.ma.getmaskarray(array) | np.isnan(array.filled(0.0))
        if missing.any():
            raise ThermoclineError(
                f"{what} {name} is missing (NaN) at {int(missing.sum())} of {missing.size} places; "
                "leave these observations out, or write them as parameters of the model."
            )
