"""Other estimators of the log evidence from the same draws: thermodynamic integration and simulated tempering's counts.

Gibbs tempering with any prior of beta (`tc.Continuous.from_prior`), together with `thermodynamic_integration`, is path
sampling (Gelman and Meng 1998).
"""

import numpy as np

from thermocline.estimators.chains import integrate_over_bins, integrate_over_rungs, log_ratio_of_means
from thermocline.paths import ladder_of
from thermocline.records import Estimate
from thermocline.results.result import Result
from thermocline.support.errors import ThermoclineError


def thermodynamic_integration(result: Result) -> Estimate:
    """The log evidence by path sampling's estimator: the mean log ratio at each drawn beta, integrated over beta.

    A second look at the same draws that does not use the Rao-Blackwellised weights at the two ends.
    """
    ladder = ladder_of(result.need_joint("thermodynamic integration"))
    if ladder is not None:
        betas = np.sort(np.asarray(ladder.betas))
        if betas[0] != 0 or betas[-1] != 1:
            raise ThermoclineError(
                f"the ladder goes from {betas[0]:g} to {betas[-1]:g}, and nothing is known beyond its ends; "
                "run tc.SimulatedTempering with betas from 0 to 1."
            )
        integral = integrate_over_rungs(result.draws, betas)
    else:
        beta = result.draws.inverse_temperature
        grid = np.unique(np.concatenate([[0.0, 1.0], np.quantile(beta, np.linspace(0, 1, 129))]))
        density = np.interp(beta, grid, result.beta_marginal(grid).value)
        integral = integrate_over_bins(result.draws, density)
    return integral + result.log_zeta + result.log_support


def count_based_evidence(result: Result) -> Estimate:
    """The log evidence from how often simulated tempering was at each end of its ladder (eq. st-marginal-ratio).

    `result.log_evidence` is the Rao-Blackwellised form of the same ratio (eq. rao-blackwell-tempered-sampling), which
    counts every draw by its probability of being there: the two errors show what that is worth.
    """
    ladder = None if result.law is None else ladder_of(result.law)
    if ladder is None:
        raise ThermoclineError("counts need a ladder of temperatures: run tc.SimulatedTempering().")
    betas, log_weights = np.asarray(ladder.betas), np.asarray(ladder.log_weights)
    beta = result.draws.inverse_temperature
    top, bottom = int(np.argmax(betas)), int(np.argmin(betas))
    at_target, at_base = (
        np.where(np.isclose(beta, betas[end], rtol=0, atol=1e-9), 0.0, -np.inf) for end in (top, bottom)
    )
    if not (np.isfinite(at_target).any() and np.isfinite(at_base).any()):
        raise ThermoclineError("the chains were never at one end of the ladder, so that counts say nothing: draw more.")
    ratio = log_ratio_of_means(at_target, at_base)
    return ratio + float(log_weights[bottom] - log_weights[top]) + result.log_zeta + result.log_support
