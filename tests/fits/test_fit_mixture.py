"""Expectation maximisation recovers a known mixture, and forgets no component."""

import jax
import numpy as np
import pytest

import thermocline as tc
from thermocline.bases import Mixture
from thermocline.fits.student_mixture import fit_mixture

WEIGHTS = np.array([0.5, 0.3, 0.2])
MEANS = np.array([[0.0, 0.0], [6.0, 1.0], [-2.0, 7.0]])
COVARIANCES = np.array([[[1.0, 0.6], [0.6, 1.0]], [[0.3, -0.1], [-0.1, 0.5]], [[2.0, 0.0], [0.0, 0.2]]])


def draw(number=6000, seed=0):
    generator = np.random.default_rng(seed)
    label = generator.choice(3, size=number, p=WEIGHTS)
    noise = generator.normal(size=(number, 2))
    return MEANS[label] + np.einsum("nij,nj->ni", np.linalg.cholesky(COVARIANCES)[label], noise), label


def truth(**changes):
    parts = [tc.Gaussian.from_covariance(m, c) for m, c in zip(MEANS, COVARIANCES, strict=True)]
    return Mixture.of(parts, changes.get("log_weights", np.log(WEIGHTS)))


def check_components(mixture, number):
    """Weights, means and covariances within four and a half standard errors of the truth, in any order."""
    means, scales = np.asarray(mixture.centres()), np.asarray(mixture.components.scale_tril)
    for weight, mean, covariance in zip(WEIGHTS, MEANS, COVARIANCES, strict=True):
        k = np.argmin(np.sum((means[: mixture.num_components] - mean) ** 2, axis=1))
        variances = np.diagonal(covariance)
        assert abs(np.exp(mixture.log_weights[k]) - weight) < 4.5 * np.sqrt(weight * (1 - weight) / number)
        assert np.all(np.abs(means[k] - mean) < 4.5 * np.sqrt(variances / (weight * number)))
        errors = np.sqrt((np.outer(variances, variances) + covariance**2) / (weight * number))
        assert np.all(np.abs(scales[k] @ scales[k].T - covariance) < 4.5 * errors)


def test_a_known_mixture_is_recovered_on_a_dict():
    positions, _ = draw()
    fit = fit_mixture(({"x": positions[:, 0], "y": positions[:, 1]}, None), num_components=3, log_zeta=-7.0)
    assert fit.base.num_components == 3
    assert fit.base.log_weights.shape == (4,)
    assert np.isneginf(fit.base.log_weights[3])
    assert fit.base.components.mean["x"].shape == (4,)
    check_components(fit.base, 6000)
    assert np.all(np.diff(fit.trace) > -1e-4)
    assert fit.log_zeta == -7.0


def test_weights_stand_for_draws():
    """Drawn with equal shares, weighted to the true ones."""
    generator = np.random.default_rng(3)
    label = generator.choice(3, size=9000)
    positions = MEANS[label] + np.einsum(
        "nij,nj->ni", np.linalg.cholesky(COVARIANCES)[label], generator.normal(size=(9000, 2))
    )
    fit = fit_mixture((positions, np.log(WEIGHTS)[label]), num_components=3, seed=1)
    check_components(fit.base, 4000)


def test_a_diagonal_mixture_has_deviations():
    generator = np.random.default_rng(4)
    label = generator.choice(2, size=4000, p=[0.7, 0.3])
    positions = np.array([[0.0, 0.0], [8.0, 3.0]])[label] + generator.normal(size=(4000, 2)) * [1.0, 0.2]
    fit = fit_mixture((positions, None), num_components=2, diagonal=True)
    assert fit.base.components.scale_tril.shape == (4, 2)
    heavy = int(np.argmax(fit.base.log_weights))
    np.testing.assert_allclose(fit.base.components.scale_tril[heavy], [1.0, 0.2], rtol=4.5 / np.sqrt(2 * 2800))


def test_components_without_draws_keep_their_shape_and_a_thousandth():
    positions, label = draw()
    seen = positions[label != 2]
    base = fit_mixture((seen, None), start=truth()).base
    np.testing.assert_allclose(base.components.mean[2], MEANS[2], rtol=1e-12)
    np.testing.assert_allclose(base.components.scale_tril[2], np.linalg.cholesky(COVARIANCES[2]), rtol=1e-12)
    weights = np.exp(base.log_weights)
    assert weights[2] == pytest.approx(1e-3, rel=0.01)
    assert abs(weights[0] - 0.5 / 0.8) < 0.001 + 4.5 * np.sqrt(0.25 / len(seen))
    assert weights.sum() == pytest.approx(1.0)


def test_it_stays_proper_when_draws_are_few_and_alike():
    """Three draws for two components in two dimensions, two of them the same."""
    start = Mixture.of([tc.Gaussian.diagonal(m, 1.0) for m in (np.zeros(2), np.ones(2))], np.zeros(2))
    found = fit_mixture((np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0]]), None), start=start).base
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found.components))
    assert np.all(np.diagonal(found.components.scale_tril, axis1=1, axis2=2) > 0)


def test_too_few_draws_get_a_sentence():
    with pytest.raises(tc.ThermoclineError, match="too few"):
        fit_mixture((np.random.default_rng(0).normal(size=(5, 2)), None), num_components=4)
