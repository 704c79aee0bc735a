"""A mixture with one covariance: the density of the mixture it is, exact draws and moments, and the target's tree."""

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
MEAN = WEIGHTS @ CENTRES
SPREAD = COVARIANCE + ((CENTRES - MEAN).T * WEIGHTS) @ (CENTRES - MEAN)
POINTS = np.array([[0.3, 0.1, -1.0], [4.0, -6.0, 9.0], [1.0, -2.0, 0.5]])
NUMBER = 40_000


draws_of = jax.jit(fresh_draws, static_argnames="num_draws")


def position(flat):
    return {"a": flat[:2], "b": flat[2]}


def parts_of(points):
    """The two parts of the density at some points, by SciPy."""
    narrow = WEIGHTS @ np.array([stats.multivariate_normal(centre, COVARIANCE).pdf(points) for centre in CENTRES])
    return 0.75 * narrow, 0.25 * stats.multivariate_normal(MEAN, SPREAD).pdf(points)


@pytest.fixture
def tied():
    return tc.TiedMixture.of(CENTRES, np.log(WEIGHTS) + 7.0, COVARIANCE, LIKE, broad_weight=0.25, room=8)


@pytest.mark.usefixtures("double")
def test_density_is_that_of_the_mixture(tied):
    evaluate = jax.vmap(lambda base, x: base.log_density(position(x)), (None, 0))
    np.testing.assert_allclose(evaluate(tied, jnp.asarray(POINTS)), np.log(sum(parts_of(POINTS))), rtol=1e-12)


@pytest.mark.usefixtures("double")
def test_draws_have_the_stated_moments(tied):
    draws = np.asarray(draws_of(jax.random.key(0), cast(tied, "float64"), NUMBER))
    mean, variances = tied.moments()
    np.testing.assert_allclose(mean, MEAN, rtol=1e-12)
    np.testing.assert_allclose(variances, np.diagonal(SPREAD), rtol=1e-12)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4 * np.sqrt(variances / NUMBER))
    error = np.std((draws - mean) ** 2, axis=0) / np.sqrt(NUMBER)
    assert np.all(np.abs(draws.var(axis=0) - variances) < 4 * error)


@pytest.mark.usefixtures("double")
def test_the_broad_part_is_drawn_by_its_weight(tied):
    """The mean of its share over the mixture's own draws is its weight."""
    narrow, broad = parts_of(np.asarray(draws_of(jax.random.key(1), cast(tied, "float64"), NUMBER)))
    share = broad / (broad + narrow)
    assert abs(share.mean() - 0.25) < 4 * share.std() / np.sqrt(NUMBER)


@pytest.mark.slow
def test_it_is_a_base_like_any_other(tied):
    """Base and target equal: log Z is exact, and jumps are always accepted."""
    target = tc.Target(lambda x: tied.log_density(x) + 3.0, position(np.zeros(3)))
    result = tc.sample(
        target, seed=0, base=tc.BaseFit(tied, 3.0), num_chains=4, num_warmup=50, num_draws=50, search=False
    )
    assert result.log_evidence.value == pytest.approx(3.0, abs=1e-9)
    assert result.draws.jump_acceptance.min() > 1 - 1e-9
