"""The metric: where the base is a mixture, spread is counted within modes, not between them."""

import jax.numpy as jnp
import numpy as np
import pytest

from thermocline.movers import metric_of

pytestmark = pytest.mark.usefixtures("double")

MEANS = np.array([[9.0, -4.0], [-6.0, 3.0], [0.0, 30.0]])
COVARIANCES = np.array([[[1.0, 0.5], [0.5, 0.8]], [[0.4, -0.2], [-0.2, 0.3]], [[2.0, 0.0], [0.0, 0.1]]])
MASSES = np.array([0.6, 0.3, 0.1])
WITHIN = np.einsum("k,kij->ij", MASSES, COVARIANCES)
FACTOR = np.array([[1.2, 0.0], [0.4, 0.7]])
DEVIATIONS = np.array([1.2, 0.7])
NUM_CHAINS, NUM_DRAWS = 16, 3000


def weighted_draws():
    """As many draws of each mode, weighted by the modes' masses."""
    generator = np.random.default_rng(2)
    mode = generator.integers(3, size=(NUM_CHAINS, NUM_DRAWS))
    white = generator.normal(size=(NUM_CHAINS, NUM_DRAWS, 2, 1))
    position = MEANS[mode] + (np.linalg.cholesky(COVARIANCES)[mode] @ white)[..., 0]
    return position, MASSES[mode] / MASSES[mode].sum()


POSITION, WEIGHT = weighted_draws()
SIZE = 1 / np.sum(WEIGHT**2)  # effective draws


def adapted(scale, centres=None):
    return metric_of(scale, centres).adapted(POSITION, WEIGHT)


def covariance_at(metric, beta):
    scale = metric.at(jnp.asarray(beta))
    root = np.stack([np.asarray(scale.multiply(row)) for row in jnp.eye(2)], axis=1)
    return root @ root.T


def assert_covariance(metric, covariance):
    """The metric's at the target, in coordinates that make the exact one white; errors of weighted draws, shrinkage.

    A weighted product has a variance of at most 3 - 1 for each effective draw, doubled since modes differ in spread.
    """
    whitener = np.linalg.inv(np.linalg.cholesky(covariance))
    white = whitener @ covariance_at(metric, 1.0) @ whitener.T
    np.testing.assert_allclose(white, np.eye(2), atol=5 * np.sqrt(4 / SIZE) + 100 / SIZE)


def test_spread_is_counted_within_modes():
    assert_covariance(adapted(FACTOR, MEANS), WITHIN)


def test_without_centres_it_is_the_spread_of_the_whole():
    mean = MASSES @ MEANS
    whole = WITHIN + (MEANS - mean).T @ np.diag(MASSES) @ (MEANS - mean)
    assert_covariance(adapted(FACTOR), whole)
    assert np.linalg.det(whole) > 100 * np.linalg.det(WITHIN)


def test_one_centre_for_all_is_no_centre():
    one = adapted(FACTOR, np.zeros((64, 2)))
    np.testing.assert_allclose(covariance_at(one, 1.0), covariance_at(adapted(FACTOR), 1.0), rtol=1e-9)


@pytest.mark.parametrize(
    "centres",
    [
        np.add(MEANS, [[1.0, 0.5], [-0.5, 1.0], [2.0, -3.0]]),  # spread is about the draws' own means
        np.concatenate([MEANS, np.tile(MEANS[:1], (60, 1)), [[500.0, 500.0]]]),  # padded, and one without draws
    ],
)
def test_centres_that_are_off_repeated_or_idle_change_nothing(centres):
    expected = covariance_at(adapted(FACTOR, MEANS), 1.0)
    np.testing.assert_allclose(covariance_at(adapted(FACTOR, centres), 1.0), expected, rtol=1e-9)


def test_a_diagonal_metric_counts_within_modes_as_well():
    covariance = covariance_at(adapted(DEVIATIONS, MEANS), 1.0)
    assert covariance[0, 1] == 0
    np.testing.assert_allclose(np.diagonal(covariance) / np.diagonal(WITHIN), 1.0, atol=5 * np.sqrt(4 / SIZE))


def test_the_base_end_of_the_path_keeps_the_scale_of_the_base():
    metric = adapted(FACTOR, MEANS)
    np.testing.assert_allclose(covariance_at(metric, 0.0), FACTOR @ FACTOR.T, rtol=1e-9)
    np.testing.assert_array_equal(metric.centres, MEANS)
