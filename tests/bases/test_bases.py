"""Bases are normalised, exactly sampled, and work on any PyTree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import thermocline as tc
from thermocline.bases.base import check_base, fresh_draws, initial_scale

COVARIANCE = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]])
MEAN = {"a": np.array([1.0, -2.0]), "b": np.float64(0.5)}


@pytest.mark.usefixtures("double")
def test_gaussian_density_matches_scipy():
    base = tc.Gaussian.from_covariance(MEAN, COVARIANCE)
    position = {"a": jnp.array([0.3, 0.1]), "b": jnp.array(-1.0)}
    expected = stats.multivariate_normal([1.0, -2.0, 0.5], COVARIANCE).logpdf([0.3, 0.1, -1.0])
    assert float(base.log_density(position)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.usefixtures("double")
def test_diagonal_is_dense_with_a_diagonal():
    deviations = {"a": np.array([0.5, 2.0]), "b": np.float64(3.0)}
    diagonal, dense = (
        tc.Gaussian.diagonal(MEAN, deviations),
        tc.Gaussian.from_covariance(MEAN, np.diag([0.25, 4.0, 9.0])),
    )
    position = {"a": jnp.array([0.3, 0.1]), "b": jnp.array(-1.0)}
    assert float(diagonal.log_density(position)) == pytest.approx(float(dense.log_density(position)), abs=1e-12)
    np.testing.assert_allclose(diagonal.moments()[1], dense.moments()[1])


@pytest.mark.usefixtures("double")
def test_gaussian_draws_have_its_moments():
    base = tc.Gaussian.from_covariance(MEAN, COVARIANCE)
    draws = np.asarray(fresh_draws(jax.random.key(0), base, 40_000))
    mean, variance = base.moments()
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4 * np.sqrt(variance / 40_000))
    errors = np.sqrt((np.outer(variance, variance) + COVARIANCE**2) / 40_000)
    assert np.all(np.abs(np.cov(draws.T) - COVARIANCE) < 4.5 * errors)


@pytest.mark.usefixtures("double")
def test_initial_scale_is_stated_or_measured():
    stated = tc.Gaussian.diagonal(np.zeros(2), np.array([1.0, 3.0]))
    np.testing.assert_allclose(initial_scale(stated, np.zeros((5, 2))), [1.0, 3.0])
    pair = tc.Base(lambda x: -jnp.sum(x**2), lambda key: jax.random.normal(key, (2,)))
    draws = np.random.default_rng(0).normal(size=(4000, 2)) * [1.0, 3.0]
    np.testing.assert_allclose(initial_scale(pair, draws), [1.0, 3.0], rtol=4 / np.sqrt(8000))


def test_a_pair_of_functions_is_a_base_and_a_pytree():
    base = tc.Base(jax.tree_util.Partial(lambda m, x: -0.5 * (x - m) ** 2, 2.0), lambda key: jax.random.normal(key))
    assert jax.tree.leaves(base) == [2.0]
    assert jax.jit(lambda base: base.log_density(3.0))(base) == -0.5
    check_base(base, 0.0)
