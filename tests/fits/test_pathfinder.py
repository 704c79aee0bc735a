"""Pathfinder: exact curvature for a Gaussian, and a lower bound elsewhere."""

import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from tests.problems import gaussian, mixture, mixture_log_density
from thermocline.fits.pathfinder import fit_pathfinder


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
    assert fit.trace[1] > problem.log_evidence - 6  # BlackJAX's sign of the gradient gives 22 less than the evidence


def log_density(position, data):
    """A mixture on a dict, cut to a cube."""
    value = mixture_log_density(position["x"], data)
    return jnp.where(jnp.all(jnp.abs(position["x"]) < data["width"]), value, -jnp.inf)


def target(width):
    return tc.Target(log_density, {"x": np.zeros(2)}, {**mixture(2, weight=0.8).target.data, "width": width})


def test_of_two_modes_the_heavier_wins_and_bounds_the_evidence():
    fit = fit_pathfinder(target(np.inf))
    error = float(fit.story[0].split("± ")[1].rstrip("."))
    assert -3.0 + np.log(0.8) - 0.02 < fit.log_zeta < -3.0 + np.log(0.8) + 4 * error + 1e-3
    np.testing.assert_allclose(fit.base.mean["x"], [3.0, 0.0], atol=0.1)


def test_a_support_too_small_to_meet_gets_a_sentence():
    with pytest.raises(tc.ThermoclineError, match="paths"):
        fit_pathfinder(target(1e-12))
