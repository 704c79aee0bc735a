"""The learned law: equal time on equal lengths of the path, and bounded weights for the target."""

import jax
import numpy as np
import pytest

import thermocline as tc
from thermocline.paths.reweighting import AT_TARGET, Window, profile_of_base

pytestmark = pytest.mark.usefixtures("double")
OPEN = Window(np.float64(1.0), np.float64(1.0), np.bool_(True))


def learned(log_ratio):
    """The law refitted to exact draws of the base, and the log partition function at beta = 1 that it goes by."""
    curve = profile_of_base(np.asarray(log_ratio)).curve()
    return tc.Continuous(np.zeros(65)).refit(curve, OPEN), float(curve.log_partition[-1])


def largest_weight(log_ratio, places):
    """Of the weights for the target at some places, relative to their mean over the target's own share of the path."""
    law, log_partition = learned(log_ratio)
    total = np.logaddexp.reduce(jax.vmap(law.log_mass)(log_ratio)) - np.log(len(log_ratio))  # over base and beta
    return np.exp(max(place - log_partition - float(law.log_mass(place)) + total for place in places))


@pytest.mark.parametrize("deviation", [0.01, 0.3, 1.0, 3.0])
def test_what_the_base_has_missed_gets_bounded_weights(deviation):
    """However far r lies above all that the base has shown, a weight is at most about five times the mean."""
    log_ratio = np.random.default_rng(0).normal(0, deviation, 4096)
    assert largest_weight(log_ratio, (10.0, 30.0, 100.0)) < 1.3 / AT_TARGET


def test_draws_where_the_target_is_next_to_nothing_leave_the_law_as_it_is():
    """R of -1e200, whose square overflows, at some draws of the base: but for their own share nothing changes."""
    log_ratio = np.random.default_rng(1).normal(0, 1.0, 4096)
    odd = np.where(np.arange(4096) < 40, -1e200, log_ratio)
    (law, log_partition), (_, exact) = learned(odd), learned(np.where(np.arange(4096) < 40, -np.inf, log_ratio))
    assert np.all(np.isfinite(law.bias))
    assert np.all(np.isfinite(law.knots))
    assert abs(log_partition - exact - np.log1p(-40 / 4096)) < 1e-3
