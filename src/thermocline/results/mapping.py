"""Functions of draws and of beta, evaluated by JAX in double precision and given back as NumPy."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from thermocline.paths import Law
from thermocline.paths.laws import log_prior_at
from thermocline.support.precision import computing_in


def map_draws(function: Callable[[Any], Any], draws: Any) -> np.ndarray:
    """The function of every draw, a PyTree with a leading axis: one by one where it cannot be traced."""
    try:
        with computing_in("float64"):
            return np.asarray(_mapped(function, draws), float)
    except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError):
        number = len(jax.tree.leaves(draws)[0])
        return np.array([function(jax.tree.map(lambda leaf: leaf[i], draws)) for i in range(number)], float)  # noqa: B023


def log_prior(law: Law, betas: np.ndarray) -> np.ndarray:
    """-f at each beta."""
    with computing_in("float64"):
        return log_prior_at(law, betas)


def as_betas(betas: Any) -> np.ndarray:
    """One or several inverse temperatures as a flat array."""
    array = np.atleast_1d(np.asarray(betas, float))
    if np.any((array < 0) | (array > 1)):
        raise ValueError("inverse temperatures lie between 0 and 1.")
    return array


@partial(jax.jit, static_argnums=0)
def _mapped(function: Callable[[Any], Any], draws: Any) -> jax.Array:
    """Compiled once for each function."""
    return jax.vmap(function)(draws)
