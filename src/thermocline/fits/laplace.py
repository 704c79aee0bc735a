"""Laplace's approximation: the Gaussian with the curvature of the log density at an optimum."""

import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.bases.base import BaseFit
from thermocline.bases.gaussian import Gaussian
from thermocline.fits.optimise import are_optima, climb, curvature_at
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import cast, computing_in, to_numpy
from thermocline.target import Target, check_target


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
        variances, vectors = curvature.variances()[0], curvature.vectors[0]
        covariance = (vectors * variances) @ vectors.T
        mean = to_numpy(unravel(optima.position[0]))
        log_zeta = float(optima.log_density[0] + 0.5 * np.sum(np.log(2 * np.pi * variances)))
        return BaseFit(Gaussian.from_covariance(mean, covariance), log_zeta, num_gradients + start.size)
