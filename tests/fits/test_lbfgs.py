"""Ascents end where the exact optimum is, whatever the units, and say why they ended."""

import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from thermocline.evaluator import Evaluator
from thermocline.fits.lbfgs import Ending, maximise
from thermocline.fits.quasi_newton import MEMORY, Pairs, low_rank, next_diagonal


def quadratic(x, data):
    return data["top"] - 0.5 * jnp.sum((data["whitening"] @ (x - data["mean"])) ** 2)


def correlated(scales, *, rotated=False, mean=None, precision="float64"):
    """A Gaussian with these scales, correlated, and perhaps rotated besides."""
    dimension = len(scales)
    generator = np.random.default_rng(3)
    root = np.asarray(scales)[:, None] * (generator.normal(size=(dimension, dimension)) / dimension + np.eye(dimension))
    if rotated:
        root = np.linalg.qr(generator.normal(size=(dimension, dimension)))[0] @ root
    mean = np.zeros(dimension) if mean is None else mean
    data = {"whitening": np.linalg.inv(root), "mean": mean, "top": 4.0}
    return Evaluator(tc.Target(quadratic, np.zeros(dimension), data), precision)


def on(log_density, start):
    return Evaluator(tc.Target(log_density, start))


@pytest.mark.parametrize("rotated", [False, True])
@pytest.mark.parametrize("number", [1, 40])
def test_scales_from_a_thousandth_to_a_thousand(number, rotated):
    evaluate = correlated(np.logspace(-3, 3, 12), rotated=rotated)
    found = maximise(evaluate, np.random.default_rng(0).normal(size=(number, 12)))
    assert (found.ending == Ending.ARRIVED).all()
    np.testing.assert_allclose(found.log_density, 4.0, atol=1e-8)


def test_deviations_of_a_millionth_and_a_million_side_by_side():
    mean = np.array([1.0, 1e6, -3.0])
    found = maximise(correlated([1e-6, 1e6, 1.0], mean=mean), np.array([[0.5, 0.0, 2.0]]))
    assert np.all(np.abs(found.position[0] - mean) < 1e-3 * np.array([1e-6, 1e6, 1.0]))
    assert found.ending[0] == Ending.ARRIVED


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_starts_at_the_optimum_and_a_hundred_million_deviations_away(unit):
    """The same in any unit: the same rows are asked for."""
    starts = unit * np.array([[1e8, -2e8, 5e7], [3e7, 1e7, -1e8], [0.0, 0.0, 0.0], [1.0, -2.0, 0.5]])
    evaluate = correlated(unit * np.array([1.0, 2.0, 0.3]))
    found = maximise(evaluate, starts)
    assert (found.ending == Ending.ARRIVED).all()
    np.testing.assert_allclose(found.log_density, 4.0, atol=1e-8)
    assert evaluate.num_rows < 1500


def test_heavy_tails_are_climbed_from_afar():
    """A lane on a flat far tail has much to gain in the metric of its own place, though not in the mode's."""
    evaluate = on(lambda x: -1.5 * jnp.sum(jnp.log1p((x - 3.0) ** 2 / jnp.array([1.0, 25.0]))), np.zeros(2))
    found = maximise(evaluate, np.array([[-1.2, 1.0], [500.0, 400.0], [1e8, -1e6]]))
    np.testing.assert_allclose(found.position, 3.0, atol=1e-3)


def test_a_curved_valley():
    evaluate = on(lambda x: -100 * (x[1] - x[0] ** 2) ** 2 - (1 - x[0]) ** 2, np.zeros(2))
    found = maximise(evaluate, np.array([[-1.2, 1.0], [8.0, 4.0]]))
    np.testing.assert_allclose(found.position, 1.0, atol=1e-3)


def test_single_precision_arrives_as_far_as_it_can_see():
    found = maximise(correlated([0.1, 30.0, 1.0], precision="float32"), np.array([[2.0, 1.0, -4.0]]))
    assert found.ending[0] == Ending.ARRIVED
    assert found.position.dtype == np.float32
    assert found.log_density[0] == pytest.approx(4.0, abs=1e-5)


def test_an_edge_stops_an_ascent_and_is_not_crossed():
    evaluate = on(lambda x: jnp.where(x[0] < 1, 5 * x[0] - 0.5 * x[1] ** 2, -jnp.inf), np.zeros(2))
    found = maximise(evaluate, np.array([[0.0, 0.0], [-30.0, 0.5]]))
    assert (found.ending != Ending.ARRIVED).all()
    assert (found.position[:, 0] < 1).all()
    assert (found.position[:, 0] > 0.99).all()


def test_an_unbounded_density_runs_out_and_stays_finite():
    """A funnel: the narrower, the higher."""
    evaluate = on(lambda x: -x[0] - 0.5 * x[1] ** 2 * jnp.exp(-x[0]), np.ones(2))
    found = maximise(evaluate, np.array([[0.0, 3.0], [5.0, 4.0]]))
    assert (found.ending == Ending.RAN_OUT).all()
    assert np.isfinite(found.log_density).all()
    assert np.isfinite(found.position).all()
    assert found.log_density.min() > 5


