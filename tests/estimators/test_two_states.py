"""Draws of the base and of chains together, on asymmetric problems of one variable with exact answers."""

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from tests.lines import CUT, FAR, HALF, LAWS, SHIFTED, SKEWED, log_mass_of, sample_line
from thermocline.estimators.chains import log_ratio_of_means, systematic_resample
from thermocline.estimators.two_state_answers import (
    agreement,
    base_alone,
    effective_size,
    error_of,
    expectation,
    influence,
    log_evidence,
    log_partition,
    quantile,
)
from thermocline.estimators.two_states import combine, effective_share, pooled
from thermocline.paths import Continuous, Ladder

NOTHING = np.zeros(0)
BETAS = np.array([0.0, 0.05, 0.5, 1.0])


def total(pair):
    return np.exp(logsumexp(pooled(pair)))


def test_weights_solve_their_equation():
    sample = sample_line(SKEWED, LAWS["biased"], 0, 300, (4, 50))
    states = sample.states(0.4)
    num_effective = 0.4 * 200
    (base, chains), constant = sample.log_mass, np.exp(states.log_constant)
    inverse = [1 / (300 + num_effective * np.exp(mass) / constant) for mass in (base, chains)]
    weights = inverse[0][None], num_effective / 200 * inverse[1]
    np.testing.assert_allclose(np.exp(states.log_weight_base[0]), weights[0], rtol=1e-10)
    np.testing.assert_allclose(np.exp(states.log_weight_base[1]), weights[1], rtol=1e-10)
    assert weights[0].sum() + weights[1].sum() == pytest.approx(1, abs=1e-11)
    left = np.sum(weights[0] * np.exp(base)) + np.sum(weights[1] * np.exp(chains))
    assert left == pytest.approx(constant, rel=1e-11)


def test_without_draws_of_the_base_it_is_the_papers():
    sample = sample_line(FAR, LAWS["flat"], 1, 10, (4, 200), correlation=0.8)
    r, log_mass = sample.log_ratio[1], sample.log_mass[1]
    paper = log_ratio_of_means(r - log_mass, -log_mass)
    ours = log_evidence(combine(NOTHING, NOTHING, r, log_mass, 37.0))
    for name in ("value", "standard_error", "dof"):
        assert getattr(ours, name) == pytest.approx(getattr(paper, name), rel=1e-10), name


def test_without_effective_draws_of_chains_it_is_importance_sampling():
    sample = sample_line(SKEWED, LAWS["flat"], 2, 500, (4, 10))
    weight = np.exp(sample.log_ratio[0])
    states = sample.states(0.0)
    assert logsumexp(pooled(states.log_weight_target)) == pytest.approx(np.log(weight.mean()), rel=1e-12)
    error = weight.std(ddof=1) / weight.mean() / np.sqrt(500)
    assert log_evidence(states).standard_error == pytest.approx(error, rel=1e-10)
    assert log_evidence(states).value == pytest.approx(base_alone(sample.log_ratio[0]).value, rel=1e-12)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("line", [HALF, CUT], ids=["half", "cut"])
def test_support_is_counted_once_with_every_law(line, law):
    """Nothing is added for the draws off the support, whether or not the law visits them."""
    sample = sample_line(line, LAWS[law], 3, 4000, (8, 500), correlation=0.5)
    assert np.isneginf(sample.log_ratio[0]).any()
    estimate = log_evidence(sample.states(0.5))
    assert abs(estimate.z_score(line.log_evidence)) < 4
    assert 0 < estimate.standard_error < 0.03
    both = agreement(sample.states(0.5))
    assert abs(both.chains_alone.z_score(line.log_evidence)) < 4
    assert abs(both.difference.z_score(0.0)) < 4


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("line", [SHIFTED, SKEWED, FAR], ids=["shifted", "skewed", "far"])
def test_answers_are_exact_within_errors(line, law):
    sample = sample_line(line, LAWS[law], 4, 2000, (8, 500), correlation=0.6)
    states = sample.states(0.3)
    values, weights = (sample.base, sample.chains), states.log_weight_target
    assert abs(log_evidence(states).z_score(line.log_evidence)) < 4
    assert abs(expectation(states, values, weights).z_score(line.mean())) < 4
    assert abs(quantile(states, values, weights, 0.8).z_score(line.quantile(0.8))) < 4
    of_base = expectation(states, values, states.log_weight_base)
    assert abs(of_base.z_score(line.base.mean())) < 4
    curve = log_partition(states, 0.9, BETAS)
    at = [lambda x, beta=beta: line.base.logpdf(x) + beta * line.log_ratio(x) for beta in BETAS]
    truth = np.log([line.integral(function) for function in at]) + 0.9 * BETAS
    assert (curve.value[0], curve.standard_error[0]) == (0, 0)
    assert np.all(np.abs(curve.value - truth)[1:] < 4 * curve.standard_error[1:])
    assert curve.value[-1] == pytest.approx(log_evidence(states).value + 0.9, abs=1e-12)


