"""Pathfinder: exact curvature for a Gaussian, and a lower bound elsewhere."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

import thermocline as tc
from tests.problems import gaussian, gaussian_log_density, mixture, mixture_log_density
from thermocline.engine.batch import at
from thermocline.evaluator import Evaluator
from thermocline.fits.lbfgs import Path, maximise
from thermocline.fits.pathfinder import MOST_POINTS, fit_pathfinder, gaussians_along


def test_a_gaussian_is_found_with_its_covariance():
    """A climb of a quadratic learns all of its curvature: the least bound is near the evidence itself."""
    problem = gaussian(5)
    fit = fit_pathfinder(problem.target)
    covariance = np.linalg.inv(problem.target.data["precision"])
    assert problem.log_evidence - 0.05 < fit.log_zeta < problem.log_evidence + 1e-6
    deviations = np.sqrt(np.diagonal(covariance))
    assert np.all(np.abs(fit.base.mean - problem.target.data["mean"]) < 0.1 * deviations)
    found = fit.base.scale_tril @ fit.base.scale_tril.T
    np.testing.assert_allclose(
        found / np.outer(deviations, deviations), covariance / np.outer(deviations, deviations), atol=0.2
    )
    assert fit.log_zeta_is == "lower bound"
    assert fit.num_gradients > 0


def test_along_a_path_the_mean_is_where_newton_leads_and_the_covariance_grows_exact():
    """On a quadratic, D steps in independent directions tell all of the curvature; the mean is then exact anywhere."""
    problem = gaussian(4)
    evaluate, covariance = Evaluator(problem.target), np.linalg.inv(problem.target.data["precision"])
    basis = np.linalg.eigh(covariance)[1]  # conjugate steps, each of its own length
    steps = basis.T * np.array([[1.0], [3.0], [0.5], [2.0]])
    position = np.concatenate([np.ones((1, 4)), 1 + np.cumsum(steps, axis=0)])
    found = gaussians_along(Path(position, *evaluate(position)))
    np.testing.assert_allclose(found.mean[-1], problem.target.data["mean"], atol=1e-8)
    root = at(found, np.array([-1])).scaled(np.eye(4)[None])[0]
    np.testing.assert_allclose(root.T @ root, covariance, atol=1e-8)
    assert found.log_determinant[-1] == pytest.approx(0.5 * np.linalg.slogdet(covariance)[1])
    elbos = found.elbos(evaluate, np.random.default_rng(0).normal(size=(5, 64, 4)), penalty=0.0)
    values, errors = elbos.value, elbos.standard_error
    assert values[-1] == pytest.approx(problem.log_evidence, abs=1e-8)
    assert np.all(values[:-1] < problem.log_evidence + 4 * errors[:-1])


def test_units_change_nothing_but_where_the_diagonal_begins():
    """In units U the first Gaussian of a path has deviations of one over the slope there; later ones forget it."""
    problem = gaussian(3)
    evaluate = Evaluator(problem.target)
    path = maximise(evaluate, np.array([[2.0, -1.0, 3.0]]), keep_paths=True).path[0]
    units = np.array([[1.0, 0.0, 0.0], [0.5, 2.0, 0.0], [0.0, -1.0, 0.1]])
    found = gaussians_along(path, units)
    first = at(found, np.array([0])).scaled(np.eye(3)[None])[0]
    by_slope = units / (path.gradient[0] @ units)
    np.testing.assert_allclose(first.T @ first, by_slope @ by_slope.T, atol=1e-12)
    assert found.log_determinant[0] == pytest.approx(np.linalg.slogdet(by_slope)[1])
    assert len(found.mean) <= min(len(path.position), MOST_POINTS)


def test_scales_far_apart_and_rotated():
    """The metric of the ascent serves the Gaussians too: the bound is the evidence."""
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(12, 12)))[0]
    scales = np.logspace(-3, 3, 12)
    data = {"mean": np.ones(12), "precision": (rotation / scales**2) @ rotation.T, "constant": 1.5}
    fit = fit_pathfinder(tc.Target(gaussian_log_density, np.zeros(12), data))
    exact = 1.5 + 6 * np.log(2 * np.pi) + np.sum(np.log(scales))
    assert exact - 0.1 < fit.log_zeta < exact + 0.01


def funnel_log_density(position):
    """Unbounded in x² as the scale falls, until its prior ends it: log evidence 0."""
    return norm.logpdf(position["log_scale"], -1.0, 2.0) + jnp.sum(
        norm.logpdf(position["x"], 0.5, jnp.exp(position["log_scale"]))
    )


def test_a_funnel_is_met_where_its_mass_is_and_not_where_it_is_highest():
    fit = fit_pathfinder(tc.Target(funnel_log_density, {"log_scale": 0.0, "x": np.zeros(6)}))
    error = float(fit.notes[0].split("± ")[1].rstrip("."))
    assert -4 < fit.log_zeta < 4 * error
    highest = -1 - 6 * 2.0**2  # of log scale, where the density has its optimum
    assert fit.base.mean["log_scale"] > highest / 2


def log_density(position, data):
    """A mixture on a dict, cut to a cube."""
    value = mixture_log_density(position["x"], data)
    return jnp.where(jnp.all(jnp.abs(position["x"]) < data["width"]), value, -jnp.inf)


def target(width):
    return tc.Target(log_density, {"x": np.zeros(2)}, {**mixture(2, weight=0.8).target.data, "width": width})


def test_of_two_modes_the_heavier_wins_and_bounds_the_evidence():
    fit = fit_pathfinder(target(np.inf))
    error = float(fit.notes[0].split("± ")[1].rstrip("."))
    assert -3.0 + np.log(0.8) - 0.02 < fit.log_zeta < -3.0 + np.log(0.8) + 4 * error + 1e-3
    np.testing.assert_allclose(fit.base.mean["x"], [3.0, 0.0], atol=0.1)


def test_a_support_too_small_to_meet_gets_a_sentence():
    with pytest.raises(tc.ThermoclineError, match="paths"):
        fit_pathfinder(target(1e-12))


def test_a_box_in_which_nothing_bends_is_met_by_its_slope():
    """exp(2x) between -1 and 1, six times: the ascent runs to the edge and sees no curvature."""
    box = tc.Target(lambda x: jnp.where(jnp.all(jnp.abs(x) < 1), 2 * jnp.sum(x), -jnp.inf), np.zeros(6))
    fit = fit_pathfinder(box)
    exact = 6 * np.log(np.sinh(2.0))
    error = float(fit.notes[0].split("± ")[1].rstrip("."))
    assert exact - 3 < fit.log_zeta < exact + 4 * error
