"""Rényi fits cover what ADVI drops: against quadrature on the paper's bimodal target."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

import thermocline as tc
from tests.problems import bimodal, gaussian
from thermocline.fits.advi import fit_advi
from thermocline.fits.renyi import bound_of, fit_renyi, weighted_draws
from thermocline.fits.stochastic_ascent import Normal
from thermocline.support.streams import fit_key

GRID = np.linspace(-60.0, 60.0, 20_001)
STEP = GRID[1] - GRID[0]
LOG_TARGET = np.logaddexp(np.log(0.6) + stats.norm.logpdf(GRID, -8, 1), np.log(0.4) + stats.norm.logpdf(GRID, 8, 2))


def exact_bound(mean, deviation, order=2.0):
    """The bound of a Gaussian, by quadrature."""
    values = order * LOG_TARGET + (1 - order) * stats.norm.logpdf(GRID, mean, deviation)
    return (np.logaddexp.reduce(values) + np.log(STEP)) / order


def divergence(log_first, log_second):
    """KL by quadrature."""
    return STEP * np.sum(np.exp(log_first) * (log_first - log_second))


def test_chi_squared_covers_both_modes():
    fit = fit_renyi(bimodal().target)
    least = minimize(lambda t: exact_bound(t[0], np.exp(t[1])), [0.0, 2.0], method="Nelder-Mead").fun
    mean, deviation = float(fit.base.mean), float(fit.base.scale_tril[0, 0])
    assert least <= exact_bound(mean, deviation) < least + 0.02
    error = float(fit.story[0].split("± ")[1].split()[0])
    assert abs(fit.log_zeta - exact_bound(mean, deviation)) < 4 * error
    assert fit.log_zeta_is == "upper bound"
    assert fit.log_zeta > 0

    narrow = fit_advi(bimodal().target, full_rank=True)
    log_covering = stats.norm.logpdf(GRID, mean, deviation)
    log_seeking = stats.norm.logpdf(GRID, float(narrow.base.mean), narrow.base.scale_tril[0, 0])
    assert divergence(LOG_TARGET, log_covering) < 1.2 < 10 < divergence(LOG_TARGET, log_seeking)
    assert divergence(log_seeking, LOG_TARGET) < 1.0 < divergence(log_covering, LOG_TARGET)


def test_a_gaussian_target_is_fitted_by_itself():
    """In 20 dimensions too, where the widened draws find nothing: they must not drive the fit away."""
    problem = gaussian(20)
    fit = fit_renyi(problem.target)
    error = float(fit.story[0].split("± ")[1].split()[0])
    assert abs(fit.log_zeta - problem.log_evidence) < 4 * error + 0.005
    covariance = np.linalg.inv(problem.target.data["precision"])
    deviations = np.sqrt(np.diagonal(covariance))
    assert np.all(np.abs(fit.base.mean - problem.target.data["mean"]) < 0.1 * deviations)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("order", [0.5, 2.0])
def test_the_bound_is_estimated_without_bias_by_several_proposals(order):
    normal = Normal(jnp.array([-2.0]), jnp.array([7.0]))
    anchors = Normal(jnp.array([8.0]), jnp.array([2.0])), Normal(jnp.array([8.0]), jnp.array([8.0]))
    target = bimodal().target
    log_weights, _ = weighted_draws(lambda x: target(x[0]), anchors, order, fit_key(0), 40_000, normal)
    bound = bound_of(log_weights, order)
    error = float(jnp.std(bound.influence)) / np.sqrt(log_weights.size)
    assert abs(float(bound.value) - exact_bound(-2.0, 7.0, order)) < 4 * error


@pytest.mark.parametrize("order", [0.0, 1.0, -1.0, float("nan")])
def test_orders_that_mean_another_fit_get_a_sentence(order):
    with pytest.raises(tc.ThermoclineError, match="order"):
        fit_renyi(bimodal().target, order=order)