def test_effective_size_of_independent_draws_of_the_target_is_their_number():
    """Where N is e^r, chains draw the target; a draw of the base counts for less."""
    generator = np.random.default_rng(12)
    base, chains = generator.normal(size=500), generator.normal(size=(8, 500)) + 1.0
    r = base - 0.5, chains - 0.5
    states = combine(r[0], r[0], r[1], r[1], 4000.0)
    size = effective_size(states, (base, chains), states.log_weight_target)
    noise = 4 * np.sqrt(2 / 127)  # of a variance with 127 degrees of freedom
    assert 4000 * (1 - noise) < size < 4500 * (1 + noise)


def test_posterior_draws_follow_the_target():
    sample = sample_line(SKEWED, LAWS["flat"], 5, 4000, (8, 500))
    index = systematic_resample(pooled(sample.states().log_weight_target), 1000, 0)
    draws = np.append(sample.base, sample.chains.ravel())[index]
    law = lambda x: stats.skewnorm.cdf(x, 4.0, -0.5, 1.3)  # noqa: E731
    assert stats.kstest(draws, law).pvalue > 1e-3


@pytest.mark.parametrize("constant", [-3.0, 700.0, 5000.0, -1e5])
def test_a_constant_of_the_target_shifts_the_answer_alone(constant):
    """The law that takes the constant out again draws the same chains."""
    sample = sample_line(SKEWED, LAWS["flat"], 6, 300, (4, 100))
    plain = log_evidence(sample.states(0.7))
    r = tuple(part + constant for part in sample.log_ratio)
    masses = tuple(log_mass_of(Continuous(np.array([0.0, constant])), part) for part in r)
    moved = log_evidence(combine(r[0], masses[0], r[1], masses[1], 280.0))
    assert moved.value - constant == pytest.approx(plain.value, abs=1e-11 * max(abs(constant), 1))
    assert moved.standard_error == pytest.approx(plain.standard_error, rel=1e-6)


def test_zeta_plays_no_part():
    sample = sample_line(SHIFTED, LAWS["ladder"], 7, 300, (4, 100))
    plain = log_partition(sample.states(), 0.0, BETAS)
    ladder = Ladder(LAWS["ladder"].betas, LAWS["ladder"].log_weights + 2.5 * LAWS["ladder"].betas)
    r = tuple(part - 2.5 for part in sample.log_ratio)
    states = combine(r[0], log_mass_of(ladder, r[0]), r[1], log_mass_of(ladder, r[1]), 400.0)
    other = log_partition(states, 2.5, BETAS)
    np.testing.assert_allclose(other.value, plain.value, atol=1e-12)
    np.testing.assert_allclose(other.standard_error, plain.standard_error, rtol=1e-9)


def test_any_unit_of_the_mass_will_do():
    sample = sample_line(SHIFTED, LAWS["biased"], 8, 300, (4, 100))
    (base, chains), (base_mass, chain_mass) = sample.log_ratio, sample.log_mass
    plain = log_evidence(sample.states())
    for unit in (-1e4, 3.0, 1e6):
        moved = combine(base, base_mass + unit, chains, chain_mass + unit, chains.size)
        assert moved.log_constant - unit == pytest.approx(sample.states().log_constant, abs=1e-9)
        assert log_evidence(moved).value == pytest.approx(plain.value, abs=1e-9)


