"""Path sampling (Gelman and Meng 1998): Gibbs tempering with any prior of beta, and thermodynamic integration."""

import numpy as np

from thermocline.estimators import Estimate
from thermocline.estimators.thermodynamic import integrate_over_bins, integrate_over_rungs
from thermocline.paths import Ladder, Learned
from thermocline.result import Result


def thermodynamic_integration(result: Result) -> Estimate:
    """The log evidence by path sampling's estimator: the mean log ratio at each drawn beta, integrated over beta.

    A second look at the same draws that does not use the Rao-Blackwellised weights at the two ends.
    """
    result.need_joint("thermodynamic integration")
    law = result.law.law if isinstance(result.law, Learned) else result.law
    if isinstance(law, Ladder):
        integral = integrate_over_rungs(result.draws, np.asarray(law.betas))
    else:
        beta = result.draws.inverse_temperature
        grid = np.unique(np.concatenate([[0.0, 1.0], np.quantile(beta, np.linspace(0, 1, 129))]))
        density = np.interp(beta, grid, result.beta_marginal(grid).value)
        integral = integrate_over_bins(result.draws, density)
    return integral + result.log_zeta + result.log_support
