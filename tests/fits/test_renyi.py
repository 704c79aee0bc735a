"""Rényi fits cover what ADVI drops: against quadrature on the paper's bimodal target."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

import thermocline as tc
from tests.problems import bimodal, gaussian
from thermocline.evaluator import Evaluator
from thermocline.fits.advi import fit_advi
from thermocline.fits.gaussian_ascent import LocationScale
from thermocline.fits.renyi import bound_of, drawn, fit_renyi, weighted_draws, weighted_score

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
    error = float(fit.notes[0].split("± ")[1].split()[0])
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
    error = float(fit.notes[0].split("± ")[1].split()[0])
    assert abs(fit.log_zeta - problem.log_evidence) < 4 * error + 0.005
    covariance = np.linalg.inv(problem.target.data["precision"])
    deviations = np.sqrt(np.diagonal(covariance))
    assert np.all(np.abs(fit.base.mean - problem.target.data["mean"]) < 0.1 * deviations)


@pytest.mark.parametrize("order", [0.5, 2.0])
def test_the_bound_is_estimated_without_bias_by_several_proposals(order):
    normal = LocationScale(np.array([-2.0]), np.array([7.0]))
    anchors = LocationScale(np.array([8.0]), np.array([2.0])), LocationScale(np.array([8.0]), np.array([8.0]))
    evaluate, noise = Evaluator(bimodal().target), np.random.default_rng(0).normal(size=(3, 20_000, 1))
    there = drawn(evaluate, anchors, noise[1:])
    log_weights, own_noise = weighted_draws(evaluate, anchors, order, normal, noise[0], there)
    bound = bound_of(log_weights, order)
    error = np.std(bound.influence) / np.sqrt(log_weights.size)
    assert abs(bound.value - exact_bound(-2.0, 7.0, order)) < 4 * error
    shift, stretch = weighted_score(log_weights, own_noise, normal)
    step = 1e-4
    slopes = [
        (exact_bound(-2.0 + 7 * step, 7.0, order) - exact_bound(-2.0 - 7 * step, 7.0, order)) / (2 * step),
        (exact_bound(-2.0, 7.0 * np.exp(step), order) - exact_bound(-2.0, 7.0 * np.exp(-step), order)) / (2 * step),
    ]
    weights = np.exp(log_weights - np.logaddexp.reduce(log_weights))
    scores = np.stack([own_noise[:, 0], own_noise[:, 0] ** 2 - 1], axis=1)
    errors = np.sqrt(np.sum((weights[:, None] * (scores - weights @ scores)) ** 2, axis=0))
    factor = (1 - order) / order  # of the gradient of the bound to the weighted mean of scores
    assert np.all(np.abs(np.array(slopes) / factor - [shift[0], stretch[0]]) < 4 * errors)


@pytest.mark.parametrize("order", [0.0, 1.0, -1.0, float("nan")])
def test_orders_that_mean_another_fit_get_a_sentence(order):
    with pytest.raises(tc.ThermoclineError, match="order"):
        fit_renyi(bimodal().target, order=order)
