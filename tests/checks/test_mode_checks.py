"""What the checks say of the table of modes: one that chains have lost, or seen too seldom, is named."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from thermocline.checks import CHECKS, Context
from thermocline.records import Estimate, Mode


def mode_of(mass, by_importance, *, visits=100, error=0.01, by_laplace=np.nan, name="mode 1", place=7.25):
    return Mode(
        name,
        {"x": np.array([place])},
        0.0,
        Estimate(mass, 0.01, 50),
        Estimate(by_importance, error, 50),
        by_laplace,
        visits,
        visits,
        visits,
        "starts",
        {"x": np.array([place])},
        {"x": np.array([1.0])},
        0,
    )


def context_of(modes, *, known_mass=0.0, error=0.01):
    """What the check of modes looks at: log Z is 0 with an error of 0.01."""
    nothing: Any = None
    return Context(*[nothing] * len(Context._fields))._replace(
        modes=tuple(modes),
        log_evidence=Estimate(0.0, 0.01, 50),
        log_known_mass=Estimate(known_mass, error, np.inf),
        has_evidence=True,
    )


def checks_of(modes, **options):
    return CHECKS["modes"](context_of(modes, **options))


GOOD = mode_of(0.8, 0.8), mode_of(0.2, 0.2, name="mode 2", place=-1.5)


def test_modes_that_agree_pass():
    assert [check.status for check in checks_of(GOOD)] == ["ok", "ok"]
    assert checks_of(()) == []


def test_chains_that_lost_a_mode_fail_with_the_mode_named():
    """They put log Z at log 0.8 of the truth: by its own fit the other mode weighs a quarter of what they have."""
    lost = mode_of(0.0, 0.25, visits=0, name="mode 2", place=-1.5)
    total, visits = checks_of([mode_of(1.0, 1.0), lost], known_mass=np.log(1.25))
    assert (total.status, visits.status) == ("failed", "failed")
    for check in (total, visits):
        assert "mode 2 (x = [-1.5])" in check.advice
    assert "0.25 by its own fit" in total.advice


def test_a_total_within_its_error_passes():
    total, _ = checks_of(GOOD, known_mass=0.03)  # two errors
    assert total.status == "ok"
    total, _ = checks_of(GOOD, known_mass=0.05)
    assert total.status == "suspect"
    total, _ = checks_of(GOOD, known_mass=-1.0)  # modes that nobody has a fit for are no reproach
    assert total.status == "ok"


@pytest.mark.parametrize(("visits", "status"), [(10, "ok"), (9, "suspect"), (3, "suspect"), (2, "failed")])
def test_a_mode_visited_too_seldom_is_suspect_or_worse(visits, status):
    seldom = mode_of(0.2, 0.2, visits=visits, name="mode 2", place=-1.5)
    check = checks_of([mode_of(0.8, 0.8), seldom])[1]
    assert check.status == status
    assert check.name == "visits of mode 2"
    assert ("mode 2 (x = [-1.5]) holds about 20%" in check.advice) == (status != "ok")


def test_a_light_mode_need_not_be_visited():
    light = mode_of(0.01, 0.01, visits=0, name="mode 2")
    assert [check.status for check in checks_of([mode_of(0.99, 0.99), light])] == ["ok", "ok"]


def test_where_importance_sampling_knows_nothing_the_curvature_speaks():
    heavy = mode_of(0.0, 0.001, error=0.001, visits=0, by_laplace=0.3, name="mode 2", place=-1.5)
    assert checks_of([mode_of(1.0, 1.0), heavy])[1].status == "failed"
    light = replace(heavy, mass_by_laplace=1e-4)
    assert checks_of([mode_of(1.0, 1.0), light])[1].status == "ok"


def test_where_no_draw_of_the_fits_is_on_the_support_the_total_says_nothing():
    (visits,) = checks_of(GOOD, known_mass=-np.inf, error=np.inf)
    assert visits.name == "visits of mode 1"
