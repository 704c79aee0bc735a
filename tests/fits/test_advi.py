"""ADVI finds the Gaussian of largest ELBO: exact answers where the family or a formula gives them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

import thermocline as tc
from tests.problems import bimodal_log_density, gaussian, gaussian_log_density, half_gaussian_log_density
from thermocline.evaluator import Evaluator
from thermocline.fits.advi import advi, elbo, fit_advi, log_ratios
from thermocline.fits.gaussian_ascent import Adam, LocationScale


def test_full_rank_is_exact_for_a_gaussian():
    problem = gaussian(12)
    fit = fit_advi(problem.target, full_rank=True)
    covariance = np.linalg.inv(problem.target.data["precision"])
    assert fit.log_zeta == pytest.approx(problem.log_evidence, abs=1e-3)
    errors = np.sqrt(np.diagonal(covariance))
    assert np.all(np.abs(fit.base.mean - problem.target.data["mean"]) < 0.01 * errors)
    scaled = fit.base.scale_tril @ fit.base.scale_tril.T / np.outer(errors, errors)
    np.testing.assert_allclose(scaled, covariance / np.outer(errors, errors), atol=0.02)
    assert fit.log_zeta_is == "lower bound"
    assert fit.num_gradients > 16 * 100 * len(fit.trace)
    assert np.all(np.isfinite(fit.trace))


def test_independent_coordinates_reach_their_known_optimum():
    """Means are the target's, variances the inverse diagonal of its precision (Bishop 2006, section 10.1.2)."""
    problem = gaussian(5)
    precision = problem.target.data["precision"]
    loss = 0.5 * (np.sum(np.log(np.diagonal(precision))) - np.linalg.slogdet(precision)[1])
    fits = [fit_advi(problem.target, seed=seed) for seed in range(4)]
    values = np.array([fit.log_zeta for fit in fits])
    assert np.all(values < problem.log_evidence)
    error = float(fits[0].notes[0].split("± ")[1].split()[0])
    assert abs(values.mean() - (problem.log_evidence - loss)) < 4 * error / 2 + 0.01
    scale = np.mean([fit.base.scale_tril for fit in fits], axis=0)
    np.testing.assert_allclose(scale, np.diagonal(precision) ** -0.5, rtol=0.05)
    assert fits[0].base.scale_tril.shape == (5,)


SCHOOLS = {"y": np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), "s": np.array([15.0, 10, 16, 11, 9, 11, 10, 18])}
SCHOOLS_LOG_EVIDENCE = -31.311347  # quadrature over (mu, log tau), the effects integrated out


def schools_log_density(position, data):
    """Eight schools, centred: unbounded as log tau falls."""
    mu, log_tau, theta = position["mu"], position["log_tau"], position["theta"]
    cauchy = jnp.log(2 / (5 * jnp.pi)) - jnp.log1p(jnp.exp(2 * log_tau) / 25) + log_tau
    effects = jnp.sum(norm.logpdf(theta, mu, jnp.exp(log_tau)))
    return norm.logpdf(mu, 0, 5) + cauchy + effects + jnp.sum(norm.logpdf(data["y"], theta, data["s"]))


def test_a_centred_hierarchy_is_fitted_on_its_own_pytree():
    start = {"mu": 0.0, "log_tau": 0.0, "theta": np.zeros(8)}
    fit = fit_advi(tc.Target(schools_log_density, start, SCHOOLS), full_rank=True)
    assert SCHOOLS_LOG_EVIDENCE - 1.5 < fit.log_zeta < SCHOOLS_LOG_EVIDENCE
    assert fit.base.mean["theta"].shape == (8,)
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(fit.base))
    again = fit_advi(tc.Target(schools_log_density, start, SCHOOLS), full_rank=True)
    assert again.log_zeta == fit.log_zeta


@pytest.mark.parametrize(("start", "share", "mean", "deviation"), [(-5.0, 0.6, -8.0, 1.0), (6.0, 0.4, 8.0, 2.0)])
def test_each_start_settles_in_its_own_mode(start, share, mean, deviation):
    """Each mode of the paper's bimodal target has its own share of the evidence."""
    evaluate = Evaluator(tc.Target(bimodal_log_density, 0.0))
    found, reached = advi(np.random.default_rng(0), evaluate, np.array([start]))
    assert float(reached.value) == pytest.approx(np.log(share), abs=1e-3)
    assert found.normal.mean[0] == pytest.approx(mean, abs=0.05)
    assert found.normal.scale[0] == pytest.approx(deviation, rel=0.02)
    assert found.has_converged


def test_it_starts_where_it_is_told():
    fit = fit_advi(tc.Target(bimodal_log_density, 0.0), initial=6.0)
    assert float(fit.base.mean) == pytest.approx(8.0, abs=0.05)


def edged_log_density(x, data):
    return jnp.where(x > 0, half_gaussian_log_density(x), data["outside"])


@pytest.mark.parametrize("outside", [-np.inf, np.nan])
def test_an_edge_of_the_support_does_no_harm(outside):
    fit = fit_advi(tc.Target(edged_log_density, 1.0, {"outside": outside}), precision="float32")
    error = float(fit.notes[0].split("± ")[1].split()[0])
    assert np.log(0.5) - 0.2 < fit.log_zeta < np.log(0.5) + 4 * error
    assert 0.3 < fit.base.mean < 1.2


def test_elbo_of_a_cut_gaussian_is_that_of_the_conditional_one():
    """N(0, 1) against itself on x > 0: every log ratio there is 0, and half of the draws are there."""
    found = elbo(np.array([0.0, -np.inf, 0.0, -np.inf]))
    assert float(found.value) == pytest.approx(np.log(0.5))
    assert float(elbo(np.full(4, -np.inf)).value) == -np.inf
    both = elbo(np.array([[0.0, -np.inf], [1.0, 4.0]]), penalty=1.0)
    np.testing.assert_allclose(both.value, [2 * np.log(0.5), 2.5])


@pytest.mark.parametrize("scale", [np.array([0.5, 3.0]), np.array([[0.5, 0.0], [-2.0, 3.0]])])
def test_log_ratios_of_a_gaussian_to_itself_are_constant(scale):
    covariance = np.diag(scale**2) if scale.ndim == 1 else scale @ scale.T
    data = {"mean": np.array([1.0, -4.0]), "precision": np.linalg.inv(covariance), "constant": 2.0}
    evaluate, normal = Evaluator(tc.Target(gaussian_log_density, np.zeros(2), data)), LocationScale(data["mean"], scale)
    noise = np.random.default_rng(0).normal(size=(7, 2))
    exact = 2.0 + np.log(2 * np.pi) + 0.5 * np.linalg.slogdet(covariance)[1]
    np.testing.assert_allclose(log_ratios(evaluate, normal, noise), exact)
    np.testing.assert_allclose(normal.noise_at(normal.at(noise)), noise)


def test_adam_takes_unit_steps_whatever_the_units():
    """Twice, by its formulas: 0.9 and 0.99, each freed of its start at zero."""
    adam = Adam()
    for size in adam((np.array([1e-3, -5e4]), np.array([[2.0]]))):
        np.testing.assert_allclose(np.abs(size), 1.0, rtol=1e-4)
    shift, _ = adam((np.array([0.0, 5e4]), np.array([[2.0]])))
    first = (0.9 * 0.1 * 1e-3 / 0.19) / np.sqrt(0.99 * 0.01 * 1e-6 / (1 - 0.99**2))
    np.testing.assert_allclose(shift, [first, (0.1 - 0.09) / 0.19], rtol=1e-4)
