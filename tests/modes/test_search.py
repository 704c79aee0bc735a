"""The search for modes: how many there are, what is one mode and what is two, and when to give up."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm
from thermocline.modes.search import GROUP, Found, find_modes, joined, spread_starts

import thermocline as tc
from studies.study_problems import eggbox, gaussian_mixture, hierarchy
from tests.problems import shells
from thermocline.evaluator import Evaluator
from thermocline.fits.curvature import Curvature
from thermocline.fits.lbfgs import Optima

pytestmark = pytest.mark.usefixtures("double")

COVARIANCES = np.array([[[1.0, 0.4], [0.4, 0.5]], [[0.3, -0.1], [-0.1, 0.2]]])
TWO = gaussian_mixture("two", np.array([0.7, 0.3]), np.array([[3.0, 1.0], [-2.0, -1.5]]), COVARIANCES, 2.5).target
CORRELATED = np.array([[4.0, 1.9, 0.0], [1.9, 1.0, 0.1], [0.0, 0.1, 0.2]])


def single_log_density(x, data):
    return -0.5 * (x - data["mean"]) @ data["precision"] @ (x - data["mean"]) + 7.0


SINGLE = tc.Target(
    single_log_density, np.zeros(3), {"mean": np.array([1.0, -2.0, 0.5]), "precision": np.linalg.inv(CORRELATED)}
)


def searched(target, seed=0):
    target = Evaluator(target)
    return find_modes(target, spread_starts(target, seed))


def pair_log_density(x, data):
    """In one dimension: two unit Gaussians of weights 0.6 and 0.4, `data` apart."""
    return jnp.logaddexp(jnp.log(0.6) + norm.logpdf(x[0]), jnp.log(0.4) + norm.logpdf(x[0], data))


def pair(distance):
    return Evaluator(tc.Target(pair_log_density, np.zeros(1), distance))


def found_with(counts, mode):
    """What a search would leave, with nothing but counts and modes."""
    optima, curvature = Optima(*[np.zeros((len(mode), 1))] * 4), Curvature(np.zeros((0, 1)), np.zeros((0, 1, 1)))
    return Found(optima, curvature, np.array(counts), np.array(mode), 0, 0)


def test_two_starts_that_find_one_mode_give_one_optimum():
    found = find_modes(Evaluator(SINGLE), np.array([[5.0, 4.0, -3.0], [-4.0, 1.0, 2.0]]))
    assert found.num_modes == 1
    assert found.counts.tolist() == [[2, 0]]
    assert found.num_starts == 2
    assert found.share_converged == 1
    np.testing.assert_allclose(found.optima.position, [[1.0, -2.0, 0.5]], atol=1e-4)
    np.testing.assert_allclose(found.optima.log_density, [7.0], atol=1e-6)
    np.testing.assert_allclose(found.curvature.covariances()[0], CORRELATED, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_correlated_gaussian_has_one_mode(seed):
    found = searched(SINGLE, seed)
    assert found.num_modes == 1
    assert len(found.optima.position) == 1
    assert found.share_converged > 0.95
    assert found.unseen == 0


def test_two_gaussians_have_two_modes_the_higher_first():
    found = searched(TWO)
    assert found.num_modes == 2
    assert np.all(np.diff(found.optima.log_density) <= 0)
    best = [found.optima.position[found.mode == mode][0] for mode in (0, 1)]
    np.testing.assert_allclose(best, [[-2.0, -1.5], [3.0, 1.0]], atol=0.01)  # the narrow one is higher
    assert found.counts[:, 0].sum() > 0.95 * found.num_starts


def test_shells_are_two_modes_though_continua_of_optima():
    found = searched(shells(2).target)
    assert found.num_modes == 2
    inside = 12 / (1 + np.exp(-found.optima.position)) - 6
    for mode in (0, 1):
        assert len({*np.sign(inside[found.mode == mode, 0])}) == 1  # each shell on its side
    radius = np.linalg.norm(np.column_stack([np.abs(inside[:, 0]) - 3.5, inside[:, 1]]), axis=1)
    assert np.all(np.abs(radius - 2) < 0.1)


def test_an_eggbox_has_eighteen_modes():
    found = searched(eggbox().target)
    assert found.num_modes == 18
    assert found.unseen == 0


def test_an_unbounded_density_has_no_optima_and_the_search_gives_up_within_a_group():
    target = Evaluator(hierarchy(is_centred=True).target)
    starts = spread_starts(target, 0)
    found = find_modes(target, starts)
    assert len(starts) > GROUP
    assert found.num_starts == GROUP
    assert found.num_modes == 0
    assert len(found.optima.position) == 0
    assert found.share_converged == 0
    assert found.unseen == 0


def test_starts_off_the_support_are_left_out():
    target = Evaluator(tc.Target(lambda x: jnp.where(x[0] > 0, norm.logpdf(x[0], 1.0), -jnp.inf), np.ones(1)))
    found = find_modes(target, np.array([[2.0], [-1.0], [3.0]]))
    assert found.counts.tolist() == [[2, 0]]
    assert found.share_converged == pytest.approx(2 / 3)
    later = find_modes(target, np.array([[1.5], [-2.0]]), found)
    assert later.counts.tolist() == [[2, 1]]
    assert later.share_converged == pytest.approx(3 / 5)  # those lost before still count
    np.testing.assert_allclose(found.optima.position, [[1.0]], atol=1e-4)


def test_unseen_is_good_and_turings_estimate():
    """Of ten starts two found modes that no other found; the two optima of mode 0 are one mode seen five times."""
    found = found_with([[4, 0], [1, 3], [3, 0], [1, 0], [1, 9]], [0, 0, 1, 2, 3])
    assert found.num_modes == 4
    assert found.unseen == 0.2
    assert found_with([[5, 0], [5, 1]], [0, 1]).unseen == 0
    assert found_with(np.zeros((0, 2), int), np.zeros(0, int)).unseen == 0


def test_modes_of_draws_alone_are_told_from_those_of_starts():
    found = found_with([[4, 0], [0, 2], [1, 0]], [0, 1, 0])
    assert found.is_from_starts(0)
    assert not found.is_from_starts(1)


def test_draws_of_chains_add_what_starts_have_missed():
    target = Evaluator(TWO)
    first = find_modes(target, np.array([[4.0, 2.0], [3.5, 0.0]]))
    later = find_modes(target, np.array([[-2.5, -1.0], [3.0, 1.5], [-2.0, -2.0]]), first)
    assert (first.num_modes, later.num_modes) == (1, 2)
    assert later.counts.tolist() == [[0, 2], [2, 1]]
    assert [later.is_from_starts(mode) for mode in (0, 1)] == [False, True]
    assert later.num_starts == 2
    again = find_modes(target, np.array([[-2.5, -1.0], [3.0, 1.5], [-2.0, -2.0], [4.0, 2.0], [3.5, 0.0]]))
    for known, fresh in zip(later.curvature, again.curvature, strict=True):  # what was not asked for twice
        np.testing.assert_allclose(np.abs(known), np.abs(fresh), rtol=1e-3, atol=1e-3)


def test_starts_are_spread_widely_and_begin_where_the_user_did():
    target = tc.Target(single_log_density, np.array([10.0, 20.0, 30.0]), SINGLE.data)
    target = Evaluator(target)
    starts = spread_starts(target, 3)
    np.testing.assert_array_equal(starts[0], [10.0, 20.0, 30.0])
    distance = np.abs(starts - starts[0]).max(axis=1)[1:]
    assert distance.min() < 1
    assert distance.max() > 20
    np.testing.assert_array_equal(starts, spread_starts(target, 3))
    assert not np.any(starts[1:] == spread_starts(target, 4)[1:])


def far_log_density(x):
    """Most of the mass where no start goes of its own accord: 500 deviations from the other mode."""
    return jnp.logaddexp(jnp.log(0.2) + norm.logpdf(x[0]), jnp.log(0.8) + norm.logpdf(x[0], 500.0, 2.0))


def test_half_the_starts_come_from_a_prior_if_there_is_one():
    prior = tc.Gaussian.diagonal(np.array([480.0]), 15.0)
    without = Evaluator(tc.Target(far_log_density, np.zeros(1)))
    target = Evaluator(tc.Target(far_log_density, np.zeros(1), prior=prior))
    starts = spread_starts(target, 0)
    drawn = starts[1 : 1 + len(starts) // 2]
    assert abs(drawn.mean() - 480.0) < 4 * 15.0 / np.sqrt(len(drawn))
    assert np.abs(starts[1 + len(starts) // 2 :]).max() < 100
    np.testing.assert_allclose(find_modes(without, spread_starts(without, 0)).optima.position, [[0.0]], atol=1e-3)
    np.testing.assert_allclose(np.sort(find_modes(target, starts).optima.position, axis=0), [[0.0], [500.0]], atol=1e-2)


@pytest.mark.parametrize(("distance", "num_modes"), [(3.0, 1), (3.6, 1), (5.5, 2), (7.0, 2)])
def test_optima_are_joined_where_the_barrier_between_them_is_low(distance, num_modes):
    """Two nats below the lower optimum: the barrier is 0.4, 0.9, 2.9 and 5.2 nats."""
    target = pair(distance)
    found = find_modes(target, np.array([[-1.0], [distance + 1.0]]))
    assert len(found.optima.position) == 2
    assert found.num_modes == num_modes
    grid = jnp.linspace(0, distance, 2001)[:, None]
    barrier = found.optima.log_density.min() - float(jax.vmap(target.target)(grid).min())
    assert (barrier < 2) == (num_modes == 1)


def two_ridges_log_density(x):
    """Waves of 0.4 along y = 0 and y = 2, twelve nats above what is between."""
    return 0.4 * jnp.cos(2 * jnp.pi * x[0]) + 6 * jnp.cos(jnp.pi * x[1])


def test_a_chain_of_low_barriers_is_one_mode():
    """Thirty optima long: neighbours are joined, so the ends are; the other ridge is nearer than they, and is not."""
    along, across = (leaf.ravel() for leaf in np.meshgrid(np.arange(30.0), [0.0, 2.0]))
    optima = Optima(np.column_stack([along, across]), np.full(60, 6.4), np.zeros((60, 2)), np.zeros(60))
    target = Evaluator(tc.Target(two_ridges_log_density, np.zeros(2)))
    assert joined(target, optima).tolist() == [0] * 30 + [1] * 30
