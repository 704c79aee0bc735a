"""Hops find modes that starts miss; the mixture of what they find covers the target."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from thermocline.estimators.convergence import kish_share
from thermocline.evaluator import Evaluator
from thermocline.fits.lbfgs import Optima, maximise
from thermocline.fits.pool import Pool
from thermocline.modes.hopping import chances, distinct, hop

GENERATOR = np.random.default_rng(3)
CORNERS = np.array(np.meshgrid(*[[-1.0, 1.0]] * 6)).reshape(6, -1).T * np.array([4.0, 5.0, 6.0, 7.0, 5.0, 4.0])
LOG_MASSES = 1.5 * GENERATOR.normal(size=len(CORNERS))


def corners_log_density(x):
    """Sixty-four Gaussians of unit covariance on the corners of a box, of unequal mass."""
    squares = jnp.sum((x - CORNERS) ** 2, axis=1)
    return jax.nn.logsumexp(LOG_MASSES - 0.5 * squares)


@pytest.mark.usefixtures("double")
def test_hops_complete_what_a_few_starts_begin():
    target = Evaluator(tc.Target(corners_log_density, np.full(6, 0.1)))
    few = CORNERS[GENERATOR.permutation(64)[:8]] + 0.1
    known = maximise(target, few)
    found = hop(target, known, 0, 1e-3)
    apart = np.linalg.norm(found.optima.position[:, None] - CORNERS, axis=2)
    assert len(found.optima.position) == 64
    assert apart.min(axis=0).max() < 0.05
    np.testing.assert_allclose(found.covariance, np.eye(6), atol=1e-3)
    pool, log_weight = Pool.empty(6).drawn(np.random.default_rng(0), target, found.base(np.zeros(6)), 4096)
    truth = np.logaddexp.reduce(LOG_MASSES) + 3 * np.log(2 * np.pi)
    share = kish_share(log_weight)
    assert abs(pool.log_evidence - truth) < 4 / np.sqrt(4096 * share)
    assert share > 0.8


def test_repeats_of_an_optimum_are_one():
    position = np.repeat(np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]]), 40, axis=0)
    position = position + 1e-3 * np.random.default_rng(0).normal(size=position.shape)
    height = np.repeat([1.0, 3.0, 2.0], 40)
    kept = distinct(Optima(position, height, np.zeros_like(position), 0 * height), np.eye(2))
    np.testing.assert_allclose(kept.log_density, [3.0, 2.0, 1.0])


def test_the_better_optima_hop_more_often_but_not_alone():
    chance = chances(np.array([500.0, *np.linspace(0, 5, 999)]))
    assert chance[0] == chance.max()
    assert 1 / np.sum(chance**2) >= 256
