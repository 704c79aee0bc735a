"""Laplace's approximation: the Gaussian with the curvature of the log density at an optimum."""

import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.bases.base import BaseFit
from thermocline.bases.gaussian import Gaussian
from thermocline.bases.optimise import FLAT, are_optima, climb, curvature_at
from thermocline.errors import ThermoclineError
from thermocline.precision import cast, computing_in, to_numpy
from thermocline.target import Target, check_target


def laplace_covariance(curvature: np.ndarray) -> np.ndarray:
    """The inverse of the curvature; directions of next to none are given the least that counts as some."""
    values, vectors = np.linalg.eigh(curvature)
    values = np.maximum(values, FLAT * values[-1])
    return (vectors / values) @ vectors.T


def log_laplace_mass(log_density: float, covariance: np.ndarray) -> float:
    """Log of the integral of a Gaussian of this height and covariance."""
    return float(log_density + 0.5 * (len(covariance) * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1]))


def fit_laplace(target: Target, *, seed: int = 0, precision: str = "float64") -> BaseFit:
    """The Gaussian at the optimum above `initial_position`, with log zeta by Laplace's formula.

    One mode only, and only where the log density is bounded; `seed` is not used.
    """
    with computing_in(precision):
        target = cast(target, precision)
        check_target(target)
        start, unravel = ravel_pytree(target.initial_position)
        optima, num_gradients = climb(target, np.asarray(start)[None])
        curvature = curvature_at(target, optima.position)
        if not are_optima(curvature, optima.gradient)[0]:
            raise ThermoclineError(
                f"no optimum was found above the initial position (log density {optima.log_density[0]:.4g} and "
                "rising): it may be unbounded, as a centred hierarchy is; use tc.fit_advi or tc.fit_auto."
            )
        covariance = laplace_covariance(curvature[0])
        mean = to_numpy(unravel(optima.position[0]))
        log_zeta = log_laplace_mass(float(optima.log_density[0]), covariance)
        return BaseFit(Gaussian.from_covariance(mean, covariance), log_zeta, num_gradients + start.size)
