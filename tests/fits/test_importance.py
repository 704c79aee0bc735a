"""Population Monte Carlo: a mixture is drawn to the target, knows its evidence, and gives up no part of it."""

import jax
import numpy as np
import pytest

import thermocline as tc
from studies.study_problems import gaussian_mixture
from thermocline.bases import Mixture
from thermocline.evaluator import Evaluator
from thermocline.fits.importance import (
    LEAST_WEIGHT,
    NUM_DRAWS,
    ImportanceSample,
    adapt_by_importance,
    draw_importance,
    em_update,
    is_better,
)

pytestmark = pytest.mark.usefixtures("double")

WEIGHTS = np.array([0.65, 0.25, 0.1])
MEANS = np.array([[4.0, 0.0], [-3.0, 2.0], [0.0, -5.0]])
COVARIANCES = np.array([[[1.0, 0.5], [0.5, 0.6]], [[0.3, -0.1], [-0.1, 0.2]], [[0.5, 0.0], [0.0, 1.5]]])
TARGET = gaussian_mixture("three", WEIGHTS, MEANS, COVARIANCES, 9.3).target


def rough(inflation=3.0, log_weights=(0.0, 0.0, 0.0)):
    """Where the modes are, but too wide, off their centres and evenly weighted."""
    offsets = np.array([[0.5, -0.5], [-0.4, 0.2], [0.3, 0.6]])
    pairs = zip(MEANS + offsets, inflation * COVARIANCES, strict=True)
    return Mixture.of([tc.Gaussian.from_covariance(*pair) for pair in pairs], log_weights)


def log_evidence_error(population):
    weight = np.exp(population.log_weight - population.log_weight.max())
    return weight.std(ddof=1) / weight.mean() / np.sqrt(weight.size)


def test_the_mixture_is_drawn_to_the_target():
    target = Evaluator(TARGET)
    start = draw_importance(np.random.default_rng(0), target, rough())
    before = target.num_rows
    mixture, population = adapt_by_importance(np.random.default_rng(1), target, rough())
    num_evaluations = target.num_rows - before
    assert population.effective_share > 0.95 > 2 * start.effective_share
    assert num_evaluations % NUM_DRAWS == 0
    assert 2 * NUM_DRAWS <= num_evaluations <= 10 * NUM_DRAWS
    size = NUM_DRAWS * WEIGHTS  # draws that speak for each component
    weights = np.exp(mixture.log_weights[:3])
    assert np.all(np.abs(weights - WEIGHTS) < 5 * np.sqrt(WEIGHTS * (1 - WEIGHTS) / NUM_DRAWS))
    deviations = np.sqrt(np.diagonal(COVARIANCES, axis1=1, axis2=2))
    assert np.all(np.abs(mixture.centres()[:3] - MEANS) < 5 * deviations / np.sqrt(size)[:, None])
    learned = [mixture.component(i).covariance() for i in range(3)]
    errors = 5 * np.sqrt(2 / size)[:, None] + 4 / size[:, None]  # of variances; and what shrinkage may do
    assert np.all(np.abs(np.log([np.diagonal(c) for c in learned]) - 2 * np.log(deviations)) < errors)


def test_log_evidence_is_exact_within_its_error():
    target = Evaluator(TARGET)
    populations = [draw_importance(np.random.default_rng(seed), target, rough()) for seed in range(40)]
    z = [(population.log_evidence - 9.3) / log_evidence_error(population) for population in populations]
    assert abs(np.mean(z)) < 4 / np.sqrt(40)
    assert abs(np.std(z) - 1) < 4 / np.sqrt(80)
    _, adapted = adapt_by_importance(np.random.default_rng(5), target, rough())
    assert abs(adapted.log_evidence - 9.3) < 4 * log_evidence_error(adapted) + 1e-6
    assert log_evidence_error(adapted) < 0.3 * log_evidence_error(populations[0])


def test_the_pairs_of_a_population_belong_together():
    target, mixture = Evaluator(TARGET), rough()
    population = draw_importance(np.random.default_rng(0), target, mixture, num_draws=64)
    log_target = np.asarray(jax.vmap(target.target)(population.position))
    log_base = np.asarray(jax.vmap(mixture.log_density)(population.position))
    np.testing.assert_allclose(population.log_target, log_target, rtol=1e-12)
    np.testing.assert_allclose(population.log_weight, log_target - log_base, rtol=1e-12)
    part = population.part(slice(0, None, 2))
    np.testing.assert_array_equal(part.log_weight, population.log_weight[::2])


