"""The pool: weights for the target whatever the proposals, draws of chains that count for less, and what is missed."""

import numpy as np
import pytest
from scipy import stats

from thermocline.estimators.convergence import kish_share
from thermocline.fits.pool import Pool

TRUTH = 2.5  # log Z of exp(2.5) N(1, 0.5²)


def log_target(rows):
    return TRUTH + stats.norm.logpdf(rows[:, 0], 1.0, 0.5)


def with_draws(pool, centre, width, number, counts_for, seed):
    rows = np.random.default_rng(seed).normal(centre, width, (number, 1))
    density = lambda rows, _: stats.norm.logpdf(rows[:, 0], centre, width)  # noqa: E731
    return pool.joined_by(rows, log_target(rows), counts_for, density)


def test_log_evidence_and_moments_are_right_from_several_proposals():
    """One proposal misses the target, one is narrow, and one counts for a tenth of its draws."""
    pool = Pool.empty(1)
    for seed, (centre, width, counts_for) in enumerate([(-4.0, 0.5, 4000), (0.8, 0.3, 4000), (1.0, 1.5, 400)]):
        pool = with_draws(pool, centre, width, 4000, counts_for, seed)
    weight = pool.weight
    assert weight.sum() == pytest.approx(1.0)
    error = np.sqrt(np.sum((weight * len(weight) - 1) ** 2)) / len(weight)
    assert abs(pool.log_evidence - TRUTH) < 4 * error
    mean = weight @ pool.position[:, 0]
    assert abs(mean - 1.0) < 4 * 0.5 / np.sqrt(pool.num_effective)


def test_a_density_that_misses_mass_has_a_small_share_though_its_own_draws_look_even():
    pool = with_draws(Pool.empty(1), 1.0, 1.0, 20_000, 20_000, 5)
    exact = pool.share_of(stats.norm.logpdf(pool.position[:, 0], 1.0, 0.5))
    assert exact == pytest.approx(1.0, abs=0.05)
    off = pool.share_of(stats.norm.logpdf(pool.position[:, 0], 2.0, 0.2))
    assert off < 1e-3


def test_effective_shares():
    assert kish_share(np.zeros(10)) == 1.0
    assert kish_share(np.array([0.0, -np.inf, -np.inf, -np.inf]) + 700) == 0.25
    assert kish_share(np.full(3, -np.inf)) == 0.0
