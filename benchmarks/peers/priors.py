"""Priors with independent coordinates, in closed form for NumPy and JAX alike."""

from typing import Any

import numpy as np

from benchmarks.peers.record import Array, Library, Prior, softplus


def logit(unit: Array, library: Library) -> Array:
    return library.np.log(unit) - library.np.log1p(-unit)


def logistic(location: Any, scale: Any) -> Prior:
    """Logistic margins; with scale 1 about 0 it is what a uniform variable on (0, 1) becomes on the logit scale."""

    def log_density(x: Array, library: Library) -> Array:
        z = (x - location) / scale
        return library.np.sum(-z - 2 * softplus(-z, library) - np.log(scale), axis=-1)

    return Prior(lambda unit, library: location + scale * logit(unit, library), log_density)


def cauchy(location: np.ndarray, scale: np.ndarray) -> Prior:
    def log_density(x: Array, library: Library) -> Array:
        return library.np.sum(-library.np.log1p(((x - location) / scale) ** 2) - np.log(np.pi * scale), axis=-1)

    return Prior(lambda unit, library: location + scale * library.np.tan(np.pi * (unit - 0.5)), log_density)


def sticks(number: int) -> Prior:
    """The uniform law on the simplex of `number` + 1 shares, by logits of stick-breaking fractions."""
    left = np.arange(number, 0, -1.0)  # the fraction of stick i is Beta(1, left)

    def inverse(unit: Array, library: Library) -> Array:
        log_rest = library.np.log1p(-unit) / left  # log(1 - fraction)
        return library.np.log(-library.np.expm1(log_rest)) - log_rest

    def log_density(x: Array, library: Library) -> Array:
        falls = -softplus(-x, library) - left * softplus(x, library)
        return library.np.sum(falls + np.log(left), axis=-1)

    return Prior(inverse, log_density)
