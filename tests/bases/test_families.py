"""Low-rank Gaussians and multivariate t: normalised, exactly sampled, on any PyTree, inside mixtures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import thermocline as tc
from thermocline.bases import Mixture, check_base, fresh_draws
from thermocline.bases.gaussian import LowRankGaussian, StudentT
from thermocline.support.precision import cast

MEAN = {"a": np.array([1.0, -2.0]), "b": np.float64(0.5)}
FLAT = np.array([1.0, -2.0, 0.5])
DEVIATIONS = np.array([0.5, 1.0, 2.0])
FACTOR = np.array([[1.0, 0.2], [-0.5, 0.7], [0.3, -1.5]])
LOW_RANK_COVARIANCE = np.diag(DEVIATIONS**2) + FACTOR @ FACTOR.T
TRIL = np.array([[1.2, 0.0, 0.0], [0.4, 0.8, 0.0], [-0.5, 0.3, 0.6]])
POINTS = np.array([[0.3, 0.1, -1.0], [4.0, -6.0, 9.0], [1.0, -2.0, 0.5]])

NUMBER = 40_000  # of draws

FAMILIES = {
    "low rank": LowRankGaussian(MEAN, DEVIATIONS, FACTOR),
    "t": StudentT(MEAN, TRIL, 12.0),
    "t of a broken number": StudentT(MEAN, TRIL, 12.5),
}


draws_of = jax.jit(fresh_draws, static_argnames="num_draws")


def position(flat):
    return {"a": flat[:2], "b": flat[2]}


@pytest.fixture(params=FAMILIES)
def base(request):
    return FAMILIES[request.param]


@pytest.mark.usefixtures("double")
def test_low_rank_density_matches_scipy():
    expected = stats.multivariate_normal(FLAT, LOW_RANK_COVARIANCE).logpdf(POINTS)
    base = tc.Gaussian.low_rank(MEAN, DEVIATIONS, FACTOR)
    np.testing.assert_allclose(jax.vmap(lambda x: base.log_density(position(x)))(jnp.asarray(POINTS)), expected, 1e-12)


@pytest.mark.usefixtures("double")
def test_low_rank_does_not_cancel_for_a_wide_factor():
    """Along the factor the distance is 1 to rounding; across it, in deviations of 1e-6, it is 1 as well."""
    base = tc.Gaussian.low_rank(np.zeros(2), 1e-6, np.array([[1.0], [1.0]]))
    along, across = np.array([1.0, 1.0]), np.array([1e-6, -1e-6]) / np.sqrt(2)
    centre = float(base.log_density(jnp.zeros(2)))
    assert float(base.log_density(jnp.asarray(along))) - centre == pytest.approx(-0.5, rel=1e-9)
    assert float(base.log_density(jnp.asarray(across))) - centre == pytest.approx(-0.5, rel=1e-9)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("scale", "shape"), [(TRIL, TRIL @ TRIL.T), (DEVIATIONS, np.diag(DEVIATIONS**2))])
def test_student_density_matches_scipy(scale, shape):
    base = StudentT(MEAN, scale, 3.5)
    expected = stats.multivariate_t(FLAT, shape, df=3.5).logpdf(POINTS)
    np.testing.assert_allclose(jax.vmap(lambda x: base.log_density(position(x)))(jnp.asarray(POINTS)), expected, 1e-12)


@pytest.mark.usefixtures("double")
def test_student_is_normalised_by_quadrature():
    grid = jnp.linspace(-2000.0, 2000.0, 400_001)
    base = StudentT(np.float64(0.7), np.array([1.3]))
    assert float(jnp.trapezoid(jnp.exp(jax.vmap(base.log_density)(grid)), grid)) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.usefixtures("double")
def test_draws_have_the_stated_moments(base):
    draws = np.asarray(draws_of(jax.random.key(0), cast(base, "float64"), NUMBER))
    mean, variances = base.moments()
    covariance = np.asarray(base.covariance())
    np.testing.assert_allclose(variances, np.diagonal(covariance), rtol=1e-12)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4 * np.sqrt(variances / NUMBER))
    products = np.einsum("ni,nj->nij", draws - mean, draws - mean)
    assert np.all(np.abs(products.mean(axis=0) - covariance) < 4.5 * products.std(axis=0) / np.sqrt(NUMBER))


@pytest.mark.usefixtures("double")
def test_student_draws_have_its_tails():
    """The squared distance over D is an F variable."""
    base = cast(StudentT(MEAN, TRIL, 5.0), "float64")
    white = np.linalg.solve(TRIL, (np.asarray(draws_of(jax.random.key(1), base, NUMBER)) - FLAT).T)
    assert stats.kstest(np.sum(white**2, axis=0) / 3, stats.f(3, 5).cdf).pvalue > 1e-3


@pytest.mark.usefixtures("double")
def test_families_live_on_pytrees_that_jit_and_vmap(base):
    check_base(base, MEAN)
    base = cast(base, "float64")
    many = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), base)
    point = position(jnp.asarray(POINTS[0]))
    values = jax.jit(jax.vmap(lambda base: base.log_density(point)))(many)
    np.testing.assert_allclose(values, [base.log_density(point)] * 2, rtol=1e-12)
    assert jax.jit(lambda base, key: base.sample(key))(base, jax.random.key(0))["a"].shape == (2,)


@pytest.mark.usefixtures("double")
def test_families_mix(base):
    """Two of them, padded to four: the density is the weighted sum, draws have its moments, padding adds no NaN."""
    moved = type(base)({"a": MEAN["a"] + 5.0, "b": MEAN["b"]}, *[getattr(base, n) for n in list(vars(base))[1:]])
    mixture = cast(Mixture.of([base, moved], np.log([0.3, 0.7])), "float64")
    point = position(jnp.asarray(POINTS[1]))
    expected = np.logaddexp(np.log(0.3) + base.log_density(point), np.log(0.7) + moved.log_density(point))
    value, gradient = jax.jit(jax.value_and_grad(lambda x: mixture.log_density(x)))(point)
    assert float(value) == pytest.approx(float(expected), rel=1e-12)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    draws = np.asarray(draws_of(jax.random.key(2), mixture, NUMBER))
    mean, variances = mixture.moments()
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4 * np.sqrt(variances / NUMBER))


def test_too_few_degrees_of_freedom_get_a_sentence():
    for degrees in (2, 1.5, np.array([7.0, 2.0]), None):
        with pytest.raises(tc.ThermoclineError, match="more than 2"):
            StudentT(MEAN, TRIL, degrees)
