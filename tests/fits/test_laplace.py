"""Laplace's approximation is exact for a Gaussian, and says so where there is no optimum."""

import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from studies.study_problems import hierarchy
from tests.problems import beta_bernoulli, gaussian
from thermocline.fits.laplace import fit_laplace


@pytest.mark.parametrize("dimension", [1, 5, 12])
def test_laplace_is_exact_for_a_gaussian_with_a_constant(dimension):
    problem = gaussian(dimension, seed=dimension)
    fit = fit_laplace(problem.target)
    data = problem.target.data
    assert fit.log_zeta == pytest.approx(problem.log_evidence, abs=1e-6)
    np.testing.assert_allclose(fit.base.mean, data["mean"], atol=1e-4)
    np.testing.assert_allclose(fit.base.covariance(), np.linalg.inv(data["precision"]), rtol=1e-5, atol=1e-7)
    assert 0 < fit.num_gradients < 2000


def test_positions_of_any_structure():
    def log_density(position):
        return 1.5 - 0.5 * (position["a"] - 2.0) ** 2 / 9 - 0.5 * jnp.sum((position["b"] + 1.0) ** 2) / 0.25

    fit = fit_laplace(tc.Target(log_density, {"a": np.float64(0.0), "b": np.zeros(2)}))
    assert fit.log_zeta == pytest.approx(1.5 + 1.5 * np.log(2 * np.pi) + np.log(3.0) + 2 * np.log(0.5), abs=1e-6)
    assert float(fit.base.mean["a"]) == pytest.approx(2.0, abs=1e-4)
    np.testing.assert_allclose(fit.base.mean["b"], -1.0, atol=1e-4)
    np.testing.assert_allclose(np.diagonal(fit.base.covariance()), [9.0, 0.25, 0.25], rtol=1e-5)


def test_a_beta_posterior_is_nearly_gaussian_on_the_logit_scale():
    """The optimum of a Beta(52, 55) in the logit is at its mean's logit; log zeta is off by O(1/n)."""
    problem = beta_bernoulli()
    fit = fit_laplace(problem.target)
    assert float(fit.base.mean) == pytest.approx(np.log(52 / 55), abs=1e-4)
    assert 0 < abs(fit.log_zeta - problem.log_evidence) < 1 / 107


def test_an_unbounded_density_gets_a_sentence():
    with pytest.raises(tc.ThermoclineError, match="no optimum was found above the initial position") as caught:
        fit_laplace(hierarchy(is_centred=True).target)
    assert "unbounded" in str(caught.value)
    assert "tc.fit_advi or tc.fit_auto" in str(caught.value)


def test_a_flat_direction_is_given_a_finite_width():
    fit = fit_laplace(tc.Target(lambda x: -2.0 * x[0] ** 2 + 0.0 * x[1], np.ones(2)))
    variances = np.diagonal(fit.base.covariance())
    assert variances[0] == pytest.approx(0.25, rel=1e-5)
    assert 1e6 < variances[1] < np.inf
    assert np.isfinite(fit.log_zeta)


@pytest.mark.slow
def test_it_is_a_base_for_sampling():
    problem = gaussian(3)
    result = tc.sample(
        problem.target, base=fit_laplace, seed=1, num_chains=8, num_draws=100, progress=False, search=False
    )
    assert result.log_zeta == pytest.approx(problem.log_evidence, abs=1e-6)
    assert result.log_evidence.value == pytest.approx(problem.log_evidence, abs=1e-6)
