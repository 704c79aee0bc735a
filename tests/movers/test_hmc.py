"""HMC: the leapfrog is reversible, preserves volume and is of second order; what is not a number is never accepted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from tests.problems import half_gaussian
from thermocline.movers import Keys, Scale, leapfrog
from thermocline.paths import AtTemperature, Extended, Path
from thermocline.support.precision import cast

POSITION, MOMENTUM = np.array([0.4, -0.9]), np.array([0.7, -0.3])
SCALE = Scale(np.array([[1.1, 0.0], [0.4, 0.8]]), np.array([0.7, 1.3]))


def log_density(x):
    return -jnp.sum(jnp.cosh(x)) - 0.3 * x[0] ** 2 * x[1]


def make_density(log_density=log_density, *, extended=False):
    path = cast(Path(tc.Target(log_density, np.zeros(2)), tc.Gaussian.diagonal(np.ones(2), 2.0), 0.3), "float64")
    return Extended(path, tc.Continuous(), tc.Logistic()) if extended else AtTemperature(path, jnp.asarray(0.6))


def flow(density, scale, step_size, num_steps, position, momentum):
    point, momentum = leapfrog(density, step_size, scale, num_steps, density.evaluate(position), momentum)
    return density.position(point), momentum


def energy(density, position, momentum):
    return 0.5 * momentum @ momentum - density.log_density_at(position)


@pytest.mark.parametrize("extended", [False, True])
def test_leapfrog_retraces_its_steps_when_the_momentum_is_flipped(extended, double):
    density = make_density(extended=extended)
    scale, position, momentum = SCALE, jnp.asarray(POSITION), jnp.asarray(MOMENTUM)
    if extended:
        scale, position, momentum = SCALE.append(1.7), jnp.append(position, 0.5), jnp.append(momentum, -1.0)
    there, arrived = flow(density, scale, 0.2, 9, position, momentum)
    back, returned = flow(density, scale, 0.2, 9, there, -arrived)
    assert np.linalg.norm(there - position) > 0.5  # it went somewhere
    assert np.allclose(back, position, atol=1e-13)
    assert np.allclose(returned, -momentum, atol=1e-13)


def test_leapfrog_preserves_volume(double):
    density = make_density()

    def both(state):
        return jnp.concatenate(flow(density, SCALE, 0.3, 5, state[:2], state[2:]))

    jacobian = jax.jacfwd(both)(jnp.concatenate([POSITION, MOMENTUM]))
    assert np.isclose(abs(np.linalg.det(jacobian)), 1.0, atol=1e-12)
    assert np.linalg.norm(jacobian - np.eye(4)) > 0.5


def test_energy_error_falls_fourfold_when_the_step_is_halved(double):
    density = make_density()
    start = energy(density, jnp.asarray(POSITION), jnp.asarray(MOMENTUM))
    ends = [flow(density, SCALE, 0.8 / n, n, jnp.asarray(POSITION), jnp.asarray(MOMENTUM)) for n in (16, 32, 64)]
    errors = [abs(energy(density, *end) - start) for end in ends]
    assert 3.7 < errors[0] / errors[1] < 4.3
    assert 3.9 < errors[1] / errors[2] < 4.1


def test_each_step_evaluates_the_path_once(double):
    calls = []

    def counted(x):
        jax.debug.callback(lambda: calls.append(1))
        return log_density(x)

    density = make_density(counted)
    point = density.evaluate(jnp.asarray(POSITION))
    jax.effects_barrier()
    calls.clear()
    leapfrog(density, 0.1, SCALE, 7, point, jnp.asarray(MOMENTUM))
    jax.effects_barrier()
    assert len(calls) == 7


def moves(density, position, step_size=0.8, num_chains=200, mover=None):
    """Many moves from one point."""
    mover = tc.HMC(num_steps=4) if mover is None else mover
    scale = Scale(jnp.ones(1), jnp.ones(1))
    point = density.evaluate(jnp.asarray(position))
    keys = jax.random.split(jax.random.key(0), num_chains)
    step = jax.jit(jax.vmap(lambda key: mover.move(Keys(key, jax.random.key(1)), density, step_size, scale, point)))
    return jax.tree.map(np.asarray, step(keys))


def one_dimensional(log_density, beta=1.0):
    path = cast(Path(tc.Target(log_density, np.zeros(1)), tc.Gaussian.diagonal(np.zeros(1), 1.0), 0.0), "float64")
    return AtTemperature(path, jnp.asarray(beta))


def nan_beyond_one(x):
    """The value is NaN where x > 1; the gradient is finite."""
    return jnp.sum(-0.5 * x**2 + 0 * jnp.log(1 - x))


@jax.custom_jvp
def smooth(x):
    return -0.5 * jnp.sum(x**2)


@smooth.defjvp
def nan_slope_beyond_one(primals, tangents):
    """The value is finite everywhere; the gradient is NaN where x > 1."""
    (x,), (tangent,) = primals, tangents
    return smooth(x), jnp.sum(jnp.where(x > 1, jnp.nan, -x) * tangent)


@pytest.mark.parametrize("log_density", [nan_beyond_one, smooth])
def test_nan_is_rejected_and_counted(log_density, double):
    point, move = moves(one_dimensional(log_density), [0.5])
    assert 0.03 < move.is_nonfinite.mean() < 0.9  # some trajectories meet it, some do not
    assert np.all(point.position[move.is_nonfinite] == 0.5)
    assert np.all(move.acceptance[move.is_nonfinite] == 0)
    assert np.all(np.isfinite(point.position))
    assert np.all(np.isfinite(point.gradient_ratio))
    assert not np.any(move.is_divergent[move.is_nonfinite])


def test_plus_infinity_is_rejected_and_counted(double):
    point, move = moves(one_dimensional(lambda x: jnp.sum(jnp.where(x > 1, jnp.inf, -0.5 * x**2))), [0.5])
    assert move.is_nonfinite.mean() > 0.1
    assert np.all(point.position <= 1)


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
    point, move = moves(AtTemperature(path, jnp.asarray(1.0)), [0.3], step_size=0.2)
    stayed = point.position[:, 0] == 0.3
    assert 0.1 < stayed.mean() < 0.9
    assert np.all(point.position > 0)
    assert np.all(move.acceptance[stayed] < 1)
    assert not np.any(move.is_nonfinite | move.is_divergent)
    assert np.all(np.isfinite(point.gradient_ratio))


def test_a_divergence_is_rejected_and_counted(double):
    density, mover = one_dimensional(lambda x: -jnp.sum(x**4)), tc.HMC(num_steps=2, jitter=0.0)
    point, move = moves(density, [1.5], step_size=0.9, mover=mover)
    assert move.is_divergent.mean() > 0.5
    assert not np.any(move.is_nonfinite & move.is_divergent)
    assert np.all(point.position[move.is_divergent] == 1.5)


def test_number_of_steps_is_shared_and_jittered():
    mover = tc.HMC(num_steps=8, jitter=0.5)
    drawn = np.array([mover._draw_num_steps(jax.random.key(seed)) for seed in range(200)])
    assert set(drawn) == set(range(4, 13))
    assert tc.HMC(num_steps=5, jitter=0.0)._draw_num_steps(jax.random.key(0)) == 5


def test_scale_and_its_transpose_are_adjoint(double):
    v, w = jnp.array([0.3, -1.2]), jnp.array([2.0, 0.7])
    assert np.isclose(w @ SCALE.multiply(v), v @ SCALE.multiply_transposed(w), rtol=1e-14)
    longer = SCALE.append(1.7)
    assert np.allclose(longer.multiply(jnp.append(v, 2.0)), jnp.append(SCALE.multiply(v), 3.4), rtol=1e-14)
