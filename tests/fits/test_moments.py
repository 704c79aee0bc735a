"""Moments of mixtures are exact; of draws, right within their errors, and proper when draws are few."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from tests.problems import mixture
from thermocline.bases import Mixture
from thermocline.bases.gaussian import StudentT
from thermocline.fits.moments import fit_moments, shrunk, weighted_moments
from thermocline.records import Estimate

COVARIANCE = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]])


def test_a_mixture_gives_the_papers_base_exactly():
    problem = mixture(3)
    data = problem.target.data
    parts = [tc.Gaussian.diagonal(m, s) for m, s in zip(data["means"], data["scales"], strict=True)]
    fit = fit_moments(tc.BaseFit(Mixture.of(parts, data["log_weights"]), -3.5, 77, "lower bound"))
    np.testing.assert_allclose(fit.base.mean, problem.base.mean, rtol=1e-12)
    np.testing.assert_allclose(fit.base.scale_tril, problem.base.scale_tril, atol=1e-12)
    assert (fit.log_zeta, fit.num_gradients, fit.log_zeta_is) == (-3.5, 77, "lower bound")
    assert fit_moments(Mixture.of(parts, data["log_weights"]), log_zeta=2.0).log_zeta == 2.0


def test_a_mixture_of_t_on_a_dict():
    parts = [StudentT({"x": np.array(m), "y": np.float64(1.0)}, np.eye(3), 6.0) for m in ([0.0, 0.0], [4.0, 2.0])]
    fit = fit_moments(Mixture.of(parts, np.log([0.25, 0.75])))
    np.testing.assert_allclose(fit.base.mean["x"], [3.0, 1.5])
    between = 0.25 * 0.75 * np.outer([4.0, 2.0, 0.0], [4.0, 2.0, 0.0])
    np.testing.assert_allclose(fit.base.scale_tril @ fit.base.scale_tril.T, 1.5 * np.eye(3) + between, atol=1e-12)


def test_a_single_t_gives_its_moments_and_its_log_zeta():
    fit = fit_moments(tc.BaseFit(StudentT(np.array([1.0, -2.0]), np.diag([1.0, 3.0]), 6.0), 0.7))
    np.testing.assert_allclose(fit.base.mean, [1.0, -2.0])
    np.testing.assert_allclose(fit.base.scale_tril @ fit.base.scale_tril.T, 1.5 * np.diag([1.0, 9.0]))
    assert fit.log_zeta == 0.7


def test_weighted_draws_recover_the_target_of_the_weights():
    """Draws of N(0, 4 I), weighted for N(1, COVARIANCE): both moments within four standard errors."""
    generator, number = np.random.default_rng(0), 20_000
    draws = 2 * generator.normal(size=(number, 3))
    centred = draws - 1
    log_weights = 0.5 * np.sum(draws**2, axis=1) / 4 - 0.5 * np.sum(
        centred @ np.linalg.inv(COVARIANCE) * centred, axis=1
    )
    positions = {"a": draws[:, :2], "b": draws[:, 2]}
    fit = fit_moments((positions, log_weights), log_zeta=1.0)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    errors = np.sqrt(weights**2 @ centred**2)
    assert np.all(np.abs(np.append(fit.base.mean["a"], fit.base.mean["b"]) - 1) < 4 * errors)
    products = np.einsum("ni,nj->nij", centred, centred) - COVARIANCE
    errors = np.sqrt(np.einsum("n,nij->ij", weights**2, products**2))
    assert np.all(np.abs(fit.base.scale_tril @ fit.base.scale_tril.T - COVARIANCE) < 4 * errors)
    ravelled = fit_moments((draws, log_weights), like={"a": np.zeros(2), "b": 0.0})
    np.testing.assert_allclose(ravelled.base.scale_tril, fit.base.scale_tril, rtol=1e-12)


def test_a_result_brings_its_weights_and_its_evidence():
    generator = np.random.default_rng(1)
    draws = generator.normal([1.0, -1.0], size=(4, 500, 2))
    result = SimpleNamespace(
        unconstrained={"p.x": draws[..., 0], "p.y": draws[..., 1]},
        template={"p": {"x": "p.x", "y": "p.y"}},
        draws=SimpleNamespace(log_weight_target=np.where(draws[..., 0] > 1, 0.0, -np.inf)),
        log_evidence=Estimate(-4.0, 0.1, 10.0),
    )
    fit = fit_moments(result)
    assert fit.log_zeta == -4.0
    assert abs(fit.base.mean["p"]["x"] - (1 + np.sqrt(2 / np.pi))) < 4 * 0.6 / np.sqrt(1000)
    assert fit.base.mean["p"]["y"].shape == ()


@pytest.mark.usefixtures("double")
def test_moments_of_a_population():
    positions, weights = jnp.array([[0.0, 1.0], [2.0, 1.0], [2.0, 5.0]]), jnp.array([2.0, 1.0, 1.0])
    mean, covariance = weighted_moments(positions, weights)
    np.testing.assert_allclose(mean, [1.0, 2.0])
    np.testing.assert_allclose(covariance, [[1.0, 1.0], [1.0, 3.0]])


def test_few_draws_give_a_proper_covariance_and_many_are_left_alone():
    generator = np.random.default_rng(2)
    few = generator.normal(size=(10, 20))
    fit = fit_moments((few, None))
    assert np.linalg.cond(fit.base.scale_tril) < 30
    np.testing.assert_allclose(np.sum(fit.base.scale_tril**2, axis=1), few.var(axis=0, ddof=1), rtol=1e-12)
    np.testing.assert_allclose(shrunk(COVARIANCE, 1e9), COVARIANCE, rtol=1e-6)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ((np.zeros((5, 2)), None), "never varies"),
        ((np.eye(3), np.array([0.0, -np.inf, -np.inf])), "amount to 1.00"),
        ((np.eye(3), np.zeros(2)), "3 positions"),
        ((np.eye(3), np.full(3, -np.inf)), "no draw"),
        (np.eye(3), "pair"),
    ],
)
def test_draws_that_have_no_moments_get_a_sentence(source, says):
    with pytest.raises(tc.ThermoclineError, match=says):
        fit_moments(source)


def test_a_result_whose_parameters_are_shown_otherwise_than_sampled():
    """As models with deterministic sites are: there the base is of the sampled ones."""
    raw = np.random.default_rng(2).normal(3.0, 2.0, size=(4, 500))
    result = SimpleNamespace(
        unconstrained={"raw": raw},
        template={"raw": "raw", "doubled": "doubled"},
        draws=SimpleNamespace(log_weight_target=np.zeros_like(raw)),
        log_evidence=None,
    )
    fit = fit_moments(result)
    assert set(fit.base.mean) == {"raw"}
    assert abs(fit.base.mean["raw"] - 3) < 4 * 2 / np.sqrt(raw.size)
