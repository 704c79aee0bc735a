"""ADVI finds the Gaussian of largest ELBO: exact answers where the family or a formula gives them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

import thermocline as tc
from tests.problems import bimodal_log_density, gaussian, half_gaussian_log_density
from thermocline.fits.advi import advi, elbo, fit_advi
from thermocline.support.streams import fit_key


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
    error = float(fits[0].story[0].split("± ")[1].split()[0])
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


@pytest.mark.usefixtures("double")
def test_many_positions_climb_in_one_program():
    """Each mode of the paper's bimodal target has its own share of the evidence."""
    run = jax.jit(jax.vmap(lambda key, x: advi(key, lambda x: bimodal_log_density(x[0]), x)))
    found = run(jax.random.split(fit_key(0), 2), jnp.array([[-5.0], [6.0]]))
    np.testing.assert_allclose(found.elbo, np.log([0.6, 0.4]), atol=1e-3)
    np.testing.assert_allclose(found.mean[:, 0], [-8.0, 8.0], atol=0.05)
    np.testing.assert_allclose(found.scale_tril[:, 0], [1.0, 2.0], rtol=0.02)
    assert found.has_converged.all()


def edged_log_density(x, data):
    return jnp.where(x > 0, half_gaussian_log_density(x), data["outside"])


@pytest.mark.parametrize("outside", [-np.inf, np.nan])
def test_an_edge_of_the_support_does_no_harm(outside):
    fit = fit_advi(tc.Target(edged_log_density, 1.0, {"outside": outside}), precision="float32")
    error = float(fit.story[0].split("± ")[1].split()[0])
    assert np.log(0.5) - 0.2 < fit.log_zeta < np.log(0.5) + 4 * error
    assert 0.3 < fit.base.mean < 1.2


@pytest.mark.usefixtures("double")
def test_elbo_of_a_cut_gaussian_is_that_of_the_conditional_one():
    """N(0, 1) against itself on x > 0: every log ratio there is 0, and half of the draws are there."""
    found = elbo(jnp.array([0.0, -jnp.inf, 0.0, -jnp.inf]))
    assert float(found.value) == pytest.approx(np.log(0.5))
    assert float(elbo(jnp.full(4, -jnp.inf)).value) == -np.inf
