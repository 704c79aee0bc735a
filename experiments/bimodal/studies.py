"""Smaller statements of the paper, measured where quadrature knows the answer."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

import thermocline as tc
from experiments.bimodal.problem import (
    BASE_DEVIATION,
    BASE_MEAN,
    DEVIATIONS,
    LEFT_MASS,
    LOG_EVIDENCE,
    MEANS,
    WEIGHTS,
    base_fit,
    is_left,
    target,
)

X = np.linspace(-150, 150, 15_001)
BETAS = np.linspace(0, 1, 401)
HOT, COLD = 0.1, 0.9


class Given(NamedTuple):
    """A base, and the error of log zeta."""

    name: str
    mean: float
    deviation: float
    error: float = 0.0


MATCHED = Given("the target's moments", BASE_MEAN, BASE_DEVIATION)
CASES = (
    MATCHED,
    Given("N(0, 4²)", 0.0, 4.0),
    Given("N(0, 2²)", 0.0, 2.0),
    Given("N(0, 1)", 0.0, 1.0),
    *(MATCHED._replace(error=error) for error in (-20.0, -5.0, 5.0, 20.0)),
)


def log_target(x: np.ndarray) -> np.ndarray:
    return np.logaddexp.reduce(np.log(WEIGHTS) + norm.logpdf(x[:, None], MEANS, DEVIATIONS), axis=1)


def log_base(given: Given, x: np.ndarray) -> np.ndarray:
    return norm.logpdf(x, given.mean, given.deviation)


def beta_marginal(given: Given) -> np.ndarray:
    """The density of beta (eq. beta-marginal-0-1) on a grid, by quadrature over x."""
    base = log_base(given, X)
    ratio = log_target(X) - base - given.error
    log_mass = np.array([np.logaddexp.reduce(base + beta * ratio) for beta in BETAS])
    density = np.exp(log_mass - log_mass.max())
    return density / np.trapezoid(density, BETAS)


def marginals() -> list[dict[str, Any]]:
    """What a distant base, and an error of log zeta, do to the law of beta."""
    rows = []
    for given in CASES:
        density, base, goal = beta_marginal(given), log_base(given, X), log_target(X)
        hot, cold = BETAS <= HOT, BETAS >= COLD
        rows.append({
            "base": given.name,
            "error_of_log_zeta": given.error,
            "kl_base_to_target": float(np.trapezoid(np.exp(base) * (base - goal), X)),
            "kl_target_to_base": float(np.trapezoid(np.exp(goal) * (goal - base), X)),
            "near_0": float(np.trapezoid(density[hot], BETAS[hot])),
            "near_1": float(np.trapezoid(density[cold], BETAS[cold])),
            "lowest_density": float(density.min()),
            "density_at_half": float(density[len(BETAS) // 2]),
        })
    return rows


def share_of_the_hot(result: tc.Result) -> dict[str, float]:
    """How much of an expectation's weight w1 is held by draws with beta < 0.1: exactly, and in a run.

    Given x, beta has density proportional to exp(beta r); the share is its mass below 0.1, averaged over the target.
    Effective sizes are Kish's, of all draws and of those with beta > 0.9 alone.
    """
    ratio = log_target(X) - log_base(MATCHED, X)
    below = np.expm1(HOT * ratio) / np.expm1(ratio)
    beta, weight = result.draws.inverse_temperature, np.exp(result.draws.log_weight_target)
    return {
        "exact_share": float(np.trapezoid(np.exp(log_target(X)) * below, X)),
        "share": float(weight[beta < HOT].sum() / weight.sum()),
        "share_of_draws": float(np.mean(beta < HOT)),
        "effective_share": float(weight.sum() ** 2 / np.sum(weight**2) / weight.size),
        "share_of_cold_draws": float(np.mean(beta > COLD)),
    }


def without_a_mass(num_chains: int = 64, num_draws: int = 1000) -> list[dict[str, Any]]:
    """RMSE over single chains of Gibbs tempering and of joint tempering with masses around the usual one.

    The law of beta is the paper's and there are no jumps from the base, in both; warm-up tunes the step size alike.
    """
    mover, law = tc.HMC(num_steps=8), tc.Continuous()
    usual = 0.3  # about one over the variance of u = logit(beta), beta uniform: 3/pi²
    methods = {"Gibbs": tc.GibbsTempering(mover, law, jumps=False)}
    methods |= {f"joint, m = {mass:g}": tc.JointTempering(mover, law, mass=mass, jumps=False)
                for mass in (usual / 100, usual / 10, usual, usual * 10, usual * 100)}
    rows = []
    for name, method in methods.items():
        result = tc.sample(target(), seed=1, base=base_fit(), method=method, num_chains=num_chains, num_warmup=300,
                           num_draws=num_draws, progress=False)
        no_base = result.base_draws._replace(log_ratio=np.zeros(0))  # the paper's estimators are of chains alone
        chains = [replace(result, base_draws=no_base,
                          draws=type(result.draws)(*(leaf[i : i + 1] for leaf in result.draws)),
                          parameters={key: values[i : i + 1] for key, values in result.parameters.items()})
                  for i in range(num_chains)]
        evidences = np.array([chain.log_evidence.value for chain in chains if chain.log_evidence is not None])
        masses = np.array([chain.expectation(is_left).value for chain in chains])
        rows.append({
            "method": name,
            "rmse_log_evidence": float(np.sqrt(np.mean((evidences - LOG_EVIDENCE) ** 2))),
            "rmse_left_mass": float(np.sqrt(np.mean((masses - LEFT_MASS) ** 2))),
            "gradients_a_draw": float(result.draws.num_gradients.mean()),
        })
    return rows
