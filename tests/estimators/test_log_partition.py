"""The partition function from draws of a joint whose every piece is known."""

import jax
import numpy as np
import pytest
from scipy import integrate

from thermocline.estimators.chains import (
    beta_marginal,
    integrate_over_bins,
    kl_base_to_target,
    kl_target_to_base,
    log_evidence,
    log_partition,
    log_partition_bounds,
)
from thermocline.estimators.convergence import occupancy
from thermocline.paths import Continuous
from thermocline.records import Draws, Estimate

EXACT = Estimate(0.0, 0.0, np.inf)
SHIFT, CONSTANT = 1.5, 0.4  # base N(0, 1), target exp(CONSTANT) N(SHIFT, 1)


def exact_draws(num_chains=8, num_draws=4000, seed=0):
    """Independent draws of (x, beta) under f = 0: x | beta is N(beta SHIFT, 1), z(beta) is log-quadratic."""
    generator = np.random.default_rng(seed)
    grid = np.linspace(0, 1, 20_001)
    cumulative = integrate.cumulative_trapezoid(np.exp(log_z(grid)), grid, initial=0)
    shape = (num_chains, num_draws)
    beta = np.interp(generator.uniform(size=shape), cumulative / cumulative[-1], grid)
    position = beta * SHIFT + generator.normal(size=shape)
    log_ratio = CONSTANT + SHIFT * position - SHIFT**2 / 2
    with jax.enable_x64(True):
        log_mass = np.asarray(jax.vmap(jax.vmap(Continuous().log_mass))(log_ratio))
    nothing = np.zeros(shape)
    return Draws(position[..., None], beta, log_ratio, log_ratio - log_mass, -log_mass, *[nothing] * 5)


def log_z(beta):
    return beta * CONSTANT - 0.5 * SHIFT**2 * beta * (1 - beta)


DRAWS = exact_draws()
BETAS = np.array([0.0, 0.1, 0.3, 0.5, 0.9, 1.0])


def test_evidence_of_exact_draws():
    estimate = log_evidence(DRAWS, 2.0, EXACT)
    assert abs(estimate.z_score(2.0 + CONSTANT)) < 4
    assert estimate.standard_error < 0.02


def test_log_partition_at_any_beta():
    curve = log_partition(DRAWS, 2.0, EXACT, BETAS)
    truth = log_z(BETAS) + 2.0 * BETAS
    assert curve.value[0] == 0
    assert np.all(np.abs(curve.value[1:] - truth[1:]) < 4 * curve.standard_error[1:])


def test_marginal_of_beta_is_the_mean_of_its_conditionals():
    curve = beta_marginal(DRAWS, np.zeros_like(BETAS), BETAS)
    normaliser = integrate.quad(lambda beta: np.exp(log_z(beta)), 0, 1)[0]
    assert np.all(np.abs(curve.value - np.exp(log_z(BETAS)) / normaliser) < 4 * curve.standard_error)


def test_kl_divergences_and_bounds_of_appendix_a():
    exact = SHIFT**2 / 2
    assert abs(kl_base_to_target(DRAWS, EXACT).z_score(exact)) < 4
    assert abs(kl_target_to_base(DRAWS, EXACT).z_score(exact)) < 4
    bounds = log_partition_bounds(DRAWS, 2.0, EXACT, BETAS)
    truth = log_z(BETAS) + 2.0 * BETAS
    slack = 4 * 0.02
    assert np.all(bounds.lower <= truth + slack)
    assert np.all(truth <= bounds.upper + slack)
    assert bounds.lower[3] == pytest.approx(0.5 * (2.0 + CONSTANT) - 0.5 * exact, abs=slack)


def test_bounds_off_the_support_use_the_finite_divergence():
    half = Estimate(np.log(0.5), 0.0, np.inf)
    assert kl_base_to_target(DRAWS, half).value == np.inf
    assert np.all(np.isfinite(log_partition_bounds(DRAWS, 0.0, half, BETAS).lower))


def test_a_law_that_goes_to_the_base_itself_knows_that_it_leaves_the_support():
    """There is nothing to correct for then, and draws at the base say it."""
    log_ratio = DRAWS.log_ratio.copy()
    log_ratio[0, 0] = -np.inf
    assert kl_base_to_target(DRAWS._replace(log_ratio=log_ratio), EXACT).value == np.inf


def test_thermodynamic_integration_over_drawn_betas():
    density = np.exp(log_z(DRAWS.inverse_temperature))
    estimate = integrate_over_bins(DRAWS, density)
    assert abs(estimate.z_score(CONSTANT)) < 4
    assert estimate.standard_error > log_evidence(DRAWS, 0.0, EXACT).standard_error  # what Rao-Blackwell saves


def test_occupancy_is_even_when_beta_is_uniform_in_length():
    flat = occupancy(DRAWS, lambda betas: -log_z(betas))
    assert np.all(np.abs(flat - 1) < 0.1)
    skewed = occupancy(DRAWS, lambda betas: -log_z(betas) - 20 * betas)
    assert skewed.min() < 1e-5
