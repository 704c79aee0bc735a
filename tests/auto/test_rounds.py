"""The parts of the black box: what a round knows, what a pilot adds to it, and which base is chosen."""

from typing import Any

import numpy as np
import pytest
from thermocline.auto.choice import Knowledge, chosen_base, pruned
from thermocline.modes.local_fits import LocalFit, evened, local_fits, refitted
from thermocline.modes.search import find_modes

import thermocline as tc
from studies.study_problems import gaussian_mixture
from thermocline.auto.black_box import after_pilot, with_draws
from thermocline.bases import Mixture
from thermocline.engine.progress import reporter_for
from thermocline.evaluator import Evaluator
from thermocline.fits.importance import ImportanceSample

WEIGHTS = np.array([0.75, 0.25])
MEANS = np.array([[0.0, 1.0], [8.0, -1.0]])
COVARIANCES = np.array([[[1.0, 0.3], [0.3, 0.5]], [[0.3, -0.1], [-0.1, 0.4]]])


ROUNDING = 1e-6  # where a fit is exact to the last digit, the error is of that order too


def log_evidence_error(pool: ImportanceSample) -> float:
    """Of importance sampling's estimate, by the spread of its weights."""
    return float(np.sqrt((1 / pool.effective_share - 1) / pool.log_weight.size))


def mean_error(covariance: np.ndarray, size: float) -> np.ndarray:
    return np.sqrt(np.diag(covariance) / size)


def knowledge_of_one_mode(constant: float) -> tuple[Any, Knowledge]:
    """Two modes, and what a search knows whose starts were all near the first."""
    target = Evaluator(gaussian_mixture("two", WEIGHTS, MEANS, COVARIANCES, constant).target)
    found = find_modes(target, MEANS[0] + 0.5 * np.random.default_rng(0).normal(size=(64, 2)))
    assert found.num_modes == 1
    fits, pool = with_draws(np.random.default_rng(0), target, local_fits(found))
    return target, Knowledge(found, fits, pool, 0, ())


@pytest.mark.parametrize("constant", [-600.0, 600.0])
def test_a_pilot_adds_a_mode_with_its_mass_whatever_the_constant(double, constant):
    target, known = knowledge_of_one_mode(constant)
    limit = 5 * log_evidence_error(known.pool) + ROUNDING
    assert abs(known.pool.log_evidence - constant - np.log(0.75)) < limit
    assert abs(known.fits[0].log_mass - constant - np.log(0.75)) < limit
    broad = tc.BaseFit(tc.Gaussian.from_covariance(np.array([4.0, 0.0]), 16.0 * np.eye(2)), constant)
    after = after_pilot(known, target, broad, 1, reporter_for(False))
    order = np.argsort([fit.location[0] for fit in after.fits])
    size = after.pool.effective_share * after.pool.log_weight.size
    errors = np.sqrt((1 - WEIGHTS) / WEIGHTS / size)  # of the log of a share of so many draws
    masses = np.array([after.fits[i].log_mass for i in order])
    of_total = log_evidence_error(after.pool)
    assert np.all(np.abs(masses - np.log(WEIGHTS) - constant) < 5 * np.hypot(errors, of_total))
    assert abs(after.pool.log_evidence - constant) < 5 * of_total
    for i, weight, mean, covariance in zip(order, WEIGHTS, MEANS, COVARIANCES, strict=True):
        assert np.all(np.abs(after.fits[i].mean - mean) < 5 * mean_error(covariance, weight * size))
        products = np.outer(np.diag(covariance), np.diag(covariance))
        error = np.sqrt((products + covariance**2) / (weight * size))
        assert np.all(np.abs(after.fits[i].covariance - covariance) < 5 * error)
    assert after.fits[order[1]].found_by == "draws"
    assert after.num_gradients > known.num_gradients
    fit = chosen_base(after, MEANS[0], 0.05)
    assert isinstance(fit.base, Mixture)
    assert fit.story[0].startswith("A mixture of 2: KL(target, base) is ")
    assert fit.log_zeta == after.pool.log_evidence


def test_one_mode_gets_one_gaussian(double):
    _, known = knowledge_of_one_mode(0.0)
    fit = chosen_base(known, MEANS[0], 0.05)
    assert isinstance(fit.base, tc.Gaussian)
    size = known.pool.effective_share * known.pool.log_weight.size
    assert np.all(np.abs(np.ravel(fit.base.mean) - MEANS[0]) < 5 * mean_error(COVARIANCES[0], size))
    assert fit.story[0].startswith("One Gaussian: KL(target, base) is ")


def fit_of_mass(mass: float) -> LocalFit:
    return LocalFit(np.zeros(1), np.eye(1), 300.0 + np.log(mass), np.zeros(1), 0.0, "starts", np.nan)


def test_what_is_pruned_is_little_and_said():
    fits = [fit_of_mass(mass) for mass in (0.002, 0.6, 0.001, 0.397)]
    kept, sentence = pruned(fits, 0.005)
    assert [fit.log_mass for fit in kept] == [fits[1].log_mass, fits[3].log_mass]
    assert sentence == " Pruned: 2 of 4 modes, with 0.003 of the mass."
    kept, sentence = pruned(fits, 0.0005)
    assert len(kept) == 4
    assert sentence == ""


def test_evened_masses_differ_by_no_more_than_twenty():
    masses = [fit.log_mass for fit in evened([fit_of_mass(mass) for mass in (0.9, 0.1, 1e-9)])]
    np.testing.assert_allclose(np.exp(np.array(masses) - 300.0), [0.9, 0.1, 0.045])


def test_where_no_draw_is_on_the_support_nothing_counts_and_nothing_is_learned():
    nothing = ImportanceSample(np.zeros((4, 1)), np.full(4, -np.inf), np.full(4, -np.inf))
    assert nothing.effective_share == 0.0
    fits = [fit_of_mass(0.5)]
    learned = Mixture.of([tc.Gaussian(np.ones(1), np.eye(1))], [0.0])
    assert refitted(fits, learned, nothing.log_evidence) is fits
    assert refitted(fits, learned, 7.0)[0].log_mass == 7.0
