"""Mixtures of Student's t: their densities against SciPy, their draws, and EM that recovers a known one."""

import numpy as np
import pytest
from scipy import stats

from thermocline.fits.student_mixture import StudentMixture, em_fit_student, triangular

MEANS = np.array([[0.0, 1.0], [6.0, -2.0]])
ROOTS = np.array([[[1.0, 0.0], [0.4, 0.7]], [[0.3, 0.1], [-0.2, 1.5]]])
MIXTURE = StudentMixture.of(MEANS, ROOTS, 5.0, np.log([0.7, 0.3]))


def exact(rows):
    parts = [
        np.log(weight) + stats.multivariate_t(mean, root @ root.T, 5.0).logpdf(rows)
        for weight, mean, root in zip([0.7, 0.3], MEANS, ROOTS, strict=True)
    ]
    return np.logaddexp.reduce(parts)


def test_densities_match_scipy_as_mixture_and_as_base():
    rows = np.random.default_rng(0).normal(size=(50, 2)) * 4
    np.testing.assert_allclose(MIXTURE.log_density_of_rows(rows), exact(rows), rtol=1e-12)
    np.testing.assert_allclose(MIXTURE.base(np.zeros(2)).log_density_of_rows(rows), exact(rows), rtol=1e-12)


def test_infinite_degrees_are_gaussians():
    rows = np.random.default_rng(0).normal(size=(50, 2)) * 4
    mixture = MIXTURE._replace(degrees=np.full(2, np.inf))
    pairs = zip([0.7, 0.3], MEANS, ROOTS, strict=True)
    parts = [np.log(w) + stats.multivariate_normal(mean, root @ root.T).logpdf(rows) for w, mean, root in pairs]
    for density in (mixture, mixture.base(np.zeros(2))):
        np.testing.assert_allclose(density.log_density_of_rows(rows), np.logaddexp.reduce(parts), rtol=1e-12)
    drawn = mixture.sample_rows(np.random.default_rng(2), 40_000)
    assert abs(np.mean(drawn[:, 0]) - 1.8) < 4 * drawn[:, 0].std() / 200


def test_a_root_of_any_form_becomes_a_triangle():
    root = np.random.default_rng(1).normal(size=(4, 4)) * np.array([1e-6, 1.0, 1e6, 3.0])[:, None]
    lower = triangular(root)
    assert np.all(lower == np.tril(lower))
    assert np.all(np.diagonal(lower) > 0)
    np.testing.assert_allclose(lower @ lower.T, root @ root.T, rtol=1e-9)


def test_draws_have_its_law():
    rows = MIXTURE.sample_rows(np.random.default_rng(2), 40_000)
    is_second = rows[:, 0] > 4
    assert abs(is_second.mean() - 0.3) < 0.01 + 4 * np.sqrt(0.21 / 40_000)
    scores = MIXTURE.log_density_of_rows(rows)
    again = MIXTURE.log_density_of_rows(MIXTURE.sample_rows(np.random.default_rng(3), 40_000))
    assert abs(np.mean(scores < np.median(again)) - 0.5) < 4.5 * np.sqrt(0.5 / 40_000)


@pytest.mark.parametrize("degrees", [3.0, np.inf])
def test_em_recovers_weights_means_scales_and_tails(degrees):
    truth = MIXTURE._replace(degrees=np.full(2, degrees))
    rows = truth.sample_rows(np.random.default_rng(4), 20_000)
    start = StudentMixture.of(MEANS + np.array([[0.5, -0.5], [-0.7, 0.6]]), 1.6 * ROOTS, 7.0, [0.0, 0.0])
    fit = em_fit_student(start, rows, np.full(len(rows), 1 / len(rows)), num_steps=40)
    size = 20_000 * np.array([0.7, 0.3])
    assert np.all(np.abs(np.exp(fit.log_weight) - [0.7, 0.3]) < 4.5 * np.sqrt(0.21 / 20_000))
    spread = np.sqrt([np.diag(root @ root.T) for root in ROOTS])
    assert np.all(np.abs(fit.mean - MEANS) < 4.5 * np.sqrt(3) * spread / np.sqrt(size)[:, None])
    found = np.log([np.diag(scale @ scale.T) for scale in fit.scale]) / 2 - np.log(spread)
    assert np.all(np.abs(found) < 6 / np.sqrt(size)[:, None] + 0.01)
    assert np.all(fit.degrees <= 4) if degrees < 10 else np.all(fit.degrees >= 20)


def test_a_component_without_draws_of_its_own_stays_as_it_is():
    """Heavy tails give it small shares of very many draws of the other: together they are no draw."""
    rows = MIXTURE.sample_rows(np.random.default_rng(5), 4000)
    rows = rows[rows[:, 0] < 3]
    far = StudentMixture.of([MEANS[0], [40.0, 40.0]], ROOTS, 5.0, np.log([0.5, 0.5]))
    fit = em_fit_student(far, rows, np.full(len(rows), 1 / len(rows)))
    np.testing.assert_array_equal(fit.mean[1], [40.0, 40.0])
    np.testing.assert_array_equal(fit.scale[1], far.scale[1])
    assert np.exp(fit.log_weight[1]) < 0.01
