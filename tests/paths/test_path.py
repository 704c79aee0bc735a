"""The path and the control map: values and gradients against JAX's own, and their inverses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from jax.scipy.stats import norm

import thermocline as tc
from tests.problems import half_gaussian
from thermocline.paths import AtTemperature, Extended, Path, control_at, tempered
from thermocline.support.precision import cast, computing_in

POSITION = {"scale": 0.3, "where": np.array([-0.4, 1.1])}
BIASED = tc.Continuous(np.array([0.0, -0.8, 0.5, 1.2]), np.array([0.0, 0.07, 0.3, 1.0]))
MAPS = {
    "logistic": tc.Logistic(),
    "wide": tc.Logistic(4.0),
    "normal": tc.Monotone(lambda u: norm.cdf(u / 2 - 0.3)),
    "arctangent": tc.Monotone(lambda u: 0.5 + jnp.arctan(u) / jnp.pi),
}


def log_density(position, data):
    return -jnp.sum(jnp.cosh(position["where"] - data)) - jnp.exp(position["scale"]) + 2 * position["scale"]


def make_path():
    target = tc.Target(log_density, POSITION, np.array([0.2, -0.5]))
    mean = {"scale": -0.2, "where": np.array([0.3, 0.5])}
    base = tc.Gaussian(mean, np.array([[0.7, 0.0, 0.0], [0.2, 1.1, 0.0], [-0.1, 0.4, 0.9]]))
    return cast(Path(target, base, -1.7), "float64")


def test_log_ratio_is_log_target_less_log_zeta_less_log_base(double):
    path = make_path()
    flat = ravel_pytree(path.target.initial_position)[0]
    expected = path.target(path.target.initial_position) + 1.7 - path.base.log_density(path.target.initial_position)
    assert np.isclose(path.log_ratio(flat), expected, rtol=1e-14)
    assert path.dimension == 3
    assert jax.tree.structure(path.unravel(flat)) == jax.tree.structure(POSITION)


def test_evaluate_agrees_with_the_densities_and_with_jax_grad(double):
    path = make_path()
    flat = jnp.array([0.5, -1.2, 0.8])
    point = path.evaluate(flat)
    assert np.isclose(point.log_base, path.log_base(flat), rtol=1e-14)
    assert np.isclose(point.log_ratio, path.log_ratio(flat), rtol=1e-14)
    assert np.allclose(point.gradient_base, jax.grad(path.log_base)(flat), rtol=1e-13)
    assert np.allclose(point.gradient_ratio, jax.grad(path.log_ratio)(flat), rtol=1e-13)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_density_at_a_temperature_interpolates_geometrically(beta, double):
    path = make_path()
    density, flat = AtTemperature(path, jnp.asarray(beta)), jnp.array([0.5, -1.2, 0.8])
    point = density.evaluate(flat)
    mixed = (1 - beta) * path.log_base(flat) + beta * (path.target(path.unravel(flat)) + 1.7)
    assert np.isclose(density.log_density(point), mixed, rtol=1e-14)
    assert np.isclose(density.log_density_at(flat), mixed, rtol=1e-14)
    assert np.allclose(density.gradient(point), jax.grad(density.log_density_at)(flat), rtol=1e-13)


@pytest.mark.parametrize("name", MAPS)
def test_extended_density_has_the_jacobian_the_bias_and_the_right_gradient(name, double):
    path, control_map = make_path(), MAPS[name]
    density = Extended(path, BIASED, control_map)
    for control in (-3.0, 0.4, 2.5):
        position = jnp.array([0.5, -1.2, 0.8, control])
        point = density.evaluate(position)
        step = 1e-6
        slope = (control_map(control + step) - control_map(control - step)) / (2 * step)
        beta = control_map(control)
        bias = np.interp(beta, BIASED.knots, BIASED.bias)
        expected = path.log_base(position[:-1]) + beta * path.log_ratio(position[:-1]) - bias + np.log(slope)
        assert np.isclose(density.log_density(point), expected, atol=1e-8)
        assert np.isclose(density.log_density_at(position), density.log_density(point), rtol=1e-14)
        assert np.allclose(density.gradient(point), jax.grad(density.log_density_at)(position), rtol=1e-11, atol=1e-12)
        assert np.array_equal(density.position(point), position)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("name", MAPS)
def test_control_at_inverts_the_map(name, precision):
    with computing_in(precision):
        betas = jnp.asarray([0.001, 0.02, 0.3, 0.5, 0.77, 0.99, 0.999], precision)
        control_map = MAPS[name]
        controls = jax.vmap(lambda beta: control_at(control_map, beta))(betas)
        assert controls.dtype == precision
        assert np.allclose(jax.vmap(control_map)(controls), betas, atol=4 * jnp.finfo(precision).eps, rtol=1e-6)


def test_beta_0_knows_nothing_of_the_support():
    assert tempered(jnp.asarray(0.0), -jnp.inf) == 0
    assert tempered(jnp.asarray(1e-30), -jnp.inf) == -jnp.inf
    assert tempered(jnp.asarray(0.5), jnp.asarray(3.0)) == 1.5


def test_off_the_support_the_ratio_is_minus_infinity_and_forces_stay_finite(double):
    problem = half_gaussian()
    path = cast(Path(problem.target, problem.base, 0.0), "float64")
    point = path.evaluate(jnp.array([-0.5]))
    assert point.log_ratio == -jnp.inf
    base_only, half_way = AtTemperature(path, jnp.asarray(0.0)), AtTemperature(path, jnp.asarray(0.5))
    assert base_only.log_density(point) == point.log_base
    assert half_way.log_density(point) == -jnp.inf
    extended = Extended(path, BIASED, tc.Logistic())
    for density, at in ((base_only, point), (half_way, point), (extended, extended.evaluate(jnp.array([-0.5, 0.3])))):
        assert np.all(np.isfinite(density.gradient(at)))


def test_a_path_is_a_pytree_that_vmaps(double):
    many = jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf)] * 2), make_path())
    values = jax.jit(jax.vmap(lambda path: path.log_ratio(jnp.zeros(3))))(many)
    assert values.shape == (2,)
    assert values[0] == values[1]
    np.testing.assert_allclose(values[0], make_path().log_ratio(jnp.zeros(3)), rtol=1e-14)
