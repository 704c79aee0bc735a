"""Mixtures: normalised, exactly sampled, padded so that sizes share programs, and what a metric asks of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import thermocline as tc
from thermocline.bases import Mixture, check_base, fresh_draws
from thermocline.bases.base import centres_of, initial_scale
from thermocline.support.precision import cast

WEIGHTS = np.array([0.5, 0.2, 0.3])
MEANS = np.array([[2.0, -1.0], [-3.0, 0.5], [0.0, 4.0]])
COVARIANCES = np.array([[[1.0, 0.6], [0.6, 0.8]], [[0.2, 0.0], [0.0, 1.5]], [[0.5, -0.3], [-0.3, 0.4]]])
NUMBER = 40_000


def position(flat):
    return {"a": flat[0], "b": flat[1:]}


def gaussian(index):
    return tc.Gaussian.from_covariance(position(MEANS[index]), COVARIANCES[index])


def three(log_offset=0.0):
    """Three components of a PyTree; the weights need not be normalised."""
    return Mixture.of([gaussian(i) for i in range(3)], np.log(WEIGHTS) + log_offset)


def log_densities(mixture, points):
    return np.asarray(jax.vmap(lambda x: mixture.log_density(position(x)))(jnp.asarray(points)))


@pytest.mark.usefixtures("double")
def test_density_is_the_weighted_sum():
    points = np.array([[2.0, -1.0], [-2.5, 1.0], [1.0, 1.0], [30.0, -20.0]])
    laws = [stats.multivariate_normal(*moments) for moments in zip(MEANS, COVARIANCES, strict=True)]
    expected = np.log(sum(weight * law.pdf(points[:3]) for weight, law in zip(WEIGHTS, laws, strict=True)))
    mixture = cast(three(log_offset=11.0), "float64")
    np.testing.assert_allclose(log_densities(mixture, points[:3]), expected, rtol=1e-12)
    assert np.isfinite(log_densities(mixture, points)).all()


@pytest.mark.usefixtures("double")
def test_density_is_normalised_by_quadrature():
    axes = np.linspace(-10, 10, 801), np.linspace(-10, 12, 881)
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    values = np.exp(log_densities(cast(three(), "float64"), points)).reshape(801, 881)
    total = np.trapezoid(np.trapezoid(values, axes[1]), axes[0])
    assert total == pytest.approx(1.0, abs=1e-9)


@pytest.mark.usefixtures("double")
def test_draws_have_the_exact_law():
    mixture = cast(three(), "float64")
    draws = np.asarray(jax.jit(fresh_draws, static_argnums=2)(jax.random.key(1), mixture, NUMBER))
    for direction in (np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([0.6, -0.8])):
        deviations = np.sqrt(np.einsum("i,kij,j->k", direction, COVARIANCES, direction))

        def cumulative(values, direction=direction, deviations=deviations):
            return stats.norm.cdf((values[:, None] - MEANS @ direction) / deviations) @ WEIGHTS

        assert stats.kstest(draws @ direction, cumulative).pvalue > 1e-3
    mean, variances = mixture.moments()
    np.testing.assert_allclose(mean, WEIGHTS @ MEANS, rtol=1e-12)
    spread = np.diagonal(COVARIANCES, axis1=1, axis2=2) + (MEANS - WEIGHTS @ MEANS) ** 2
    np.testing.assert_allclose(variances, WEIGHTS @ spread, rtol=1e-12)


@pytest.mark.parametrize(("number", "size"), [(1, 1), (2, 4), (4, 4), (5, 16), (16, 16), (17, 64), (65, 65)])
def test_sizes_are_padded(number, size):
    mixture = Mixture.of([gaussian(i % 3) for i in range(number)], np.zeros(number))
    assert len(mixture.log_weights) == size
    assert mixture.num_components == number
    np.testing.assert_allclose(np.exp(mixture.log_weights[:number]), 1 / number)
    assert np.all(np.isneginf(mixture.log_weights[number:]))


@pytest.mark.usefixtures("double")
def test_padding_changes_nothing_but_the_program_it_shares():
    two, padded = Mixture.of([gaussian(0), gaussian(1)], np.log([0.7, 0.3])), three()
    assert jax.tree.structure(two) == jax.tree.structure(padded)
    shapes = [[(np.shape(leaf), np.asarray(leaf).dtype) for leaf in jax.tree.leaves(m)] for m in (two, padded)]
    assert shapes[0] == shapes[1]
    program = jax.jit(lambda mixture, x, key: (mixture.log_density(position(x)), mixture.sample(key)))
    point = jnp.array([0.3, 0.2])
    value, _ = program(cast(two, "float64"), point, jax.random.key(0))
    program(cast(padded, "float64"), point, jax.random.key(0))
    assert program._cache_size() == 1
    parts = [
        0.7 * np.exp(gaussian(0).log_density(position(point))),
        0.3 * np.exp(gaussian(1).log_density(position(point))),
    ]
    assert float(value) == pytest.approx(float(np.log(sum(parts))), rel=1e-12)


@pytest.mark.usefixtures("double")
def test_padding_is_never_drawn_and_has_no_gradient_of_its_own():
    mixture = cast(Mixture.of([gaussian(1), gaussian(2)], [0.0, 0.0]), "float64")
    draws = np.asarray(jax.jit(fresh_draws, static_argnums=2)(jax.random.key(0), mixture, NUMBER))
    share = np.mean(draws[:, 1] > 2.2)
    exact = 0.5 * (stats.norm.sf((2.2 - 0.5) / np.sqrt(1.5)) + stats.norm.sf((2.2 - 4.0) / np.sqrt(0.4)))
    assert abs(share - exact) < 4 * np.sqrt(exact * (1 - exact) / NUMBER)
    gradient = jax.grad(lambda x: mixture.log_density(position(x)))(jnp.array([500.0, -300.0]))
    assert np.all(np.isfinite(gradient))


@pytest.mark.usefixtures("double")
def test_the_scale_is_pooled_within_components():
    """Not the spread of the whole mixture: what a move crosses is a component."""
    mixture = cast(three(), "float64")
    pooled = np.einsum("k,kij->ij", WEIGHTS, COVARIANCES)
    scale = np.asarray(mixture.pooled_scale())
    np.testing.assert_allclose(scale @ scale.T, pooled, rtol=1e-12)
    assert np.all(scale == np.tril(scale))
    np.testing.assert_array_equal(initial_scale(mixture, np.zeros((4, 2))), scale)
    deviations = np.array([[1.0, 2.0], [0.5, 3.0]])
    diagonal = Mixture.of([tc.Gaussian.diagonal(np.zeros(2), row) for row in deviations], np.log([0.25, 0.75]))
    np.testing.assert_allclose(diagonal.pooled_scale(), np.sqrt(np.array([0.25, 0.75]) @ deviations**2), rtol=1e-12)


@pytest.mark.usefixtures("double")
def test_centres_are_the_means_padded_to_one_number():
    mixture = cast(three(), "float64")
    np.testing.assert_array_equal(mixture.centres()[:3], MEANS)
    centres = np.asarray(centres_of(mixture, np.zeros((4, 2))))
    assert centres.shape == (64, 2)
    assert {tuple(row) for row in centres} == {tuple(row) for row in MEANS}
    draws = np.random.default_rng(0).normal(size=(50, 2))
    single = np.asarray(centres_of(tc.Gaussian.diagonal(np.zeros(2), 1.0), draws))
    assert single.shape == (64, 2)
    np.testing.assert_allclose(single, np.broadcast_to(draws.mean(axis=0), (64, 2)))


def test_a_mixture_is_a_base_of_its_components():
    mixture = three()
    check_base(mixture, position(np.zeros(2)))
    np.testing.assert_array_equal(mixture.component(1).mean["b"], MEANS[1, 1:])
    np.testing.assert_allclose(mixture.component(2).covariance(), COVARIANCES[2], rtol=1e-6)
