"""Laws of beta: masses against quadrature, draws against exact distribution functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import thermocline as tc
from thermocline.paths import laws, sigmoidal_betas
from thermocline.support.precision import cast, computing_in

UNEVEN = np.array([0.0, 0.001, 0.4, 0.41, 1.0])
LAWS = {
    "flat": (np.zeros(2), np.array([0.0, 1.0])),
    "uneven": (np.array([0.0, -0.8, 0.5, 0.1, 1.2]), np.array([0.0, 0.07, 0.3, 0.8, 1.0])),
    "steep": (np.array([0.0, 3.0, -2.0, 400.0, 380.0]), UNEVEN),
}
RATIOS = [0.0, 1e-8, -1e-8, 0.7, -0.7, 25.0, -25.0, 1e3, -1e3, 1e4, -1e4]
LADDER = tc.Ladder(np.array([0.0, 0.1, 0.35, 1.0]), np.array([0.2, -0.7, 0.5, 0.0]))
NODES, WEIGHTS = np.polynomial.legendre.leggauss(100)


def exact_segments(name, log_ratio):
    """Log of the integral of exp(beta r - f(beta)) over each segment, by Gauss-Legendre where it is not negligible."""
    bias, knots = LAWS[name]
    exponent = knots * log_ratio - bias
    fall = np.abs(np.diff(exponent))
    reach = np.where(fall < 50, 1.0, 50 / np.maximum(fall, 1.0))
    mass = np.exp(-(fall * reach)[:, None] * (NODES + 1) / 2) @ WEIGHTS * reach / 2
    return np.maximum(exponent[1:], exponent[:-1]) + np.log(mass * np.diff(knots))


def cumulative(name, log_ratio, beta):
    """P(draw <= beta), exactly."""
    bias, knots = LAWS[name]
    log_mass = exact_segments(name, log_ratio)
    share = np.exp(log_mass - np.logaddexp.reduce(log_mass))
    segment = np.clip(np.searchsorted(knots, beta, side="right") - 1, 0, len(knots) - 2)
    within = (beta - knots[segment]) / np.diff(knots)[segment]
    gain = np.diff(knots * log_ratio - bias)[segment]
    safe = np.where(np.abs(gain) < 1e-10, 1.0, gain)
    falling = np.expm1(-np.abs(safe) * within) / np.expm1(-np.abs(safe))
    rising = np.exp(-np.abs(safe) * (1 - within)) * falling
    inside = np.where(np.abs(gain) < 1e-10, within, np.where(gain > 0, rising, falling))
    return np.append(0, np.cumsum(share))[segment] + share[segment] * inside


def law_of(name, precision):
    return cast(tc.Continuous(*LAWS[name]), precision)


draw_many = jax.jit(jax.vmap(lambda key, law, log_ratio: law.sample(key, log_ratio), (0, None, None)))
log_masses = jax.jit(jax.vmap(lambda law, log_ratio: law.log_mass(log_ratio), (None, 0)))


def draws_of(law, log_ratio, precision, num_draws=20_000):
    keys = jax.random.split(jax.random.key(11), num_draws)
    return np.asarray(draw_many(keys, cast(law, precision), jnp.asarray(log_ratio, precision)), float)


@pytest.mark.parametrize(("precision", "accuracy"), [("float64", 1e-14), ("float32", 4e-7)])
@pytest.mark.parametrize("name", LAWS)
def test_log_mass_matches_quadrature(name, precision, accuracy):
    with computing_in(precision):
        actual = np.asarray(log_masses(law_of(name, precision), jnp.asarray(RATIOS, precision)))
    assert actual.dtype == precision
    for log_ratio, value in zip(RATIOS, actual, strict=True):
        scale = 8 + abs(log_ratio) + np.abs(LAWS[name][0]).max()
        assert abs(value - np.logaddexp.reduce(exact_segments(name, log_ratio))) < accuracy * scale, log_ratio


@pytest.mark.usefixtures("double")
def test_numpy_and_jax_agree_on_log_mass():
    ratios = np.array([*RATIOS, -np.inf])
    ladder = tc.Ladder(np.array([0.0, 0.3, 1.0]), np.array([0.2, -1.0, 0.4]))
    for law in (*(law_of(name, "float64") for name in LAWS), ladder):
        in_jax = np.asarray(log_masses(law, jnp.asarray(ratios)))
        np.testing.assert_allclose(laws.log_masses(law, ratios), in_jax, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("name", LAWS)
def test_draws_have_the_exact_law(name, precision):
    for log_ratio in (0.0, 1e-8, -1e-8, 4.0, -4.0, 600.0, 1e4, -1e4):
        with computing_in(precision):
            draws = draws_of(law_of(name, precision), log_ratio, precision)
        assert np.all((draws >= 0) & (draws <= 1))
        assert stats.kstest(draws, lambda beta: cumulative(name, log_ratio, beta)).pvalue > 1e-3, log_ratio  # noqa: B023


def test_the_test_of_the_law_can_fail(double):
    draws = draws_of(law_of("flat", "float64"), 4.0, "float64")
    assert stats.kstest(draws, lambda beta: cumulative("uneven", 4.0, beta)).pvalue < 1e-3
    assert stats.kstest(draws, lambda beta: cumulative("flat", 3.8, beta)).pvalue < 1e-3


def test_log_weight_is_minus_the_bias_at_knots_and_linear_between(double):
    bias, knots = LAWS["uneven"]
    law = law_of("uneven", "float64")
    betas = np.concatenate([knots, (knots[1:] + knots[:-1]) / 2])
    assert np.allclose(jax.vmap(law.log_weight)(betas), -np.interp(betas, knots, bias), atol=1e-14)


def test_a_bias_without_knots_is_spread_evenly(double):
    spread = tc.Continuous(np.array([0.0, 2.0, 1.0]))
    given_knots = tc.Continuous(np.array([0.0, 2.0, 1.0]), np.array([0.0, 0.5, 1.0]))
    assert np.isclose(spread.log_mass(1.3), given_knots.log_mass(1.3), rtol=1e-15)


def test_a_bias_of_integers_is_the_law_of_the_same_floats(double):
    whole, real = (cast(tc.Continuous(np.array([0, 2, 1], kind)), "float64") for kind in (int, float))
    assert np.isclose(whole.log_mass(jnp.asarray(1.3)), real.log_mass(jnp.asarray(1.3)), rtol=1e-15)


def test_a_constant_added_to_the_bias_divides_the_mass(double):
    bias, knots = LAWS["uneven"]
    shifted = tc.Continuous(bias + 3.0, knots)
    assert np.isclose(shifted.log_mass(2.0), law_of("uneven", "float64").log_mass(2.0) - 3.0, rtol=1e-14)


@pytest.mark.parametrize("log_ratio", [0.0, 2.0, -2.0, 1e4, -1e4])
def test_ladder_draws_its_rungs_with_their_probabilities(log_ratio, double):
    terms = LADDER.betas * log_ratio + LADDER.log_weights
    probabilities = np.exp(terms - np.logaddexp.reduce(terms))
    assert np.isclose(LADDER.log_mass(log_ratio), np.logaddexp.reduce(terms), rtol=1e-14)
    draws = draws_of(LADDER, log_ratio, "float64")
    counts = np.array([(draws == beta).sum() for beta in LADDER.betas])
    assert counts.sum() == draws.size
    assert np.all(counts[probabilities < 1e-12] == 0)
    possible = probabilities > 1e-12
    if possible.sum() > 1:
        expected = probabilities[possible] / probabilities[possible].sum() * draws.size
        assert stats.chisquare(counts[possible], expected).pvalue > 1e-3


def test_ladder_gives_the_weight_of_the_nearest_rung(double):
    assert np.allclose(jax.vmap(LADDER.log_weight)(LADDER.betas + 1e-9), LADDER.log_weights)


def test_sigmoidal_betas_run_from_0_to_1_and_crowd_at_the_ends():
    betas = sigmoidal_betas(20)
    gaps = np.diff(betas)
    assert betas[0] == 0
    assert betas[-1] == 1
    assert np.all(gaps > 0)
    assert gaps[0] < gaps[9] / 5 > gaps[-1] / 5


def test_from_prior_is_the_users_own_law(double):
    law = tc.Continuous.from_prior(lambda beta: np.sin(5 * beta), num_knots=33)
    knots = np.linspace(0, 1, 33)
    assert np.allclose(jax.vmap(law.log_weight)(knots), np.sin(5 * knots), atol=1e-14)
    betas = (np.arange(320_000) + 0.5) / 320_000
    interpolated = np.interp(betas, knots, np.sin(5 * knots))
    assert np.isclose(law.log_mass(3.0), np.log(np.mean(np.exp(3 * betas + interpolated))), atol=1e-9)


def test_from_prior_names_where_a_prior_is_not_finite():
    sentence = r"log prior of beta is -inf at beta = 0\.0"
    with np.errstate(divide="ignore"), pytest.raises(tc.ThermoclineError, match=sentence):
        tc.Continuous.from_prior(np.log)


def test_off_the_support_a_continuous_law_has_no_mass_and_a_ladder_that_of_beta_0(double):
    off = jnp.asarray(-jnp.inf)
    for name in LAWS:
        assert law_of(name, "float64").log_mass(off) == -jnp.inf
    assert LADDER.log_mass(off) == LADDER.log_weights[0]
    assert np.all(draws_of(LADDER, -np.inf, "float64", 1000) == 0)
    assert tc.Ladder(np.array([0.5, 1.0]), np.zeros(2)).log_mass(off) == -jnp.inf


def test_learned_passes_its_law_on(double):
    law = law_of("uneven", "float64")
    learned = tc.Learned(law)
    key, log_ratio = jax.random.key(2), jnp.asarray(1.7)
    assert learned.log_mass(log_ratio) == law.log_mass(log_ratio)
    assert learned.log_weight(0.2) == law.log_weight(0.2)
    assert learned.sample(key, log_ratio) == law.sample(key, log_ratio)


ALL = {**{name: tc.Continuous(*LAWS[name]) for name in LAWS}, "ladder": LADDER}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from(sorted(ALL)), st.floats(-1e4, 1e4), st.floats(-1e4, 1e4))
def test_log_mass_is_increasing_and_convex_in_r(name, first, second):
    with computing_in("float64"):
        ends = np.sort([first, second])
        points = np.array([ends[0], ends.mean(), ends[1]])
        low, middle, high = np.asarray(log_masses(cast(ALL[name], "float64"), points))
    slack = 1e-13 * (500 + abs(first) + abs(second))
    assert low <= high + slack
    assert middle <= (low + high) / 2 + slack


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.sampled_from(sorted(ALL)),
    st.integers(0, 2**31 - 1),
    st.floats(-1e6, 1e6),
    st.sampled_from(["float32", "float64"]),
)
def test_draws_lie_between_0_and_1(name, seed, log_ratio, precision):
    with computing_in(precision):
        keys = jax.random.split(jax.random.key(seed), 100)
        draws = np.asarray(draw_many(keys, cast(ALL[name], precision), jnp.asarray(log_ratio, precision)))
    assert np.all((draws >= 0) & (draws <= 1))
