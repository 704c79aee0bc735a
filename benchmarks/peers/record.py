"""What a problem is to a peer, and what a peer answers; no package but NumPy and SciPy is needed to read them."""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special

Array = Any  # of NumPy or of JAX


class Library(NamedTuple):
    """Arrays and special functions, of NumPy and SciPy or of JAX: formulas are written once for both."""

    np: Any
    special: Any


NUMPY = Library(np, special)


def jax_library() -> Library:
    return Library(importlib.import_module("jax.numpy"), importlib.import_module("jax.scipy.special"))


def jax_in_double() -> Library:
    """JAX's, set to double precision for this process, as NumPy's is."""
    importlib.import_module("jax").config.update("jax_enable_x64", True)
    return jax_library()


class Prior(NamedTuple):
    """Where peers that need one begin: a map of the unit cube, and the density of what it gives; axes (..., D)."""

    inverse: Callable[[Array, Library], Array]
    log_density: Callable[[Array, Library], Array]


class Problem(NamedTuple):
    """An unnormalised density on R^D with its exact integral; `log_density(x, library)` for x of axes (..., D).

    `label` says which mode a row belongs to; `draws(generator, number)` are exact.
    """

    name: str
    dimension: int
    log_density: Callable[[Array, Library], Array]
    log_evidence: Callable[[], float]
    prior: Prior
    draws: Callable[[np.random.Generator, int], np.ndarray]
    num_modes: int = 1
    label: Callable[[np.ndarray], np.ndarray] = lambda rows: np.zeros(len(rows), int)

    def log_likelihood(self, position: Array, library: Library) -> Array:
        """What the prior must be multiplied by."""
        return self.log_density(position, library) - self.prior.log_density(position, library)

    def shares(self, draws: np.ndarray) -> np.ndarray:
        """Of the modes, in equally weighted draws."""
        return np.bincount(self.label(np.asarray(draws)), minlength=self.num_modes) / len(draws)

    def found(self, draws: np.ndarray, exact: np.ndarray) -> int:
        """Modes whose share of the draws is at least a fifth of their exact mass."""
        return int(np.sum(self.shares(draws) >= exact / 5))


class Answer(NamedTuple):
    """Log Z as a peer gives it, its own standard error (none: nan), what it evaluated, and equally weighted draws."""

    log_evidence: float
    error: float
    evaluations: int  # of the density; those with a gradient count once
    draws: np.ndarray
    said: str = ""  # a verdict, or a warning, where the peer gives one


def log_sum_exp(values: Array, library: Library) -> Array:
    """Over the last axis."""
    return library.special.logsumexp(values, axis=-1)


def softplus(x: Array, library: Library) -> Array:
    return library.np.logaddexp(0.0, x)
