"""Laplace's approximation: the Gaussian with the curvature of the log density at an optimum."""

from thermocline.bases.base import BaseFit
from thermocline.bases.gaussian import Gaussian
from thermocline.evaluator import checked_evaluator
from thermocline.fits.curvature import are_optima, curvature_at
from thermocline.fits.lbfgs import maximise
from thermocline.support.errors import ThermoclineError
from thermocline.support.linear import triangular
from thermocline.target import Target


def fit_laplace(target: Target, *, seed: int = 0, precision: str = "float64") -> BaseFit:
    """The Gaussian at the optimum above `initial_position`, with log zeta by Laplace's formula.

    One mode only, and only where the log density is bounded; `seed` is not used.
    """
    evaluate = checked_evaluator(target, precision)
    optima = maximise(evaluate, evaluate.initial_position[None])
    curvature = curvature_at(evaluate, optima.position, deviations=optima.deviations)
    if not are_optima(curvature, optima.gradient)[0]:
        raise ThermoclineError(
            f"no optimum was found above the initial position (log density {optima.log_density[0]:.4g} and "
            "rising): it may be unbounded, as a centred hierarchy is; use tc.fit_advi or tc.fit_auto."
        )
    scale = triangular(curvature.roots()[0]).astype(precision)
    log_zeta = float(optima.log_density[0] + curvature.log_volumes()[0])
    return BaseFit(Gaussian(evaluate.unravel(optima.position[0]), scale).prepared(), log_zeta, evaluate.num_rows)
