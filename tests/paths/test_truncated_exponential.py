"""The truncated exponential against quadrature and its exact distribution function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from thermocline.paths import laws
from thermocline.support.precision import computing_in

GAINS = [0.0, 1e-12, 1e-8, 1e-5, 1e-3, 0.0199, 0.0201, 0.3, 1.0, 7.0, 40.0, 300.0, 1e4]
SIGNED = sorted({sign * gain for gain in GAINS for sign in (-1, 1)})


def log_mass_by_quadrature(gain):
    """Gauss-Legendre on the integrand divided by its largest value, cut where it has fallen by e^-50."""
    rate = abs(float(gain))
    reach = 1.0 if rate < 50 else 50 / rate
    nodes, weights = np.polynomial.legendre.leggauss(100)
    mass = weights @ np.exp(-rate * reach * (nodes + 1) / 2) * reach / 2
    return max(float(gain), 0.0) + np.log(mass)


def cumulative(gain, beta):
    """P(draw <= beta), exactly."""
    if abs(gain) < 1e-12:
        return beta
    if gain < 0:
        return np.expm1(gain * beta) / np.expm1(gain)
    return np.exp(gain * (beta - 1)) * np.expm1(-gain * beta) / np.expm1(-gain)


@pytest.mark.parametrize("gain", SIGNED)
def test_log_mass_matches_quadrature_in_double_precision(gain, double):
    actual = float(laws.log_truncated_mass(jnp.asarray(gain)))
    assert abs(actual - log_mass_by_quadrature(gain)) < 1e-14 * (8 + abs(gain))


@pytest.mark.parametrize("gain", SIGNED)
def test_log_mass_matches_quadrature_in_single_precision(gain):
    actual = laws.log_truncated_mass(jnp.asarray(gain, jnp.float32))
    assert actual.dtype == jnp.float32
    assert abs(float(actual) - log_mass_by_quadrature(np.float32(gain))) < 3e-7 * (8 + abs(gain))


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_slope_of_log_mass_is_the_mean_and_is_finite_everywhere(precision):
    with computing_in(precision):
        gains = jnp.asarray(SIGNED, precision)
        slopes = np.asarray(jax.vmap(jax.grad(laws.log_truncated_mass))(gains), float)
    for gain, slope in zip(SIGNED, slopes, strict=True):
        if abs(gain) < 0.1:  # the series of 1/(1 - e^-g) - 1/g
            expected = 0.5 + gain / 12 - gain**3 / 720
        else:
            expected = 1 / -np.expm1(-gain) - 1 / gain if gain > 0 else 1 - (1 / -np.expm1(gain) + 1 / gain)
        assert abs(slope - expected) < (2e-13 if precision == "float64" else 1e-4), gain


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("gain", [0.0, 1e-8, -1e-8, 2e-6, -2e-6, 0.5, -3.0, 30.0, -30.0, 1e4, -1e4])
def test_quantile_of_uniforms_has_the_exact_law(gain, precision):
    with computing_in(precision):
        uniforms = jax.random.uniform(jax.random.key(3), (20_000,), precision)
        draws = np.asarray(laws.truncated_quantile(jnp.asarray(gain, precision), uniforms), float)
    assert np.all((draws >= 0) & (draws <= 1))
    assert stats.kstest(draws, lambda beta: cumulative(gain, beta)).pvalue > 1e-3


def test_the_test_of_the_law_can_fail(double):
    draws = laws.truncated_quantile(jnp.asarray(-0.1), jax.random.uniform(jax.random.key(3), (20_000,)))
    assert stats.kstest(np.asarray(draws), lambda beta: cumulative(0.1, beta)).pvalue < 1e-3


def test_quantile_resolves_the_likelier_end(double):
    """At a gain of -10^4 half of the draws lie below log(2)/10^4; their place there must not be rounded away."""
    median = laws.truncated_quantile(jnp.asarray(-1e4), jnp.asarray(0.5))
    assert np.isclose(median, np.log(2) / 1e4, rtol=1e-12)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.floats(-1e4, 1e4), st.floats(-1e4, 1e4))
def test_log_mass_is_increasing_and_convex(first, second):
    with computing_in("float64"):
        middle = (first + second) / 2
        low, centre, high = (
            float(laws.log_truncated_mass(jnp.asarray(g)))
            for g in (min(first, second), middle, max(first, second))
        )
    slack = 1e-13 * (8 + abs(first) + abs(second))
    assert low <= high + slack
    assert centre <= (low + high) / 2 + slack


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.floats(-1e6, 1e6, width=32), st.floats(0, 1, exclude_max=True, width=32))
def test_quantiles_lie_between_0_and_1_in_single_precision(gain, probability):
    beta = float(laws.truncated_quantile(jnp.float32(gain), jnp.float32(probability)))
    assert 0 <= beta <= 1
