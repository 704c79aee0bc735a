"""Over many samples: are the errors of two states right, are they the smaller ones, and do the warnings fire?"""

from functools import cache

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from studies.two_states import predicted_error
from tests.lines import FAR, LAWS, MISSED, NARROW, SHIFTED, SKEWED, sample_line
from thermocline.estimators.two_state_answers import (
    agreement,
    error_of,
    expectation,
    log_evidence,
    log_partition,
    quantile,
)
from thermocline.estimators.two_states import pooled

NUM_SEEDS = 300
NUM_BASE, SHAPE = 800, (8, 200)
CELLS = {  # line, law, correlation of the chains
    "good base": (SKEWED, "flat", 0.0),
    "good base, slow chains": (SKEWED, "biased", 0.9),
    "bad base": (FAR, "flat", 0.0),
    "bad base, slow chains": (FAR, "ladder", 0.8),
    "narrow base, slow chains": (NARROW, "ladder without the base", 0.8),
}


@cache
def samples_of(cell):
    """Samples, and the effective share that another one gives."""
    line, law, correlation = CELLS[cell]
    samples = sample_line(line, LAWS[law], 1, NUM_BASE, SHAPE, correlation=correlation, many=NUM_SEEDS + 1)
    return line, [samples.at(seed) for seed in range(NUM_SEEDS)], samples.at(NUM_SEEDS).share()


@cache
def values_of(cell):
    """Of log Z - truth: both states, the base alone, chains alone."""
    line, samples, share = samples_of(cell)
    both = [agreement(sample.states(share)) for sample in samples]
    together = [log_evidence(sample.states(share)).value for sample in samples]
    alone = [[each.base_alone.value, each.chains_alone.value] for each in both]
    return np.column_stack([together, alone]) - line.log_evidence


def assert_calibrated(z):
    """Four standard errors of mean, deviation and coverage; a tenth for the skewness that errors of order 1/n leave."""
    number = len(z)
    assert abs(np.mean(z)) < 4 / np.sqrt(number) + 0.1
    assert abs(np.std(z) - 1) < 4 / np.sqrt(2 * number) + 0.05
    assert abs(np.mean(np.abs(z) < stats.norm.ppf(0.975)) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / number)


@pytest.mark.parametrize("cell", CELLS)
def test_errors_are_calibrated(cell):
    line, samples, share = samples_of(cell)
    mean, upper = line.mean(), line.quantile(0.9)
    middle = np.log(line.integral(lambda x: line.base.logpdf(x) + 0.5 * line.log_ratio(x)))
    z = []
    for sample in samples:
        states = sample.states(share)
        values, weights = (sample.base, sample.chains), states.log_weight_target
        curve = log_partition(states, 0.0, np.array([0.5]))
        z.append(
            [
                log_evidence(states).z_score(line.log_evidence),
                (curve.value[0] - middle) / curve.standard_error[0],
                expectation(states, values, weights).z_score(mean),
                quantile(states, values, weights, 0.9).z_score(upper),
            ]
        )
    for of_one in np.transpose(z):
        assert_calibrated(of_one)


@pytest.mark.parametrize("cell", CELLS)
def test_two_states_know_more_than_either(cell):
    """Not with chains that count in full: then slow ones spoil what a good base's draws know."""
    together, base, chains = values_of(cell).std(axis=0)
    noise = 1 + 4 / np.sqrt(2 * NUM_SEEDS)
    assert together < min(base, chains) * noise
    if cell == "good base, slow chains":
        _, samples, share = samples_of(cell)
        in_full = np.std([log_evidence(sample.states(1.0)).value for sample in samples])
        assert share < 0.3
        assert in_full > base > together


def test_degrees_of_freedom_say_how_well_the_error_is_known():
    """The variance of heavy-tailed values varies more from sample to sample than that of as many normal ones."""
    values = np.random.default_rng(8).laplace(size=(2000, 400))
    found = np.array([error_of((row[None], np.zeros((1, 0)))) for row in values])
    variance = found[:, 0] ** 2
    spread = variance.var() / variance.mean() ** 2
    exact = 2 * 400 / (6 - 1)  # a Laplace law has kurtosis 6
    assert 2 / spread == pytest.approx(exact, rel=4 * np.sqrt(2 / 2000) + 0.05)
    assert np.median(found[:, 1]) == pytest.approx(exact, rel=0.2)  # kurtosis itself is known to some tenth


