"""How fast densities fall far out, against the powers they are known to have."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm, t

import thermocline as tc
from thermocline.evaluator import Evaluator
from thermocline.modes.tail_index import tail_index
from thermocline.support.precision import computing_in

DRAWS = np.random.default_rng(0).normal(size=(200, 2)) * [1.0, 3.0]


def fall_of(log_density, draws=DRAWS):
    with computing_in("float64"):
        return tail_index(Evaluator(tc.Target(log_density, np.zeros(2))), draws)


@pytest.mark.parametrize("power", [0.0, 1.0, 1.5, 3.0])
def test_the_power_and_the_axis_of_the_slowest_fall(power):
    fall = fall_of(lambda x: norm.logpdf(x[0]) - power * jnp.log1p(jnp.abs(x[1])))
    assert fall.power == pytest.approx(power, abs=1e-3)
    assert int(np.argmax(np.abs(fall.axis))) == 1


def test_a_direction_between_the_coordinates_in_which_nothing_falls():
    correlated = DRAWS @ np.array([[0.0, 0.0], [1.0, 1.0]]) + 1e-3 * DRAWS
    fall = fall_of(lambda x: norm.logpdf(1e-9 * (x[0] - x[1])), correlated)
    assert fall.power < 1


def test_proper_targets_fall_fast_enough():
    assert fall_of(lambda x: jnp.sum(norm.logpdf(x))).power > 1e3
    assert fall_of(lambda x: jnp.sum(t.logpdf(x, 1.0))).power == pytest.approx(2.0, abs=1e-3)
    assert fall_of(lambda x: jnp.where(jnp.all(jnp.abs(x) < 50), 0.0, -jnp.inf)).power == np.inf


def test_a_floor_that_rounding_holds_up_is_no_improper_tail():
    """Transforms of simplexes and intervals keep away from their ends, so that densities stop falling far out."""
    fall = fall_of(lambda x: norm.logpdf(x[0]) - jnp.minimum(jnp.abs(x[1]), 37.0))
    assert fall.power == np.inf


def test_the_weights_of_a_numpyro_mixture_are_proper():
    numpyro = pytest.importorskip("numpyro")
    weights = numpyro.distributions.Dirichlet(jnp.array([1.0, 2.0, 3.0]))
    target = tc.from_numpyro(lambda: numpyro.sample("weights", weights))
    with computing_in("float64"):
        assert tail_index(Evaluator(target), DRAWS).power > 1.02


@pytest.mark.parametrize(("power", "is_proper"), [(1.5, False), (1.9, False), (2.5, True)])
def test_in_the_plane_a_density_must_fall_faster_than_the_square(power, is_proper):
    """Along every line each of them does: faster than 1/|x|."""
    fall = fall_of(lambda x: -0.5 * power * jnp.log1p(jnp.sum((x - 1.0) ** 2)))
    assert fall.power == pytest.approx(power - 1, abs=1e-3)
    assert (fall.power > 1) == is_proper
    assert not fall.axis.any()


@pytest.mark.parametrize(("power", "is_proper"), [(5.0, False), (7.0, True)])
def test_in_six_dimensions_it_must_fall_faster_still(power, is_proper):
    draws = np.random.default_rng(0).normal(size=(200, 6))
    with computing_in("float64"):
        target = tc.Target(lambda x: -0.5 * power * jnp.log1p(jnp.sum(x**2)), np.zeros(6))
        assert (tail_index(Evaluator(target), draws).power > 1) == is_proper
