"""Bounds on log Z from both sides: they hold, they close, and what is no bound does not call itself one."""

from typing import Any

import jax
import numpy as np
import pytest
from scipy.stats import norm, t

import thermocline as tc
from tests.conformance.exact import CONSTANT, FACTORS, MEANS
from tests.gaussian_pair import FIRST, HMC, run, target_of
from thermocline.opinions.reverse import log_mean, log_mean_back, log_mean_of_independent, runs_by_draw


def exact_gaussian_draws(number, seed):
    return MEANS[1] + np.random.default_rng(seed).normal(size=(number, 2)) @ FACTORS[1].T


@pytest.fixture(scope="module")
def sandwiches():
    """Between two Gaussians, with few temperatures and with many."""

    def sandwich(draws, number):
        method = tc.AnnealedImportance(HMC, betas=np.linspace(0, 1, number))
        return tc.bidirectional(
            target_of(), draws, base=FIRST, method=method, num_runs=2048, num_warmup=120, progress=False
        )

    return sandwich, {number: sandwich(exact_gaussian_draws(2048, 0), number) for number in (3, 24)}


def test_bounds_are_bounds(sandwiches):
    """P(bound fails by more than b) <= exp(-b), for means of one, two and eight raw weights."""
    for sandwich in sandwiches[1].values():
        lower, upper = sandwich.log_weights_forward, sandwich.log_weights_reverse
        for size in (1, 2, 8):
            groups = [np.logaddexp.reduce(w.reshape(-1, size), axis=1) - np.log(size) for w in (lower, upper)]
            for slack in (0.5, 1.0):
                limit = np.exp(-slack) + 4 * np.sqrt(np.exp(-slack) / len(groups[0]))
                assert np.mean(groups[0] > CONSTANT + slack) <= limit
                assert np.mean(-groups[1] < CONSTANT - slack) <= limit


def test_the_sandwich_closes_on_the_truth_with_more_temperatures(sandwiches):
    few, many = sandwiches[1].values()
    gaps = [-np.mean(s.log_weights_reverse) - np.mean(s.log_weights_forward) for s in (few, many)]  # of single runs
    assert 0 < gaps[1] < 0.5 * gaps[0]
    assert few.is_bound
    assert many.is_bound
    assert few.upper > CONSTANT - 4 * few.upper_error  # weights back by three temperatures have no variance: no more
    assert abs(few.lower - CONSTANT) < 4 * few.lower_error
    assert abs(many.lower - CONSTANT) < 4 * many.lower_error
    assert abs(many.upper - CONSTANT) < 4 * many.upper_error
    assert abs(many.gap) < 4 * np.hypot(many.lower_error, many.upper_error)
    assert "stochastic bounds" in str(many)


def test_the_error_above_counts_draws_and_not_the_runs_from_each():
    """Ten draws, fifty runs from each, that differ between draws as much as within them."""
    generator = np.random.default_rng(0)
    draws = generator.normal(size=(400, 10, 1))
    z = []
    for ten in draws:
        groups = runs_by_draw(np.repeat(ten, 50, axis=0))
        weights = np.repeat(np.exp(0.1 * ten[:, 0]), 50) * np.exp(0.1 * generator.normal(size=500))
        back = log_mean(np.log(weights)[None], groups)
        assert back.dof == 9
        z.append(back.z_score(0.01))
    assert abs(np.std(z) - 1) < 4 / np.sqrt(2 * len(z))
    assert runs_by_draw(draws[:, 0]) is None
    assert runs_by_draw(np.zeros((8, 2))) is None


def test_errors_of_independent_runs_are_calibrated():
    """Sixteen runs on a side, as few as many targets have: two errors hold the truth in 95 % of calls, or so."""
    generator, spread = np.random.default_rng(1), 0.1
    draws, truth = generator.normal(size=(1000, 16, 1)), 0.5 * spread**2
    for shape, positions in (((8, 2), None), ((1, 16), np.zeros((16, 1))), ((1, 16), draws)):
        held = []
        for place in range(len(draws)):
            log_weights = spread * generator.normal(size=shape)
            own = positions[place] if positions is draws else positions
            side = log_mean_of_independent(log_weights) if own is None else log_mean_back(log_weights, own, True)
            held.append(abs(side.value - truth) < 2 * side.standard_error)
        chance = 2 * t.cdf(2.0, 15) - 1
        assert np.mean(held) > chance - 4 * np.sqrt(chance * (1 - chance) / len(held)) - 0.005  # the log's own bias


def test_draws_that_follow_on_one_another_count_for_fewer():
    """A chain of exact draws, as each run back starts from the next: neighbours are alike."""
    generator, held = np.random.default_rng(2), []
    for _ in range(300):
        chain = np.convolve(generator.normal(size=531), np.ones(20) / np.sqrt(20), "valid")
        side = log_mean_back(0.1 * chain[None], chain[:, None], True)
        held.append(abs(side.value - 0.005) < 2 * side.standard_error)
    assert np.mean(held) > 0.85


def test_the_errors_of_a_sandwich_are_those_of_its_independent_runs(sandwiches):
    few, _ = sandwiches[1].values()
    weight = np.exp(few.log_weights_forward - few.log_weights_forward.max())
    expected = weight.std() / weight.mean() / np.sqrt(weight.size)
    assert few.lower_error == pytest.approx(expected, rel=0.25)


def test_tempered_draws_give_a_consistency_gap_and_no_bound(sandwiches):
    gap = sandwiches[0](run(tc.AnnealedImportance(HMC, num_temperatures=12)), 24)
    assert not gap.is_bound
    assert "consistency gap" in str(gap)
    assert "not a bound" in str(gap)


def test_exact_draws_of_another_shape_are_refused(sandwiches):
    with pytest.raises(tc.ThermoclineError, match="one more axis"):
        sandwiches[0](np.zeros(2), 3)


def observed(data):
    """The model x ~ FIRST, y | x ~ N(x[0] - x[1]/2, 0.09): its posterior is Gaussian, its evidence a density of y."""
    row, prior = np.array([1.0, -0.5]), FACTORS[0] @ FACTORS[0].T
    variance, centred = row @ prior @ row + 0.09, data - row @ MEANS[0]
    gain = prior @ row / variance
    factor = np.linalg.cholesky(prior - np.outer(gain, row @ prior))
    log_evidence = norm.logpdf(centred, scale=np.sqrt(variance))
    return target_of(tc.Gaussian(MEANS[0] + gain * centred, factor), log_evidence), log_evidence


def simulate(key):
    key_prior, key_data = jax.random.split(key)
    x = MEANS[0] + FACTORS[0] @ jax.random.normal(key_prior, (2,))
    return x, x[0] - 0.5 * x[1] + 0.3 * jax.random.normal(key_data)


def test_a_model_validates_itself_on_its_own_data():
    truths = []

    def target_of_data(data):
        target, truth = observed(data)
        truths.append(truth)
        return target

    method = tc.AnnealedImportance(HMC, betas=np.linspace(0, 1, 24))
    options: dict[str, Any] = {"base": FIRST, "method": method, "num_runs": 2048, "num_warmup": 120}
    for seed in (4, 5):
        sandwich = tc.validate(target_of_data, simulate, seed=seed, progress=False, **options)
        assert sandwich.is_bound
        assert abs(sandwich.lower - truths[-1]) < 4 * sandwich.lower_error
        assert sandwich.upper > truths[-1] - 1
        assert sandwich.gap < 1