def test_a_start_without_density_is_lost_and_harms_no_other():
    evaluate = on(lambda x: jnp.where(x[0] > -5, -0.5 * jnp.sum((x - 2.0) ** 2), jnp.nan), np.zeros(2))
    found = maximise(evaluate, np.array([[-9.0, 0.0], [4.0, 7.0]]))
    assert found.ending.tolist() == [Ending.LOST, Ending.ARRIVED]
    np.testing.assert_allclose(found.position[1], 2.0, atol=1e-4)


def test_two_modes_keep_their_own_lanes_and_iterations_can_run_out():
    def log_density(x):
        narrow, wide = -0.5 * jnp.sum(((x - 9.0) / 1e-2) ** 2), -0.5 * jnp.sum((x + 9.0) ** 2) - 3.0
        return jnp.logaddexp(narrow, wide)

    starts = np.array([[8.99, 9.01], [-9.5, -8.0], [-7.0, -10.0]])
    found = maximise(on(log_density, np.zeros(2)), starts)
    np.testing.assert_allclose(found.position, [[9, 9], [-9, -9], [-9, -9]], atol=1e-3)
    assert (found.ending == Ending.ARRIVED).all()
    assert maximise(on(log_density, np.zeros(2)), starts[1:], num_iterations=1).ending.tolist() == [Ending.RAN_OUT] * 2


def test_paths_begin_at_the_start_and_end_at_the_end_and_rise():
    evaluate = correlated([0.01, 1.0, 20.0])
    starts = np.array([[1.0, 2.0, -1.0], [0.0, -3.0, 40.0], [0.5, 0.5, 0.5]])
    found = maximise(evaluate, starts, keep_paths=True)
    assert len(found.path) == 3
    for start, path, position in zip(starts, found.path, found.position, strict=True):
        np.testing.assert_array_equal(path.position[[0, -1]], [start, position])
        assert np.all(np.diff(path.log_density) > -1e-9)
        values, gradients = evaluate(path.position)
        np.testing.assert_allclose(values, path.log_density, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(gradients, path.gradient, rtol=1e-9, atol=1e-9)
    kept = found.chosen(np.array([2]))
    np.testing.assert_array_equal(kept.path[0].position, found.path[2].position)


def test_the_inverse_hessian_is_that_of_the_updates_one_by_one():
    """The compact form against the rank-two formula of BFGS, pair after pair."""
    generator = np.random.default_rng(1)
    root = generator.normal(size=(6, 6))
    hessian = root @ root.T + np.diag([1.0, 5.0, 0.1, 2.0, 0.3, 8.0])
    diagonal = generator.uniform(0.5, 2.0, (1, 6))
    pairs, expected = Pairs.none(1, 6), np.diag(diagonal[0])
    for _ in range(4):
        step = generator.normal(size=(1, 6)) * 10.0 ** generator.uniform(-6, 6)
        pairs, is_new = pairs.with_one(step, step @ hessian, np.zeros((1, 6)))
        assert is_new.all()
        s, y = step[0], hessian @ step[0]
        projection = np.eye(6) - np.outer(s, y) / (s @ y)
        expected = projection @ expected @ projection.T + np.outer(s, s) / (s @ y)
    factor, core = low_rank(diagonal, pairs)
    found = np.diag(diagonal[0]) + factor[0].T @ core[0] @ factor[0]
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


def test_the_diagonal_is_that_of_the_updated_hessian():
    generator = np.random.default_rng(2)
    diagonal, step = generator.uniform(0.5, 2.0, 5), generator.normal(size=5)
    fall = generator.normal(size=5)
    fall *= np.sign(fall @ step) / np.sqrt(abs(fall @ step))
    step /= abs(fall @ step)
    before = np.diag(1 / diagonal)
    after = before - np.outer(before @ step, before @ step) / (step @ before @ step) + np.outer(fall, fall)
    trace = np.sum(diagonal * fall**2)
    scaled = trace * before - trace * np.outer(before @ step, before @ step) / (step @ before @ step)
    np.testing.assert_allclose(1 / next_diagonal(diagonal, step, fall), np.diagonal(scaled + np.outer(fall, fall)))
    assert np.all(np.diagonal(after) > 0)


def test_pairs_that_say_nothing_are_refused_and_the_oldest_give_way():
    pairs = Pairs.none(3, 2)
    step, before = np.ones((3, 2)) * 1e-5, np.full((3, 2), 1.0)
    after = np.array([[1.0, 1.0], [2.0, 1.5], [0.0, 0.5]])  # nothing, bending up, bending down
    assert pairs.with_one(step, before, after)[1].tolist() == [False, False, True]
    for size in range(1, MEMORY + 3):
        pairs, _ = pairs.with_one(size * np.ones((3, 2)), size * np.ones((3, 2)), np.zeros((3, 2)))
    np.testing.assert_allclose(pairs.steps, 2**-0.5)
    assert pairs.without(np.array([True, False, False])).is_empty.tolist() == [True, False, False]
