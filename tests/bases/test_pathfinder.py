"""Pathfinder: exact curvature for a Gaussian, and a lower bound elsewhere."""

import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from tests.problems import gaussian, mixture
from thermocline.bases.pathfinder import fit_pathfinder


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
    assert np.isfinite(fit.trace).any()


def test_of_two_modes_the_heavier_wins_and_bounds_the_evidence():
    problem = mixture(2, weight=0.8)
    fit = fit_pathfinder(tc.Target(_on_a_dict, {"x": np.zeros(2)}, problem.target.data), num_paths=16)
    assert fit.log_zeta == pytest.approx(-3.0 + np.log(0.8), abs=0.02)
    np.testing.assert_allclose(fit.base.mean["x"], [3.0, 0.0], atol=0.1)


def _on_a_dict(position, data):
    return mixture(2).target.log_density(position["x"], data)


def test_a_density_without_gradient_gets_a_sentence():
    target = tc.Target(lambda x: jnp.where(jnp.abs(x) < 1e-6, 0.0 * x, -jnp.inf), 0.0)
    with pytest.raises(tc.ThermoclineError, match="paths"):
        fit_pathfinder(target, num_paths=2)