def test_effective_share_of_known_weights():
    weight = np.array([3.0, 1.0, 0.0, 0.0])
    with np.errstate(divide="ignore"):
        population = ImportanceSample(np.zeros((4, 1)), np.log(weight) + 700.0, np.zeros(4))
    assert population.effective_share == pytest.approx(16 / 10 / 4)
    assert population.log_evidence == pytest.approx(700.0)


def test_a_mixture_that_covers_little_is_left_alone():
    """One mode of a target far narrower: hardly a draw counts, and nothing is learned from it."""
    narrow = gaussian_mixture("narrow", WEIGHTS, MEANS, 1e-6 * COVARIANCES, 0.0).target
    start = rough()
    evaluate = Evaluator(narrow)
    mixture, _ = adapt_by_importance(np.random.default_rng(0), evaluate, start)
    num_evaluations = evaluate.num_rows
    assert num_evaluations == NUM_DRAWS
    assert mixture is start


def test_a_mode_once_known_goes_on_being_looked_at():
    """Draws of the first mode alone: the others keep their place, and a weight."""
    generator = np.random.default_rng(0)
    draws = generator.multivariate_normal(MEANS[0], COVARIANCES[0], size=3000)
    mixture = em_update(rough(), draws, np.zeros(3000))
    weights = np.exp(mixture.log_weights)
    assert weights[0] > 0.9
    assert np.all(weights[1:3] >= 0.99 * LEAST_WEIGHT)
    assert np.all(weights[3:] == 0)
    assert weights.sum() == pytest.approx(1.0, abs=1e-9)
    assert np.linalg.norm(mixture.centres()[1] - MEANS[1]) < 1.0
    np.testing.assert_allclose(mixture.components.whitening[0] @ mixture.components.scale_tril[0], np.eye(2), atol=1e-9)


def test_a_mode_without_draws_is_not_drawn_to_those_of_another():
    """However even the traces of responsibility that it has for them: in ten dimensions, ten deviations away."""
    place = np.full(10, 5 / np.sqrt(10))
    pair = [tc.Gaussian.from_covariance(place, np.eye(10)), tc.Gaussian.from_covariance(-place, np.eye(10) / 4)]
    start = Mixture.of(pair, np.log([0.6, 0.4]))
    draws = place + np.random.default_rng(0).normal(size=(1024, 10))
    mixture = em_update(start, draws, np.zeros(1024))
    np.testing.assert_allclose(mixture.centres()[1], -place)
    np.testing.assert_allclose(mixture.component(1).covariance(), np.eye(10) / 4, atol=1e-12)
    assert np.linalg.norm(mixture.centres()[0] - place) < 0.3


def test_a_fit_far_too_narrow_widens_to_its_mode_though_its_mean_moves_by_many_of_its_deviations():
    """As variational fits are on a ridge: 0.05 wide and ten deviations off the mean of a mode as wide as 1."""
    generator = np.random.default_rng(2)
    draws = np.concatenate(
        [generator.multivariate_normal(mean, cov, size=2000) for mean, cov in zip(MEANS, COVARIANCES, strict=True)]
    )
    narrow = Mixture.of([tc.Gaussian.from_covariance(mean + 0.5, 0.0025 * np.eye(2)) for mean in MEANS], [0.0] * 3)
    mixture = em_update(narrow, draws, np.zeros(len(draws)))
    deviations, size = np.sqrt(np.diagonal(COVARIANCES, axis1=1, axis2=2)), NUM_DRAWS / 3
    assert np.all(np.abs(mixture.centres()[:3] - MEANS) < 5 * deviations / np.sqrt(size))
    learned = [np.sqrt(np.diagonal(mixture.component(i).covariance())) for i in range(3)]
    assert np.all(np.abs(np.log(learned / deviations)) < 5 / np.sqrt(2 * size))


def test_a_round_that_loses_mass_is_no_gain_however_even_its_weights():
    generator = np.random.default_rng(1)
    even = ImportanceSample(np.zeros((4096, 1)), 0.01 * generator.normal(size=4096), np.zeros(4096))
    uneven = ImportanceSample(np.zeros((4096, 1)), generator.normal(size=4096) - 0.5, np.zeros(4096))
    assert is_better(even, uneven)
    assert not is_better(uneven, even)
    lost = even._replace(log_weight=even.log_weight - 0.7)  # half the mass
    assert not is_better(lost, uneven)
