"""The search: how many modes, in any units, and what it says of those it may have missed."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

import thermocline as tc
from studies.study_problems import eggbox, gaussian_mixture, hierarchy
from tests.problems import shells
from thermocline.auto.black_box import searched
from thermocline.engine.progress import Silent
from thermocline.evaluator import Evaluator
from thermocline.fits.pool import NEGLIGIBLE
from thermocline.modes.find import Search, fewest_looks
from thermocline.modes.looks import EXPLAINED, about_all, explained, look
from thermocline.modes.peaks import peak_of
from thermocline.support.budget import Budget

WEIGHTS = np.array([0.55, 0.3, 0.15])
MEANS = np.array([[6.0, 0.0, 1.0], [-5.0, 4.0, 0.0], [0.0, -7.0, -2.0]])
COVARIANCES = np.stack([np.eye(3), np.diag([0.3, 0.2, 0.5]), np.diag([0.4, 1.2, 0.7])])
THREE = gaussian_mixture("three", WEIGHTS, MEANS, COVARIANCES, -4.2).target


def search_of(target, seed=0, starts=None):
    evaluate = Evaluator(target)
    begin = evaluate.initial_position[None] if starts is None else starts
    return searched(evaluate, seed, begin, Silent()).found()


def test_three_modes_are_three_with_laplaces_masses():
    found = search_of(THREE)
    assert found.num_modes == 3
    np.testing.assert_allclose([peak.location for peak in found.peaks], MEANS, atol=1e-4)
    np.testing.assert_allclose([peak.log_mass for peak in found.peaks], np.log(WEIGHTS) - 4.2, atol=0.01)
    assert sum(found.counts) <= found.record.num_ascents
    assert found.record.num_lost == 0


@pytest.mark.parametrize(("problem", "number"), [(eggbox(), 18), (shells(2), 2), (shells(5), 2)])
def test_many_modes_and_continua_of_optima(problem, number):
    assert search_of(problem.target).num_modes == number


def affine(x, data):
    return THREE.log_density(jnp.linalg.solve(data["matrix"], x - data["shift"]), data["inner"])


@pytest.mark.parametrize("seed", range(6))
def test_units_and_starts_do_not_matter(seed):
    """Random maps with scales from 1e-4 to 1e4, and a start a thousand deviations away: the same modes and masses."""
    generator = np.random.default_rng(seed)
    left, _ = np.linalg.qr(generator.normal(size=(3, 3)))
    matrix = left * 10 ** generator.uniform(-4, 4, 3) @ np.linalg.qr(generator.normal(size=(3, 3)))[0]
    shift = matrix @ generator.normal(size=3) * 100
    start = shift + matrix @ (1000 * generator.normal(size=3))
    data = {"matrix": matrix, "shift": shift, "inner": THREE.data}
    found = search_of(tc.Target(affine, start, data), seed)
    places = np.linalg.solve(matrix, (np.array([peak.location for peak in found.peaks]) - shift).T).T
    np.testing.assert_allclose(places, MEANS, atol=1e-3)
    log_volume = np.linalg.slogdet(matrix)[1]
    np.testing.assert_allclose([peak.log_mass - log_volume for peak in found.peaks], np.log(WEIGHTS) - 4.2, atol=0.02)


def test_a_density_without_bound_gets_one_fit_along_the_way_within_its_budget():
    target = hierarchy(is_centred=True).target
    evaluate = Evaluator(target)
    found = searched(evaluate, 0, evaluate.initial_position[None], Silent()).found()
    assert [peak.found_by for peak in found.peaks] == ["path"]
    assert evaluate.num_rows < 3 * fewest_looks(evaluate.operations)


def test_a_corner_gets_a_base_with_its_mass():
    """An exponential in two dimensions, -inf beyond the corner at which it is highest."""
    scales = np.array([0.01, 30.0])
    target = tc.Target(lambda x: jnp.where(jnp.all(x > 0), -jnp.sum(x / scales), -jnp.inf), scales)
    assert search_of(target).num_modes == 1
    fit = tc.fit_auto(target, seed=0)
    rows = fit.base.sample_rows(np.random.default_rng(1), 8192)
    log_weight = Evaluator(target).values(rows) - fit.base.log_density_of_rows(rows)
    weight = np.exp(log_weight - log_weight.max())
    error = weight.std() / weight.mean() / np.sqrt(len(weight))
    log_evidence = np.log(weight.mean()) + log_weight.max()
    assert error < 0.05
    assert abs(log_evidence - np.sum(np.log(scales))) < 4 * error


def test_saddles_are_pushed_off():
    """A start between two modes, exactly on the ridge that divides them, where the slope is zero."""

    def log_density(x):
        return jnp.logaddexp(norm.logpdf(x[0], -3.0), norm.logpdf(x[0], 3.0)) - x[1] ** 2

    evaluate = Evaluator(tc.Target(log_density, np.zeros(2)))
    search = Search(evaluate, np.random.default_rng(0), Silent())
    search.first(np.zeros((1, 2)))
    places = sorted(float(peak.location[0]) for peak in search.peaks)
    np.testing.assert_allclose(places, [-3.0, 3.0], atol=1e-3)


def test_the_blind_spot_is_what_the_random_ascents_bound():
    record = search_of(THREE).record
    rates = [1 - 0.025 ** (1 / n) for n in (record.num_random_unexplained, record.num_random_explained)]
    u = record.share_unexplained
    assert record.blind_spot == pytest.approx(u * rates[0] + (1 - u) * rates[1])
    assert record._replace(num_random_explained=0, num_random_unexplained=0).blind_spot == 1
    assert f"{record.blind_spot:.1%}" in str(record)


def test_a_look_is_explained_where_the_slope_points_to_a_mode():
    root = np.diag([1e-3, 1e3])
    peak = peak_of(np.array([1.0, 2.0]), 0.0, root, "start")
    rows = look(np.random.default_rng(0), [peak], np.zeros((1, 2)), 400)
    gradients = -(rows - peak.location) @ peak.whitening.T @ peak.whitening
    assert np.all(explained(rows, gradients, [peak]) > 1 - 1e-6)
    assert np.all(explained(rows, -gradients, [peak]) < EXPLAINED)
    assert about_all(np.random.default_rng(0), [peak], 5).shape == (5, 2)


def test_a_limit_on_evaluations_is_kept_and_said():
    evaluate = Evaluator(THREE, budget=Budget(3000))
    search = searched(evaluate, 0, evaluate.initial_position[None], Silent())
    assert evaluate.num_rows <= 1500  # half of it: the rest is for measuring
    assert search.num_looks > 100
    assert "cut short by max_evaluations" in str(search.found().record)
    with pytest.raises(tc.ThermoclineError, match="max_evaluations is too small"):
        tc.fit_auto(THREE, max_evaluations=40)
    with pytest.raises(tc.ThermoclineError, match="must be positive"):
        tc.fit_auto(THREE, max_seconds=0)


def test_a_dear_density_is_looked_at_less_and_the_record_says_so():
    """Ten milliseconds a row on the host, two seconds in all."""

    def slow(x):
        time.sleep(0.01)
        return -0.5 * float(x @ x), -x

    started = time.monotonic()
    fit = tc.fit_auto(tc.from_numpy(slow, np.ones(2)), max_seconds=2.0)
    assert time.monotonic() - started < 6
    record = fit.modes.found.record
    assert 10 < record.num_looks < 200
    assert record.cut_short_by == "max_seconds"
    assert fit.log_zeta == pytest.approx(np.log(2 * np.pi), abs=0.2)


def test_looks_of_one_seed_are_the_same():
    first, second = (search_of(THREE, seed=3) for _ in range(2))
    assert jax.tree.map(float, first.record[:4]) == jax.tree.map(float, second.record[:4])


def needle(x):
    """A mode of a ten-thousandth of the volume, far from where looks go."""
    return jnp.logaddexp(norm.logpdf(x).sum(), norm.logpdf(x, 3e6, 0.1).sum())


def test_known_modes_and_draws_of_a_prior_join():
    blind = search_of(tc.Target(needle, np.zeros(2)))
    assert blind.num_modes == 1
    told = search_of(tc.Target(needle, np.zeros(2), known_modes=[np.array([3e6, 3e6 - 1.0])]))
    assert told.num_modes == 2
    prior = tc.Gaussian.diagonal(np.full(2, 3e6), 2.0)
    assert search_of(tc.Target(needle, np.zeros(2), prior=prior)).num_modes == 2


def spike_on_slab(x):
    """Four fifths of a wide Gaussian, and a spike, a thirtieth as wide, half a deviation from its middle."""
    slab = jnp.log(0.8) + jnp.sum(norm.logpdf(x))
    return jnp.logaddexp(slab, jnp.log(0.2) + jnp.sum(norm.logpdf(x, jnp.array([0.5, 0.1]), 0.03)))


def test_a_spike_is_not_the_slab_that_it_stands_on():
    found = search_of(tc.Target(spike_on_slab, np.array([3.0, -2.0])))
    assert found.num_modes == 2
    np.testing.assert_allclose(np.sort([peak.log_mass for peak in found.peaks]), np.log([0.2, 0.8]), atol=0.2)


@pytest.mark.parametrize("dimension", [3, 7])
def test_a_shell_is_one_mode_in_any_dimension(dimension):
    def log_density(x):
        return -0.5 * ((jnp.sqrt(jnp.sum(x**2) + 1e-12) - 20.0) / 1.0) ** 2

    assert search_of(tc.Target(log_density, np.full(dimension, 3.0))).num_modes == 1


def test_equal_modes_are_two_however_near():
    """Of one height, with a dip of a tenth of a nat between: ascents from halfway end at either."""

    def log_density(x):
        return jnp.logaddexp(jnp.sum(norm.logpdf(x, 1.2)), jnp.sum(norm.logpdf(x, -1.2)))

    assert search_of(tc.Target(log_density, np.array([0.5, 0.7]))).num_modes == 2


def test_optima_of_no_mass_are_not_listed():
    """A hill far below: 200 nats down, an optimum like any other, and nothing of the target."""

    def log_density(x):
        return jnp.logaddexp(jnp.sum(norm.logpdf(x)), -200 + jnp.sum(norm.logpdf(x, 60.0, 3.0)))

    target = tc.Target(log_density, np.ones(2), known_modes=[np.full(2, 60.0)])
    search = searched(Evaluator(target), 0, np.ones((1, 2)), Silent())
    assert len(search.peaks) == 2
    assert search.found().num_modes == 1


def test_looks_count_anew_from_modes_that_matter_alone():
    """A spike on each datum of many is no reason to go on looking."""
    evaluate = Evaluator(tc.Target(lambda x: -0.5 * (x @ x), np.zeros(2)))
    search = Search(evaluate, np.random.default_rng(0), Silent())
    for looks, height in ((0, 0.0), (1000, -2.0 * NEGLIGIBLE), (2000, -1.0)):
        search.num_looks = looks
        search.note([peak_of(np.full(2, 50.0 + looks), height, np.eye(2), "look")])
        assert search.looks_at_last == (looks if height > -NEGLIGIBLE else 0)
