"""What front ends share: data as leaves, and a first position."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.support.errors import ThermoclineError, cause_of
from thermocline.support.precision import to_numpy
from thermocline.target import describe, not_finite

NUM_STARTS = 256
WIDTH = 2.0  # of the box in which a start is looked for, as Stan and NumPyro have it


def data_among(values: dict[str, Any], evaluate: Callable[[dict[str, Any]], Any]) -> dict[str, np.ndarray]:
    """The arrays that may be inputs of a compiled program, instead of constants: those that decide no shape or branch.

    `evaluate` is a function of all of them by name.
    """

    def traces(names: list[str]) -> bool:
        try:
            jax.eval_shape(lambda inputs: evaluate(values | inputs), {name: values[name] for name in names})
        except Exception:  # noqa: BLE001 - a model that cannot be traced says so in many ways
            return False
        return True

    chosen: list[str] = list(values) if traces(list(values)) else []
    for name in values:
        if name not in chosen and traces([*chosen, name]):
            chosen.append(name)
    return {name: np.asarray(values[name]) for name in chosen}


def check_data(data: Any, own: dict[str, Any]) -> None:
    """Raise where data given for a model's own have another name or shape; those left out stay the model's."""
    if not isinstance(data, dict):
        raise ThermoclineError(
            f"data are of type {type(data).__name__}; give a dict of some of the model's data by name "
            f"({', '.join(own)})."
        )
    for name, value in data.items():
        if name not in own:
            raise ThermoclineError(f"the model has no data {name!r}; its data are {', '.join(own)}.")
        if np.shape(value) != np.shape(own[name]):
            raise ThermoclineError(
                f"data {name} are of shape {np.shape(value)} where the model was built with {np.shape(own[name])}; "
                "give data of the same shape, and of many data sets the axis over them first."
            )


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
            f"unconstrained); {not_finite(data or {}) or 'are all data inside the support of their distributions?'}"
        )
    return to_numpy(unravel(jnp.asarray(flat + offsets[np.argmax(np.where(usable, values, -np.inf))])))


def off_support(value: Any) -> Any:
    """A log density with -inf where it is NaN, as the samplers of the models' own languages have it.

    What overflows far out (a rate, a matrix that is no covariance any more) is no density there, and no error.
    """
    array_library = np if isinstance(value, np.ndarray) else jnp
    return array_library.where(array_library.isnan(value), -np.inf, value)


@contextmanager
def in_a_sentence(arguments: dict[str, Any]) -> Iterator[None]:
    """An error that the model raises where it is looked into: where in it, what is wrong, data that are to blame."""
    try:
        yield
    except ThermoclineError:
        raise
    except (TypeError, ValueError, IndexError) as error:
        blamed = not_finite(arguments)
        remedy = f" {blamed[0].upper()}{blamed[1:]}." if blamed else " Do the shapes of data and parameters fit?"
        raise ThermoclineError(f"the model has no density ({cause_of(error)}).{remedy}") from None


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


def unnormalised(factor: str) -> str:
    """The caveat of a factor that a model multiplies its density by."""
    return (
        f"{factor} multiplies the density by something that need not be normalised: "
        "log Z is the model's evidence only if it is."
    )
