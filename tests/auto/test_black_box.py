"""The black box: a target and a seed, nothing else, and an answer that is right or says that it is not."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from studies.study_problems import HARD, STUDY, gaussian_mixture, two_components
from tests.problems import gaussian
from thermocline.bases import Mixture

QUIET: dict[str, Any] = {"progress": False}
ROUNDING = 1e-6  # where a base fits to the last digit, the error is of that order too


def assert_right(result: tc.Result, truth: float) -> None:
    assert abs(result.log_evidence.value - truth) < 4 * result.log_evidence.standard_error + ROUNDING


def unpassed(result: tc.Result) -> list[tuple[str, float, str]]:
    return [(check.name, check.value, check.advice) for check in result.checks if not check.passed]


# 0.8 N(a, I) + 0.2 N(-a, I/4) in 20 dimensions, a of length 6, times e^37.2


@pytest.fixture(scope="module")
def narrow_and_wide() -> tc.Result:
    return tc.sample(STUDY["two 20-D"]().target, seed=0, **QUIET)


@pytest.mark.slow
def test_a_narrow_mode_beside_a_wide_one_in_20_dimensions(narrow_and_wide):
    assert_right(narrow_and_wide, 37.2)
    assert narrow_and_wide.log_evidence.standard_error <= 0.05
    assert narrow_and_wide.verdict == "ok", unpassed(narrow_and_wide)
    problem = STUDY["two 20-D"]()
    share = narrow_and_wide.expectation(problem.function)
    assert abs(share.value - problem.mean) < 4 * share.standard_error + ROUNDING


@pytest.mark.slow
def test_its_modes_have_their_masses_two_ways(narrow_and_wide):
    centre = STUDY["two 20-D"]().target.data["means"][0]
    assert [mode.name for mode in narrow_and_wide.modes] == ["mode 1", "mode 2"]
    for mode, mass, place in zip(narrow_and_wide.modes, (0.8, 0.2), (centre, -centre), strict=True):
        np.testing.assert_allclose(mode.location["x"], place, atol=1e-2)
        for estimate in (mode.mass, mode.mass_by_importance):
            assert abs(estimate.value - mass) < 4 * estimate.standard_error + ROUNDING
        assert mode.visits >= 10


@pytest.mark.slow
def test_the_summary_tells_what_was_done(narrow_and_wide):
    notes = " ".join(narrow_and_wide.summary().split())
    assert "Found 2 modes" in notes
    assert narrow_and_wide.cost.evaluations.base > 0


def with_moment_matched_base(problem: Any, **options: Any) -> tc.Result:
    """One Gaussian over both modes, as the paper proposes."""
    first, second = problem.target.data["means"]
    narrow = 1 / problem.target.data["whiteners"][1, 0, 0] ** 2
    covariance = (0.8 + 0.2 * narrow) * np.eye(20) + 0.16 * np.outer(first - second, first - second)
    base = tc.Gaussian.from_covariance(0.8 * first + 0.2 * second, covariance)
    return tc.sample(problem.target, base=base, seed=0, **QUIET, **options)


@pytest.mark.slow
def test_a_gaussian_base_forced_on_it_is_right():
    """Chains enter the narrow mode from above, a few dozen times in a thousand draws each: it is no longer missed."""
    problem = STUDY["two 20-D"]()
    result = with_moment_matched_base(problem, num_draws=1000)
    assert_right(result, 37.2)
    assert 0.02 < result.log_evidence.standard_error < 0.1
    share = result.expectation(problem.function)
    assert abs(share.z_score(problem.mean)) < 4
    assert 10 < result.modes[1].visits < 1000


@pytest.mark.slow
def test_a_gaussian_base_forced_on_a_narrower_mode_is_not_ok():
    """Chains never enter a mode of a quarter of the width from above; the table of modes knows it, and names it."""
    result = with_moment_matched_base(two_components(20, 0.8, 6.0, 0.25, 37.2))
    assert result.verdict != "ok"
    named = [check for check in result.checks if not check.passed and "mode" in check.name]
    assert named, unpassed(result)
    assert any(f"{mode.name} (x = " in check.advice for check in named for mode in result.modes)


def test_a_base_on_one_of_two_modes_is_failed_and_the_other_named():
    """The wide one, and exactly: chains never leave it, and nothing but the table of modes knows better."""
    problem = STUDY["two 10-D"]()
    wide = tc.Gaussian.from_covariance(problem.target.data["means"][0], np.eye(10))
    result = tc.sample(problem.target, base=wide, seed=0, num_chains=4, num_draws=200, num_warmup=200, **QUIET)
    assert abs(result.log_evidence.value - problem.log_evidence - np.log(0.6)) < 0.01
    assert result.verdict == "failed"
    lost = next(check for check in result.checks if check.name == "log Z covers the known modes (p)")
    assert "which have lost it" in lost.advice
    assert [mode.visits > 0 for mode in result.modes] == [True, False]
    assert result.modes[1].mass_by_importance.standard_error < 0.1
    assert abs(result.modes[1].mass_by_importance.z_score(0.4 / 0.6)) < 4  # of the evidence, which lacks it


# One Gaussian mode


@pytest.fixture(scope="module")
def single() -> tc.Result:
    return tc.sample(gaussian(5).target, seed=0, num_draws=200, **QUIET)


@pytest.mark.slow
def test_a_single_gaussian_does_not_pay_for_a_mixture(single):
    problem = gaussian(5)
    assert isinstance(single.continuation.base, tc.Gaussian)
    assert_right(single, problem.log_evidence)
    assert single.verdict == "ok", unpassed(single)
    assert len(single.modes) == 1
    mean = single.expectation(problem.function)
    assert abs(mean.z_score(problem.mean)) < 4
    print(f"gradients spent: {single.cost.evaluations.total}")
    assert single.cost.evaluations.total < 3e5


# Two modes in two dimensions: cheap, for what must hold bit for bit

TWO = gaussian_mixture(
    "two 2-D",
    np.array([0.35, 0.65]),
    np.array([[4.0, -1.0], [-3.0, 2.0]]),
    np.array([[[1.0, 0.3], [0.3, 0.5]], [[0.3, -0.2], [-0.2, 0.6]]]),
    -6.0,
)


@pytest.fixture(scope="module")
def short() -> tc.Result:
    return tc.sample(TWO.target, seed=7, num_draws=100, **QUIET)


def same_draws(first: tc.Result, second: tc.Result) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(first.draws, second.draws, strict=True))


def test_two_modes_get_a_mixture(short):
    assert isinstance(short.continuation.base, Mixture)
    assert short.continuation.base.num_components == 2
    assert_right(short, -6.0)
    assert [mode.name for mode in short.modes] == ["mode 1", "mode 2"]
    for mode, mass in zip(short.modes, (0.65, 0.35), strict=True):
        assert abs(mode.mass_by_importance.value - mass) < 4 * mode.mass_by_importance.standard_error + ROUNDING


@pytest.mark.slow
def test_one_seed_one_answer_and_another_seed_another(short):
    again = tc.sample(TWO.target, seed=7, num_draws=100, **QUIET)
    assert same_draws(again, short)
    assert again.log_evidence == short.log_evidence
    assert again.checks == short.checks
    assert again.cost.evaluations.total == short.cost.evaluations.total
    other = tc.sample(TWO.target, seed=8, num_draws=100, **QUIET)
    assert not np.any(other.draws.position == short.draws.position)
    assert_right(other, -6.0)


@pytest.mark.slow
def test_extending_equals_the_longer_run_and_shrinks_the_error():
    """On a banana, whose base is no more than fair: the errors are real."""
    problem = STUDY["banana"]()
    short, longer = (tc.sample(problem.target, seed=7, num_draws=number, **QUIET) for number in (500, 2000))
    extended = tc.extend(short, problem.target, num_draws=1500, **QUIET)
    assert same_draws(extended, longer)
    assert short.log_evidence.standard_error > 1e-3
    assert extended.log_evidence == longer.log_evidence
    states = jax.tree.leaves(extended.continuation.states), jax.tree.leaves(longer.continuation.states)
    assert all(np.array_equal(one, other) for one, other in zip(*states, strict=True))
    ratio = extended.log_evidence.standard_error / short.log_evidence.standard_error
    dof = min(extended.log_evidence.dof, short.log_evidence.dof)
    assert abs(np.log(2 * ratio)) < 4 / np.sqrt(dof)  # half the error for four times the work
    assert_right(extended, problem.log_evidence)
    assert [mode.name for mode in extended.modes] == [mode.name for mode in longer.modes]


@pytest.mark.slow
def test_the_error_asked_for_is_reached():
    problem = STUDY["banana"]()
    result = tc.sample(problem.target, seed=3, target_error=0.004, **QUIET)
    assert result.log_evidence.standard_error <= 0.004
    assert result.draws.log_ratio.shape[1] > 1000  # more than a run begins with
    assert_right(result, problem.log_evidence)
    assert result.verdict == "ok", unpassed(result)


# Where the right verdict may be another


@pytest.mark.slow
def test_a_density_unbounded_though_proper_gets_a_verdict():
    problem = STUDY["hierarchical (centred)"]()
    result = tc.sample(problem.target, seed=0, **QUIET)
    assert np.isfinite(result.log_evidence.value)
    assert result.verdict != "ok" or abs(result.log_evidence.z_score(problem.log_evidence)) < 4


@pytest.mark.slow
def test_an_improper_target_fails_within_its_budget():
    hard = HARD["flat direction"]()
    result = tc.sample(hard.target, seed=0, **QUIET)
    assert result.verdict == "failed"
    assert result.cost.evaluations.total < 2e7
    assert all(check.advice for check in result.checks if check.status == "failed")


@pytest.mark.slow
def test_fifty_draws_are_not_ok():
    hard = HARD["50 draws"]()
    result = tc.sample(hard.target, seed=0, num_chains=1, num_draws=50, num_warmup=50, **QUIET)
    assert result.verdict != "ok"


@pytest.mark.slow
def test_positions_of_any_structure_and_one_dimension():
    def log_density(position):
        return -0.5 * (position["a"] - 2.0) ** 2 / 9 + 1.5

    result = tc.sample(tc.Target(log_density, {"a": np.float64(0.1)}), seed=0, num_draws=100, **QUIET)
    assert_right(result, 1.5 + 0.5 * np.log(2 * np.pi * 9))
    assert set(result.modes[0].location) == {"a"}
    assert float(result.modes[0].location["a"]) == pytest.approx(2.0, abs=1e-3)
    assert jnp.ones(1).dtype == jnp.float32
