"""What warm-up learns, on paths where the answer is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from thermocline.methods import tuning as tune
from thermocline.methods.continuous import learned_bias
from thermocline.movers import metric_of
from thermocline.paths.reweighting import grid_of_betas, profile_of_base
from thermocline.records import Draws

pytestmark = pytest.mark.usefixtures("double")


def draws_with(**fields):
    shape = next(iter(fields.values())).shape[:2]
    return Draws(*[np.zeros(shape)] * len(Draws._fields))._replace(
        **{name: np.asarray(values) for name, values in fields.items()}
    )


def test_nodes_and_their_betas_are_inverse():
    betas = tune.betas_of_nodes(13)
    np.testing.assert_allclose(tune.nodes_along(betas, 13), np.arange(13), atol=1e-9)
    assert betas[0] == 0
    assert betas[-1] == 1


def test_step_size_reaches_the_wanted_acceptance():
    """A mover whose acceptance is 2 Phi(-(step/width)^2), with a width that depends on beta."""
    mover, generator = tc.HMC(), np.random.default_rng(0)
    beta = jnp.asarray(generator.uniform(size=(16, 64)))
    width = 0.2 + 0.6 * beta
    tuning = tune.initial_tuning(mover, metric_of(np.ones(1)), None, np.zeros(1))
    for _ in range(12):
        step = jax.vmap(jax.vmap(lambda b: tune.step_size_at(tuning, b)))(beta)  # noqa: B023
        acceptance = 2 * jax.scipy.stats.norm.cdf(-((step / width) ** 2))
        draws = draws_with(log_ratio=beta, inverse_temperature=beta, acceptance=acceptance)
        tuning = tuning._replace(step_size=tune.adapt_step_size(tuning.step_size, mover, draws))
    settled = np.asarray(acceptance)
    assert abs(settled.mean() - mover.target_acceptance) < 0.02
    assert settled.min() > 0.6


def test_unused_slots_change_nothing():
    mover, generator = tc.HMC(), np.random.default_rng(0)
    values = generator.uniform(0.1, 0.9, size=(4, 10))
    draws = draws_with(log_ratio=values, inverse_temperature=values, acceptance=values)
    padded = Draws(*(np.pad(leaf, ((0, 0), (0, 6)), constant_values=np.nan) for leaf in draws))
    step = np.full(13, 0.5)
    np.testing.assert_allclose(tune.adapt_step_size(step, mover, draws), tune.adapt_step_size(step, mover, padded))


@pytest.mark.parametrize("is_dense", [False, True])
def test_metric_is_exact_between_gaussians(is_dense):
    generator = np.random.default_rng(1)
    base_covariance, target_covariance = np.diag([1.0, 4.0, 0.25]), np.diag([0.5, 0.1, 1.0])
    if is_dense:
        root = generator.normal(size=(3, 3))
        target_covariance = root @ root.T + 0.1 * np.eye(3)
    scale = np.linalg.cholesky(base_covariance) if is_dense else np.sqrt(np.diag(base_covariance))
    position = generator.multivariate_normal(np.ones(3), target_covariance, size=(16, 4000))
    weight = np.full((16, 4000), 1 / 64_000)
    metric = metric_of(scale).adapted(position, weight)
    for beta in (0.0, 0.3, 1.0):
        precision = (1 - beta) * np.linalg.inv(base_covariance) + beta * np.linalg.inv(target_covariance)
        root = np.stack([np.asarray(metric.at(jnp.asarray(beta)).multiply(column)) for column in jnp.eye(3)], axis=1)
        whitener = np.linalg.cholesky(precision).T
        white = whitener @ root @ root.T @ whitener.T  # the identity, with the errors of 64 000 draws and of shrinkage
        spread = np.ptp(np.log(np.asarray(metric.variances)))
        np.testing.assert_allclose(white, np.eye(3), atol=5 * np.sqrt(2 / 64_000) + 13 / 64_000 * np.exp(spread))


def test_one_chain_that_sits_still_teaches_the_metric_nothing():
    position, weight = np.zeros((16, 100, 2)), np.zeros((16, 100))
    position[1:], weight[0] = 5.0, 0.01
    metric = metric_of(np.ones(2)).adapted(position, weight)
    np.testing.assert_allclose(metric.variances, 1.0, rtol=1e-6)


def test_base_draws_know_the_start_of_the_path():
    """r = a + b x with x ~ N(0, 1): log z - beta log zeta = a beta + (b beta)^2 / 2."""
    log_ratio = -3.0 + 0.5 * np.random.default_rng(0).normal(size=4000)
    curve = profile_of_base(log_ratio).curve()
    betas = grid_of_betas()
    exact = -3.0 * betas + 0.125 * betas**2
    np.testing.assert_allclose(curve.log_partition, exact, atol=4 * 0.5 / np.sqrt(4000) + 0.01)
    effective = 4000 * np.exp(-0.25)  # of the draws reweighted to beta = 1
    np.testing.assert_allclose(curve.speed, 0.5, rtol=4 / np.sqrt(2 * effective))


def test_a_short_path_needs_no_climb_and_a_long_one_does():
    short = tune.initial_tuning(
        tc.HMC(), metric_of(np.ones(1)), learned_bias(), 0.3 * np.random.default_rng(0).normal(size=500)
    )
    assert not short.is_ramping
    long = tune.initial_tuning(
        tc.HMC(), metric_of(np.ones(1)), learned_bias(), 300 * np.random.default_rng(0).normal(size=500)
    )
    assert long.is_ramping
    assert float(long.learning.window.centre) == pytest.approx(tune.STRIDE / 300, rel=0.2)


def test_refitted_law_gives_every_segment_equal_mass():
    """When the curve is the truth: the marginal of beta, z(beta) exp(-f), has equal mass between knots."""
    base_log_ratio = -2.0 + 0.9 * np.random.default_rng(0).normal(size=20_000)
    tuning = tune.initial_tuning(tc.HMC(), metric_of(np.ones(1)), learned_bias(), base_log_ratio)
    law = tuning.law.law
    grid = np.linspace(0, 1, 200_001)
    log_density = -2.0 * grid + 0.405 * grid**2 + np.asarray(jax.vmap(law.log_weight)(jnp.asarray(grid)))
    density = np.exp(log_density - log_density.max())
    masses = np.histogram(grid, np.asarray(law.knots), weights=density)[0]
    assert masses.min() / masses.mean() > 0.7
    assert masses.max() / masses.mean() < 1.4


def test_a_fixed_scale_is_the_metric_everywhere_and_warm_up_leaves_it():
    """Whatever the base's scale; and the joint method keeps its own mass for the control variable."""
    base_metric = metric_of(np.linalg.cholesky([[9.0, 2.0], [2.0, 4.0]]))
    ratios = np.zeros(16)
    for scale, expected in ((2.0, [2.0, 2.0]), (np.array([0.5, 3.0]), [0.5, 3.0])):
        method = tc.GibbsTempering(tc.HMC(step_size=0.5, scale=scale))
        tuning = method.initial_tuning(base_metric, ratios)
        values = np.random.default_rng(4).normal(size=(8, 50))
        draws = draws_with(log_ratio=values, acceptance=values, position=np.stack([values, 7 * values], axis=-1))
        for metric in (tuning.metric, tune.adapt_moves(tuning, method.mover, draws, False).metric):
            for beta in (0.0, 0.3, 1.0):
                assert np.allclose(metric.at(jnp.asarray(beta)).multiply(jnp.ones(2)), expected)
    joint = tc.JointTempering(tc.HMC(step_size=0.5, scale=1.0), mass=4.0)
    assert np.allclose(joint._scale(joint.initial_tuning(base_metric, ratios)).multiply(jnp.ones(3)), [1.0, 1.0, 0.5])
    with pytest.raises(tc.ThermoclineError, match="a number or 2"):
        tc.GibbsTempering(tc.HMC(scale=np.ones(3))).initial_tuning(base_metric, ratios)