@pytest.mark.parametrize("extreme", [-np.inf, -1e300, -5000.0, 700.0, 5000.0])
@pytest.mark.parametrize("law", LAWS)
def test_extreme_ratios_leave_numbers(extreme, law):
    generator = np.random.default_rng(9)
    base, chains = generator.normal(size=200), generator.normal(size=(4, 50)) + 0.2
    base[:3] = extreme
    if extreme > 0:
        chains[0, :3] = extreme
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        states = combine(base, log_mass_of(LAWS[law], base), chains, log_mass_of(LAWS[law], chains), 100.0)
        estimate = log_evidence(states)
        share = effective_share(*states.log_mass)
        mean = expectation(states, (base, chains), states.log_weight_target)
    assert total(states.log_weight_base) == pytest.approx(1, abs=1e-9)
    assert np.all(np.isfinite([estimate.value, estimate.standard_error, mean.value, mean.standard_error]))
    assert 0 < share <= 1


@pytest.mark.parametrize("gap", [30.0, 2000.0, 1e12])
def test_states_that_do_not_meet_have_a_large_error(gap):
    """The base's draws all have the smaller N; C is known by their tail alone, and p is nearly 0 or 1 everywhere."""
    generator = np.random.default_rng(10)
    base, chains = -gap + generator.normal(size=400), 3 + generator.normal(size=(4, 100))
    states = combine(base, base, chains, chains, 400.0)
    assert total(states.log_weight_base) == pytest.approx(1, abs=1e-9)
    relative = np.exp(generator.normal(size=10_000))
    assert log_evidence(states).standard_error > relative.std() / relative.mean() / np.sqrt(400) / 2


def test_a_base_off_the_support_knows_nothing():
    r, log_mass = np.full(50, -np.inf), np.full(50, -np.inf)
    estimate = log_evidence(combine(r, log_mass, np.zeros((2, 20)), np.zeros((2, 20)), 40.0))
    assert (estimate.value, estimate.standard_error) == (-np.inf, np.inf)
    assert agreement(combine(r, log_mass, np.zeros((2, 20)), np.zeros((2, 20)), 40.0)).pareto_k == np.inf


def test_a_single_draw_has_no_known_error():
    for base, chains in ((1, (4, 50)), (50, (1, 1))):
        sample = sample_line(SHIFTED, LAWS["flat"], 13, base, chains)
        estimate = log_evidence(sample.states())
        assert np.isfinite(estimate.value)
        assert (estimate.standard_error, estimate.dof) == (np.inf, 0)


def test_base_equal_to_target_has_no_error():
    zeros = np.zeros((4, 50))
    states = combine(np.zeros(100), np.zeros(100), zeros, zeros, 200.0)
    estimate = log_evidence(states)
    assert estimate.value == pytest.approx(0, abs=1e-14)
    assert estimate.standard_error < 1e-14
    assert effective_share(np.zeros(100), zeros) == 1


@pytest.mark.parametrize("line", [FAR, SKEWED, SHIFTED], ids=["far", "skewed", "shifted"])
def test_error_is_that_of_leaving_out_draws(line):
    """Through C as well: Tukey's jackknife solves for it anew. Leaving C's part out would be far off."""
    sample = sample_line(line, LAWS["flat"], 11, 250, (250, 1))
    (base, chains), (base_mass, chain_mass) = sample.log_ratio, sample.log_mass

    def spread(value_without):
        return 249 / 250 * np.sum((value_without - value_without.mean()) ** 2)

    def value(kept_base, kept_chains):
        kept = base[kept_base], base_mass[kept_base], chains[kept_chains], chain_mass[kept_chains]
        return logsumexp(pooled(combine(*kept, kept[2].size).log_weight_target))

    every, others = np.arange(250), [np.delete(np.arange(250), i) for i in range(250)]
    jackknife = np.sqrt(
        spread(np.array([value(other, every) for other in others]))
        + spread(np.array([value(every, other) for other in others]))
    )
    states = sample.states()
    assert log_evidence(states).standard_error == pytest.approx(jackknife, rel=0.03)
    weights = tuple(np.exp(part - logsumexp(pooled(states.log_weight_target))) for part in states.log_weight_target)
    assert abs(error_of(weights)[0] / jackknife - 1) > 0.1
    assert error_of(influence(states, weights))[0] == log_evidence(states).standard_error
