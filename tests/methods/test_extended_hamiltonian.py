"""Gobbo and Leimkuhler's form: exact invariance, weights, the share of two modes, the bias of unadjusted moves."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from tests.conformance.exact import CONSTANT, LOG_ZETA, MEANS, NUM_DRAWS, PRECISIONS, path_between_gaussians, z_score
from tests.problems import bimodal
from thermocline.methods.extended_hamiltonian import STIFFNESS
from thermocline.methods.tuning import NUM_BINS, Bias
from thermocline.movers import Keys, metric_of
from thermocline.paths import ExtendedPoint

LIMIT = 4.5  # standard errors
VALUES = np.linspace(0.0, 1.0, NUM_BINS + 2) ** 2 - 0.5
METHOD = tc.experimental.ExtendedHamiltonian(tc.experimental.Langevin(num_steps=2), lowest=0.2, inner=0.7, outer=1.9)


def beta_of(control):
    place = np.clip((np.abs(control) - 0.7) / 1.2, 0, 1)
    return place, 1 - 0.8 * place**2 * (3 - 2 * place)


def exact_draws(generator):
    """U by inversion on a grid, from its marginal; x given u is Gaussian with beta times the target's precision."""
    grid = np.linspace(-6, 6, 200_001)
    place, beta = beta_of(grid)
    centres = np.concatenate([[0], (np.arange(NUM_BINS) + 0.5) / NUM_BINS, [1]])
    wall = 0.5 * STIFFNESS * np.maximum(np.abs(grid) - 2.6, 0) ** 2
    log_density = beta * (CONSTANT - LOG_ZETA) - np.log(beta) - np.interp(place, centres, VALUES) - wall
    cumulative = np.cumsum(np.exp(log_density))
    control = np.interp(generator.uniform(size=NUM_DRAWS) * cumulative[-1], cumulative, grid)
    root = np.linalg.inv(np.linalg.cholesky(PRECISIONS[1])).T
    white = generator.normal(size=(NUM_DRAWS, 2)) / np.sqrt(beta_of(control)[1])[:, None]
    return MEANS[1] + white @ root.T, control


def features(position, control, log_ratio):
    x, y = position
    return jnp.stack([x, y, x**2, y**2, x * y, control**2, jnp.abs(control), control**4, log_ratio, x * control**2])


def scores(method, step_size):
    path = path_between_gaussians()
    tuning = method.initial_tuning(metric_of(np.ones(2)), np.zeros(8))
    tuning = tuning._replace(step_size=jnp.full(1, step_size), bias=Bias(jnp.asarray(VALUES)))

    def one(key, position, control):
        start = ExtendedPoint(path.evaluate(position), control)
        state, draw = method.step(Keys(*jax.random.split(key)), path, tuning, start)
        after = features(state.point.position, state.control, state.point.log_ratio)
        is_target = jnp.isfinite(draw.log_weight_target) == (jnp.abs(state.control) < 0.7)
        return after - features(position, control, start.point.log_ratio), draw.acceptance, is_target

    step = jax.jit(jax.vmap(one), compiler_options={"xla_backend_optimization_level": 0})
    keys = jax.random.split(jax.random.key(0), NUM_DRAWS)
    change, acceptance, is_target = map(np.asarray, step(keys, *exact_draws(np.random.default_rng(0))))
    assert is_target.all()
    return z_score(change), acceptance.mean()


def test_one_step_leaves_the_law_unchanged(double):
    change, acceptance = scores(METHOD, 0.6)
    assert 0.6 < acceptance < 0.95
    assert change < LIMIT


def test_without_the_metropolis_test_the_law_changes(double):
    unadjusted = tc.experimental.Langevin(num_steps=2, is_adjusted=False)
    method = tc.experimental.ExtendedHamiltonian(unadjusted, lowest=0.2, inner=0.7, outer=1.9)
    assert scores(method, 0.6)[0] > LIMIT
    assert "Metropolis" in method.biases[0]  # which a check says
    assert METHOD.biases == ()


def reweighted_scores(forgotten=0.0):
    """Weights times the excess of functions over their exact means, after a step from exact draws at every u.

    A share of the temperature may be `forgotten`, which must then be noticed.
    """
    method = replace(METHOD, reweights=True)
    path, exact = path_between_gaussians(), exact_draws(np.random.default_rng(1))
    tuning = method.initial_tuning(metric_of(np.ones(2)), np.zeros(8))
    tuning = tuning._replace(step_size=jnp.full(1, 0.6), bias=Bias(jnp.asarray(VALUES)))

    def one(key, position, control):
        start = ExtendedPoint(path.evaluate(position), control)
        state, draw = method.step(Keys(*jax.random.split(key)), path, tuning, start)
        log_target = state.point.log_base + state.point.log_ratio
        wrong = forgotten * (1 - draw.inverse_temperature) * log_target
        return draw.position, draw.log_weight_target - wrong

    keys = jax.random.split(jax.random.key(1), NUM_DRAWS)
    position, log_weight = map(np.asarray, jax.jit(jax.vmap(one))(keys, *exact))
    weight = np.exp(log_weight)
    covariance = np.linalg.inv(PRECISIONS[1])
    centred = position - MEANS[1]
    squares = np.column_stack([centred**2 - np.diag(covariance), np.prod(centred, axis=1) - covariance[0, 1]])
    return z_score(weight[:, None] * np.column_stack([centred, squares])), np.mean(weight) ** 2 / np.mean(weight**2)


def test_draws_at_every_temperature_are_reweighted_for_the_target(double):
    score, share = reweighted_scores()
    assert score < LIMIT
    assert share > 0.3  # of the draws, in effect; a quarter lie on the target's plateau
    assert reweighted_scores(forgotten=0.1)[0] > LIMIT


@pytest.mark.slow
def test_both_modes_are_found_and_there_is_no_evidence(tmp_path):
    problem = bimodal()
    method = tc.experimental.ExtendedHamiltonian(lowest=0.02)
    options = {"num_warmup": 1000, "num_draws": 3000, "progress": False, "seed": 2}
    result = tc.sample(problem.target, base=problem.base, method=method, **options, search=False)
    share = result.expectation(problem.function)
    assert share.standard_error < 0.06
    assert abs(share.z_score(problem.mean)) < 4
    at_target = np.isfinite(result.draws.log_weight_target).mean()
    assert 0.1 < at_target < 0.5  # a quarter, once the law of u is flat
    assert result.log_evidence is None
    with pytest.raises(ValueError, match="tempered"):
        result.log_partition(0.5)
    result.save(tmp_path / "run.nc")
    assert tc.load(tmp_path / "run.nc").expectation(problem.function) == share
