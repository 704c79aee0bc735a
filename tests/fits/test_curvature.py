"""Curvature by differences, against exact Hessians, at scales far apart; and what counts as an optimum."""

import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from thermocline.evaluator import Evaluator
from thermocline.fits.curvature import Curvature, are_optima, curvature_at


def on(log_density, start, precision="float64"):
    return Evaluator(tc.Target(log_density, start), precision)


def quadratic(x, data):
    return -0.5 * (x - data["mean"]) @ data["precision"] @ (x - data["mean"])


def test_a_millionth_and_a_million_side_by_side():
    scales = np.array([1e-6, 1e6, 1.0, 30.0])
    correlation = np.array([[1, 0.5, 0, 0.2], [0.5, 1, -0.3, 0], [0, -0.3, 1, 0.1], [0.2, 0, 0.1, 1]])
    precision = np.linalg.inv(correlation) / np.outer(scales, scales)
    target = tc.Target(quadratic, np.zeros(4), {"mean": np.array([2.0, 1e6, -1.0, 0.0]), "precision": precision})
    rows = target.data["mean"] + scales * np.array([[0, 0, 0, 0], [0.3, -0.2, 0.1, 1.0]])
    found = curvature_at(Evaluator(target), rows)
    for covariance in found.covariances():
        np.testing.assert_allclose(covariance / np.outer(scales, scales), correlation, atol=1e-5)
    exact = 0.5 * np.linalg.slogdet(correlation)[1] + np.sum(np.log(scales)) + 2 * np.log(2 * np.pi)
    np.testing.assert_allclose(found.log_volumes(), exact, atol=1e-5)


def test_a_long_thin_ridge_across_the_coordinates():
    """Every coordinate is thin with the others held; the length shows only along the ridge."""
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    scales = np.logspace(-3, 3, 6)
    precision = (rotation / scales**2) @ rotation.T
    found = curvature_at(Evaluator(tc.Target(quadratic, np.zeros(6), {"mean": np.zeros(6), "precision": precision})),
                         np.zeros((1, 6)))  # fmt: skip
    deviations = np.linalg.norm(rotation.T @ found.roots()[0], axis=1)
    np.testing.assert_allclose(deviations, scales, rtol=1e-2)
    assert found.log_volumes()[0] == pytest.approx(3 * np.log(2 * np.pi) + np.sum(np.log(scales)), abs=1e-2)


def test_gains_are_those_of_newton_on_a_skewed_density():
    """-log density exp(x) - 2 x + 9 y²/2 - y x/4 has its Hessian in closed form."""

    def log_density(x):
        return -jnp.exp(x[0]) + 2 * x[0] - 4.5 * x[1] ** 2 + 0.25 * x[0] * x[1]

    evaluate, point = on(log_density, np.zeros(2)), np.array([0.4, -0.3])
    hessian = np.array([[np.exp(0.4), -0.25], [-0.25, 9.0]])
    gradient = np.array([2 - np.exp(0.4) - 0.075, 2.7 + 0.1])
    found = curvature_at(evaluate, point[None])
    np.testing.assert_allclose(found.covariances()[0], np.linalg.inv(hessian), rtol=1e-3, atol=1e-5)
    exact = 0.5 * gradient @ np.linalg.solve(hessian, gradient)
    assert found.gains(gradient[None])[0] == pytest.approx(exact, rel=1e-3)
    assert not are_optima(found, gradient[None])[0]
    assert are_optima(found, 0.05 * gradient[None])[0]


def test_a_saddle_is_no_optimum_and_a_ridge_without_slope_is():
    saddle = on(lambda x: -(x[0] ** 2) + 0.5 * x[1] ** 2, np.zeros(2))
    assert not are_optima(curvature_at(saddle, np.zeros((1, 2))), np.zeros((1, 2)))[0]
    ridge = on(lambda x: -((x[0] + x[1]) ** 2), np.zeros(2))
    along = np.array([[1.0, -1.0], [1e3, -1e3]])
    assert are_optima(curvature_at(ridge, along), np.zeros((2, 2))).all()
    assert not are_optima(curvature_at(ridge, along), np.array([[1.0, -1.0], [1.0, 1.0]])).any()


@pytest.mark.parametrize("start", [[1.0, 2.0], [-3e4, 7.0]])
def test_nothing_bends_anywhere(start):
    slope = on(lambda x: 2.0 * x[0] - 7.0 * x[1], np.zeros(2))
    found = curvature_at(slope, np.array([start]))
    assert not are_optima(found, np.array([[2.0, -7.0]]))[0]


def test_an_edge_within_reach_is_stepped_away_from_and_at_hand_is_not_a_number():
    """A slope of -7 beside an edge is no optimum, however the differences come out."""
    evaluate = on(lambda x: jnp.where(x[0] > 0, -7.0 * x[0] - 0.5 * x[0] ** 2 - x[1] ** 2, -jnp.inf), np.ones(2))
    rows = np.array([[0.02, 0.0], [1e-300, 0.0]])
    found = curvature_at(evaluate, rows)
    np.testing.assert_allclose(found.covariances()[0], np.diag([1.0, 0.5]), rtol=1e-5, atol=1e-8)
    assert not are_optima(found, evaluate(rows)[1]).any()


def test_a_wall_is_never_an_optimum_where_there_is_slope():
    """Steep walls of a soft box: the curvature is huge there, and the slope decides."""
    evaluate = on(lambda x: -7.0 * x[0] - jnp.exp(-1e9 * x[0]), np.ones(1))
    rows = np.array([[1e-12], [1e-3]])
    assert not are_optima(curvature_at(evaluate, rows), evaluate(rows)[1]).any()


def test_single_precision_sees_curvature_too():
    evaluate = on(lambda x: -0.5 * jnp.sum((x - 3.0) ** 2 / jnp.array([0.01, 4.0])), np.zeros(2), "float32")
    found = curvature_at(evaluate, np.array([[3.0, 3.0]]))
    np.testing.assert_allclose(found.covariances()[0], np.diag([0.01, 4.0]), rtol=1e-2, atol=1e-4)


def test_no_points_and_known_deviations():
    evaluate = on(lambda x: -0.5 * jnp.sum(x**2), np.zeros(3))
    assert curvature_at(evaluate, np.zeros((0, 3))).values.shape == (0, 3)
    before = evaluate.num_rows
    found = curvature_at(evaluate, np.zeros((2, 3)), deviations=np.ones(3))
    assert evaluate.num_rows - before == 16  # one pass of twelve rows
    np.testing.assert_allclose(found.values, 1.0, rtol=1e-8)
    assert isinstance(found.chosen(np.array([True, False])), Curvature)


def test_a_saddle_next_to_flat_along_its_coordinates_is_no_curvature_and_no_error():
    """In units of its diagonal it overflows: what is known of it is noise."""
    evaluate = on(lambda x: -x[0] * x[1] - 0.5e-220 * jnp.sum(x**2), np.zeros(2))
    assert not curvature_at(evaluate, np.zeros((1, 2))).is_usable[0]
