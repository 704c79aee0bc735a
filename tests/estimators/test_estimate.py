"""Errors of means of correlated draws, against processes whose answers are known."""

import numpy as np
import pytest
from scipy import stats

from thermocline.estimators.batches import autocorrelation_time, batches_for, mean_error
from thermocline.estimators.chains import expectation, log_ratio_of_means, quantile
from thermocline.estimators.convergence import difference_p_value
from thermocline.records import Estimate


def autoregressive(generator, correlation, shape):
    """A stationary AR(1) with unit variance."""
    values = np.empty(shape)
    values[:, 0] = generator.normal(size=shape[0])
    for i in range(1, shape[1]):
        values[:, i] = correlation * values[:, i - 1] + np.sqrt(1 - correlation**2) * generator.normal(size=shape[0])
    return values


@pytest.mark.parametrize("correlation", [0.0, 0.9, 0.97])
def test_error_of_an_autoregressive_mean_is_calibrated(correlation):
    generator = np.random.default_rng(1)
    z = []
    for _ in range(300):
        values = autoregressive(generator, correlation, (8, 600))
        error, dof = mean_error(values)
        z.append(Estimate(values.mean(), error, dof).z_score(0.0))
    # four standard errors of a standard deviation from 300 normal draws, and the 5 % that finite batches may lose
    assert abs(np.std(z) - 1) < 4 / np.sqrt(600) + 0.05
    assert abs(np.mean(z)) < 4 / np.sqrt(300)


def test_autocorrelation_time_of_an_autoregression():
    values = autoregressive(np.random.default_rng(0), 0.8, (16, 4000))
    exact = (1 + 0.8) / (1 - 0.8)
    assert autocorrelation_time(values) == pytest.approx(exact, rel=4 * 0.05)  # its own error is about 5 %


def test_chains_that_disagree_are_the_only_independent_pieces():
    generator = np.random.default_rng(0)
    values = generator.normal(size=(8, 1000)) + 3 * generator.normal(size=(8, 1))
    error, dof = mean_error(values)
    assert dof == 7
    assert error == pytest.approx(values.mean(axis=1).std(ddof=1) / np.sqrt(8))


def test_batches_are_long_against_the_autocorrelation():
    values = autoregressive(np.random.default_rng(0), 0.9, (4, 4000))
    lengths = np.diff(batches_for(values).edges)
    assert lengths.min() >= 12 * autocorrelation_time(values) - 1


def test_log_ratio_of_lognormal_means_is_calibrated_and_unbiased():
    generator = np.random.default_rng(3)
    z, raw = [], []
    for _ in range(300):
        common = autoregressive(generator, 0.7, (8, 300))
        other = autoregressive(generator, 0.5, (8, 300))
        first, second = 0.8 * common, 0.5 * common + 0.6 * other - 0.3
        estimate = log_ratio_of_means(first, second)
        truth = 0.8**2 / 2 - (0.5**2 + 0.6**2) / 2 + 0.3
        z.append(estimate.z_score(truth))
        raw.append(estimate.value - truth)
    assert abs(np.std(z) - 1) < 4 / np.sqrt(600) + 0.05
    assert abs(np.mean(raw)) < 4 * np.std(raw) / np.sqrt(300)


def test_jackknife_removes_most_of_the_bias():
    generator = np.random.default_rng(5)
    with_jackknife, without = [], []
    for _ in range(2000):
        log_weight = generator.normal(size=(8, 16)) * 1.5
        with_jackknife.append(log_ratio_of_means(log_weight, np.zeros_like(log_weight)).value)
        without.append(np.log(np.mean(np.exp(log_weight))))
    bias, raw_bias = np.mean(with_jackknife) - 1.5**2 / 2, np.mean(without) - 1.5**2 / 2
    error = np.std(with_jackknife) / np.sqrt(2000)
    assert raw_bias < -4 * error
    assert abs(bias) < abs(raw_bias) / 2


def test_sum_of_estimates_follows_welch_and_satterthwaite():
    total = Estimate(1.0, 3.0, 10) + Estimate(2.0, 4.0, 5)
    assert (total.value, total.standard_error) == (3.0, 5.0)
    assert total.dof == pytest.approx(5**4 / (3**4 / 10 + 4**4 / 5))
    exact = Estimate(1.0, 3.0, 10) + Estimate(2.0, 0.0, np.inf)
    assert exact.dof == pytest.approx(10)


def test_z_score_maps_the_t_law_to_a_normal():
    estimate = Estimate(0.0, 1.0, 4)
    truth = float(stats.t.ppf(0.9, 4))
    assert estimate.z_score(-truth) == pytest.approx(stats.norm.ppf(0.9))
    assert estimate.z_score(truth) == pytest.approx(-stats.norm.ppf(0.9))


def test_arrays_of_estimates_are_as_their_parts():
    values, errors, dofs = np.array([1.0, -2.0]), np.array([3.0, 0.5]), np.array([10.0, 4.0])
    both, other = Estimate(values, errors, dofs), Estimate(0.5, 0.2, 7)
    parts = [Estimate(*part) for part in zip(values, errors, dofs, strict=True)]
    np.testing.assert_allclose(both.z_score(0.3), [part.z_score(0.3) for part in parts])
    np.testing.assert_allclose(both.interval(0.9), np.transpose([part.interval(0.9) for part in parts]))
    for total in (both + other, both + both):
        added = [part + (other if total.value[0] == 1.5 else part) for part in parts]
        np.testing.assert_allclose(total.standard_error, [one.standard_error for one in added])
        np.testing.assert_allclose(total.dof, [one.dof for one in added])
    assert isinstance(parts[0].z_score(0.3), float)
    assert isinstance((parts[0] + other).dof, float)


def test_a_difference_is_judged_by_welchs_test():
    """Of eight normal values each, p is uniform; by the normal law, one in twenty would be below 0.03."""
    generator = np.random.default_rng(3)
    samples = generator.normal(size=(2000, 2, 8)) * np.array([1.0, 3.0])[:, None]
    errors = samples.std(axis=2, ddof=1) / np.sqrt(8)
    p_values = [
        difference_p_value(*(Estimate(values.mean(), error, 7) for values, error in zip(pair, both, strict=True)))
        for pair, both in zip(samples, errors, strict=True)
    ]
    for level in (0.01, 0.05, 0.5):
        assert abs(np.mean(np.array(p_values) < level) - level) < 4 * np.sqrt(level * (1 - level) / 2000)


def test_interval_has_the_coverage_of_the_t_law():
    low, high = Estimate(2.0, 0.5, 7).interval(0.9)
    assert (high - low) / 2 == pytest.approx(0.5 * stats.t.ppf(0.95, 7))


def test_weighted_mean_and_quantile_of_a_tilted_normal():
    generator = np.random.default_rng(2)
    values = autoregressive(generator, 0.5, (8, 4000))
    log_weight = 0.7 * values  # tilts N(0, 1) to N(0.7, 1)
    mean = expectation(values, log_weight)
    assert abs(mean.z_score(0.7)) < 4
    upper = quantile(values, log_weight, 0.9)
    assert abs(upper.z_score(0.7 + stats.norm.ppf(0.9))) < 4
    assert 0 < upper.standard_error < 0.1


def test_an_error_of_zero_is_right_or_infinitely_wrong():
    assert [Estimate(1.0, 0.0, 8).z_score(truth) for truth in (1.0, 2.0, 0.5)] == [0.0, -np.inf, np.inf]
