"""NUTS at its seam: the same point, metric and records as HMC; what is not a number is never accepted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from tests.movers.test_hmc import moves, nan_beyond_one, one_dimensional, smooth
from tests.problems import half_gaussian
from thermocline.movers import Keys, Scale
from thermocline.paths import AtTemperature, Path
from thermocline.support.precision import cast

MOVER = tc.NUTS(max_doublings=4)


def test_a_move_returns_the_point_evaluated_where_it_ends(double):
    target = tc.Target(lambda x: -jnp.sum(jnp.cosh(x)), np.zeros(2))
    path = cast(Path(target, tc.Gaussian.diagonal(np.ones(2), 2.0), 0.3), "float64")
    density = AtTemperature(path, jnp.asarray(0.6))
    scale = Scale(jnp.array([[1.1, 0.0], [0.4, 0.8]]), jnp.array([0.7, 1.3]))
    start = density.evaluate(jnp.array([0.4, -0.9]))
    point, move = MOVER.move(Keys(jax.random.key(0), jax.random.key(1)), density, jnp.asarray(0.5), scale, start)
    again = path.evaluate(point.position)
    assert np.linalg.norm(point.position - start.position) > 0.1
    for value, expected in zip(point, again, strict=True):
        assert np.allclose(value, expected, rtol=1e-13)
    assert 0 < move.acceptance <= 1
    assert 2 <= move.num_gradients <= 2**4 + 1
    assert not move.is_divergent
    assert not move.is_nonfinite


@pytest.mark.parametrize("log_density", [nan_beyond_one, smooth])
def test_nan_is_rejected_and_counted(log_density, double):
    point, move = moves(one_dimensional(log_density), [0.5], mover=MOVER)
    assert np.all(np.isfinite(point.position))
    assert np.all(np.isfinite(point.gradient_ratio))
    assert np.all(point.position < 1)
    assert 0.03 < move.is_nonfinite.mean() < 0.9  # some trajectories meet it, some do not


def test_the_edge_of_the_support_is_rejected_without_being_counted(double):
    problem = half_gaussian()
    path = cast(
        Path(
            tc.Target(lambda x: problem.target.log_density(x[0]), np.ones(1)),
            tc.Gaussian.diagonal(np.zeros(1), 1.0),
            0.0,
        ),
        "float64",
    )
    point, move = moves(AtTemperature(path, jnp.asarray(1.0)), [0.3], mover=MOVER)
    assert np.all(point.position > 0)
    assert np.std(point.position) > 0.1
    assert not np.any(move.is_nonfinite)


def test_a_large_step_is_seen_in_the_acceptance(double):
    _, move = moves(one_dimensional(lambda x: -jnp.sum(x**4)), [0.5], step_size=1.5, mover=MOVER)
    assert np.all((move.acceptance >= 0) & (move.acceptance <= 1))
    assert 0.05 < move.acceptance.mean() < 0.9
