"""One density for NumPy and JAX, prepared or not, and draws of both that have the same law."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from thermocline.bases import fresh_draws
from thermocline.support.precision import cast

pytestmark = pytest.mark.usefixtures("double")

MEAN = {"a": np.array([1.0, -2.0]), "b": np.float64(0.5)}
TRIL = np.array([[1.2, 0.0, 0.0], [0.4, 0.8, 0.0], [-0.5, 0.3, 0.6]])
OTHER = {"a": np.array([-3.0, 1.0]), "b": np.float64(2.5)}
DENSE = tc.Gaussian(MEAN, TRIL)
CENTRES = np.array([[1.0, -2.0, 0.5], [-3.0, 1.0, 2.5], [0.0, 4.0, -1.0]])
FAMILIES = {
    "diagonal": tc.Gaussian.diagonal(MEAN, np.array([0.5, 1e-6, 1e6])),
    "dense": DENSE,
    "dense, prepared": DENSE.prepared(),
    "t": tc.StudentT(MEAN, TRIL, 5.5),
    "t, prepared": tc.StudentT(MEAN, TRIL, 5.5).prepared(),
    "t, diagonal": tc.StudentT(MEAN, np.array([0.3, 2.0, 1.0]), 30.0).prepared(),
    "low rank": tc.Gaussian.low_rank(MEAN, np.array([0.5, 1.0, 2.0]), np.array([[1.0, 0.2], [-0.5, 0.7], [0.3, -1.5]])),
    "mixture": tc.Mixture.of([DENSE, tc.Gaussian(OTHER, 0.5 * TRIL)], np.log([0.8, 0.2]), at_least=4),
    "mixture of t": tc.Mixture.of([tc.StudentT(MEAN, TRIL, 4.0), tc.StudentT(OTHER, TRIL, 9.0)], np.log([0.3, 0.7])),
    "tied": tc.TiedMixture.of(CENTRES, np.log([0.5, 0.3, 0.2]), TRIL @ TRIL.T, MEAN, room=8),
}
NUMBER = 40_000


def position(flat):
    return {"a": flat[:2], "b": flat[2]}


@pytest.fixture(params=FAMILIES)
def base(request):
    return FAMILIES[request.param]


def test_numpy_and_jax_agree(base):
    rows = base.sample_rows(np.random.default_rng(0), 50) * np.linspace(0.2, 3.0, 50)[:, None]
    in_jax = jax.jit(jax.vmap(lambda row: base.log_density(position(row))))(jnp.asarray(rows))
    np.testing.assert_allclose(base.log_density_of_rows(rows), in_jax, rtol=1e-10, atol=1e-10)
    stacked = base.log_density_of_rows(rows.reshape(5, 10, 3))
    np.testing.assert_allclose(stacked.ravel(), in_jax, rtol=1e-10, atol=1e-10)


def test_draws_of_both_have_the_same_law(base):
    """The shares of draws below quantiles of the other's, coordinate by coordinate, and of their log densities."""
    fast = base.sample_rows(np.random.default_rng(1), NUMBER)
    drawn = jax.jit(lambda base: fresh_draws(jax.random.key(2), base, NUMBER))
    slow = np.asarray(drawn(cast(base, "float64")))
    pairs = [*zip(fast.T, slow.T, strict=True), (base.log_density_of_rows(fast), base.log_density_of_rows(slow))]
    for first, second in pairs:
        for share in (0.05, 0.3, 0.7, 0.95):
            below = np.mean(first < np.quantile(second, share))
            assert abs(below - share) < 4.5 * np.sqrt(2 * share * (1 - share) / NUMBER)


def test_degrees_of_freedom_are_a_leaf():
    """Another number of degrees compiles nothing anew."""
    compiled = jax.jit(lambda base: base.log_density(position(jnp.arange(3.0))))
    values = [float(compiled(cast(tc.StudentT(MEAN, TRIL, degrees), "float64"))) for degrees in (3.0, 6.5)]
    assert compiled._cache_size() == 1
    assert values[0] != values[1]
