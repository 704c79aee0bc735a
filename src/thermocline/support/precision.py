"""Double precision for our own computations, without touching the user's JAX settings."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.support.errors import ThermoclineError, brief
from thermocline.support.interrupts import held

PRECISIONS = ("float64", "float32")


@contextmanager
def computing_in(precision: str) -> Iterator[None]:
    """Run the body with `precision` as JAX's widest float, signals held, and NumPy silent; restores all of it after.

    Searches and fits reach where densities and slopes are beyond numbers: that is refused there, and no news to anyone.
    """
    if not (isinstance(precision, str) and precision in PRECISIONS):
        raise ThermoclineError(f"precision is {brief(precision)}; choose one of {', '.join(PRECISIONS)}.")
    with held(), jax.enable_x64(precision == "float64"), np.errstate(all="ignore"):
        yield


def cast(tree: Any, precision: str) -> Any:
    """Every inexact leaf as a JAX array of `precision`; other arrays keep their type."""

    def cast_leaf(leaf: Any) -> jax.Array:
        array = leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)
        if array.dtype.kind in "OSUMm":
            raise ThermoclineError(f"{brief(leaf)} stands where a base, data or a method need numbers; give floats.")
        if jnp.issubdtype(array.dtype, jnp.inexact) and array.dtype != precision:
            array = np.asarray(array).astype(precision)  # on the host: nothing to compile
        return array if isinstance(array, jax.Array) else jax.device_put(np.array(array))  # JAX remembers the original

    return jax.tree.map(cast_leaf, tree)


def to_numpy(tree: Any) -> Any:
    """The same tree with NumPy leaves: what leaves the precision context must not be a JAX array."""
    return jax.tree.map(np.asarray, tree)