def test_error_is_foreseen():
    """From one sample, for other numbers of draws: to within the error of a deviation, and its own."""
    _, samples, share = samples_of("bad base")
    fewer = [type(s)(s.base, s.chains, *((b[:200], c[:, :100]) for b, c in s[2:])) for s in samples]
    found = np.std([log_evidence(sample.states(share)).value for sample in fewer])
    foreseen = [predicted_error(sample.states(share), 200, share * 800) for sample in samples[:20]]
    assert np.mean(foreseen) == pytest.approx(found, rel=4 / np.sqrt(2 * NUM_SEEDS) + 0.05)
    now = log_evidence(samples[0].states(share)).standard_error
    assert predicted_error(samples[0].states(share), NUM_BASE, share * 1600) == pytest.approx(now, rel=0.2)


def test_jackknife_removes_most_of_the_bias():
    number = 1500
    samples = sample_line(FAR, LAWS["flat"], 3, 64, (4, 2), many=number)
    states = [samples.at(seed).states() for seed in range(number)]
    raw = np.array([logsumexp(pooled(each.log_weight_target)) for each in states]) - FAR.log_evidence
    corrected = np.array([log_evidence(each).value for each in states]) - FAR.log_evidence
    assert raw.mean() < -4 * raw.std() / np.sqrt(number)
    assert abs(corrected.mean()) < abs(raw.mean()) / 2


@pytest.mark.parametrize("correlation", [0.0, 0.7, 0.95])
def test_effective_share_is_that_of_the_mean_of_p(correlation):
    """Against the variance of means over many chains, p being what C rests on."""
    samples = sample_line(SHIFTED, LAWS["flat"], 4, 2000, (400, 1000), correlation=correlation)
    share = samples._replace(log_mass=(samples.log_mass[0], samples.log_mass[1][:8])).share()
    p = np.exp(samples.states(share / 50).log_share[1])  # of 400 chains as of 8
    exact = p.var() / p.shape[1] / p.mean(axis=1).var(ddof=1)
    assert share == pytest.approx(exact, rel=4 * np.hypot(1 / np.sqrt(200), 0.07))  # Geyer's sum errs by some 7 %


def test_effective_share_needs_no_moments_of_r():
    generator = np.random.default_rng(5)
    base, chains = -(np.abs(generator.standard_cauchy(1000)) ** 3), -(np.abs(generator.standard_cauchy((8, 500))) ** 3)
    sample = sample_line(SHIFTED, LAWS["flat"], 5, 1, (1, 1))._replace(log_mass=(base, chains))
    assert 0.5 < sample.share() <= 1


def test_a_base_that_misses_a_mode_is_found_out():
    """Its own draws say nothing of it: their error is small and their tail light; chains disagree."""
    samples = sample_line(MISSED, LAWS["flat"], 6, 2000, (8, 500), many=20)
    for seed in range(20):
        found = agreement(samples.at(seed).states(0.5))
        assert found.base_alone.standard_error < 0.01
        assert found.pareto_k < 0.5
        assert found.difference.value / found.difference.standard_error < -3


@pytest.mark.parametrize("cell", ["good base", "bad base", "bad base, slow chains"])
def test_states_of_a_base_that_misses_nothing_agree(cell):
    _, samples, share = samples_of(cell)
    differences = [agreement(sample.states(share)).difference for sample in samples]
    is_far = [abs(each.value) > 3 * each.standard_error for each in differences]
    assert np.mean(is_far) < 0.003 + 4 * np.sqrt(0.003 / NUM_SEEDS)


def test_heavy_tail_of_the_base_shows_however_many_chains_there_are():
    """What is compared with the chains is importance sampling from the base alone, whose weights have no variance."""
    sample, good = (sample_line(base, LAWS["flat"], 7, 4000, (8, 500)) for base in (NARROW, SKEWED))
    for share in (1e-6, 1.0):
        assert agreement(sample.states(share)).pareto_k > 0.5
        assert agreement(good.states(share)).pareto_k < 0.4
