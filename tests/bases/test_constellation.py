"""Constellations and blends: the density of the mixtures they are, exact draws, and the tree of the target."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import thermocline as tc
from thermocline.bases import fresh_draws
from thermocline.support.precision import cast

LIKE = {"a": np.zeros(2), "b": np.float64(0.0)}
CENTRES = np.array([[1.0, -2.0, 0.5], [4.0, 0.0, -1.0], [-3.0, 2.0, 2.0]])
WEIGHTS = np.array([0.5, 0.2, 0.3])
TRIL = np.array([[1.2, 0.0, 0.0], [0.4, 0.8, 0.0], [-0.5, 0.3, 0.6]])
COVARIANCE = TRIL @ TRIL.T
POINTS = np.array([[0.3, 0.1, -1.0], [4.0, -6.0, 9.0], [1.0, -2.0, 0.5]])
NUMBER = 40_000


draws_of = jax.jit(fresh_draws, static_argnames="num_draws")


def position(flat):
    return {"a": flat[:2], "b": flat[2]}


def mixture_density(points):
    parts = [stats.multivariate_normal(centre, COVARIANCE).pdf(points) for centre in CENTRES]
    return WEIGHTS @ np.array(parts)


@pytest.fixture
def stars():
    return tc.Constellation.of(CENTRES, np.log(WEIGHTS) + 7.0, COVARIANCE, LIKE, room=8)


@pytest.fixture
def blend(stars):
    return tc.Blend.of([stars, tc.Gaussian.diagonal(position(np.zeros(3)), 4.0)], np.log([3.0, 1.0]))


@pytest.mark.usefixtures("double")
def test_density_is_that_of_the_mixture(stars, blend):
    evaluate = jax.vmap(lambda base, x: base.log_density(position(x)), (None, 0))
    np.testing.assert_allclose(evaluate(stars, jnp.asarray(POINTS)), np.log(mixture_density(POINTS)), rtol=1e-12)
    broad = stats.multivariate_normal(np.zeros(3), 16 * np.eye(3)).pdf(POINTS)
    expected = np.log(0.75 * mixture_density(POINTS) + 0.25 * broad)
    np.testing.assert_allclose(evaluate(blend, jnp.asarray(POINTS)), expected, rtol=1e-12)


@pytest.mark.usefixtures("double")
def test_draws_have_the_stated_moments(stars):
    draws = np.asarray(draws_of(jax.random.key(0), cast(stars, "float64"), NUMBER))
    mean, variances = stars.moments()
    np.testing.assert_allclose(mean, WEIGHTS @ CENTRES, rtol=1e-12)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4 * np.sqrt(variances / NUMBER))
    error = np.std((draws - mean) ** 2, axis=0) / np.sqrt(NUMBER)
    assert np.all(np.abs(draws.var(axis=0) - variances) < 4 * error)


@pytest.mark.usefixtures("double")
def test_a_blend_draws_each_base_by_its_weight(blend):
    """The mean of the broad part's share over the blend's own draws is its weight."""
    draws = draws_of(jax.random.key(1), cast(blend, "float64"), NUMBER)
    broad = stats.multivariate_normal(np.zeros(3), 16 * np.eye(3)).pdf(draws)
    share = 0.25 * broad / (0.25 * broad + 0.75 * mixture_density(np.asarray(draws)))
    assert abs(share.mean() - 0.25) < 4 * share.std() / np.sqrt(NUMBER)


@pytest.mark.slow
def test_a_constellation_is_a_base_like_any_other(stars):
    """Base and target equal: log Z is exact, and jumps are always accepted."""
    target = tc.Target(lambda x: stars.log_density(x) + 3.0, position(np.zeros(3)))
    result = tc.sample(
        target, seed=0, base=tc.BaseFit(stars, 3.0), num_chains=4, num_warmup=50, num_draws=50, search=False
    )
    assert result.log_evidence.value == pytest.approx(3.0, abs=1e-9)
    assert result.draws.jump_acceptance.min() > 1 - 1e-9
