"""Every check passes where it should and fails where it should."""

import numpy as np
import pytest

import thermocline as tc
from tests.problems import bimodal, gaussian
from thermocline.checks import CHECKS, Check, verdict_of
from thermocline.checks.check import at_least, at_most
from thermocline.estimators.convergence import (
    are_explored,
    effective_size,
    heavy_share,
    pareto_k,
    r_hat,
    round_trips,
    tours,
)
from thermocline.records import Draws, TailIndex


@pytest.fixture(scope="module")
def good():
    problem = gaussian(3)
    return tc.sample(problem.target, base=problem.base, seed=0, progress=False, search=False)


def spoiled(result, **changes):
    """The same result with other draws."""
    return result._context()._replace(draws=result.draws._replace(**changes))


def with_base(context, **changes):
    """The same with other draws of the base."""
    return context._replace(base=context.base._replace(**changes))


def statuses(context, name):
    return {check.name: check.status for check in CHECKS[name](context)}


def test_a_good_run_passes_every_check(good):
    assert good.verdict == "ok"
    assert len(good.checks) >= 12
    assert all(check.advice == "" and check.meaning.endswith((".", "?")) for check in good.checks)


def test_limits_have_two_levels_and_nan_fails():
    assert [at_least("a", value, 10, 5, "b.").status for value in (10, 7, 4, np.nan)] == [
        "ok",
        "suspect",
        "failed",
        "failed",
    ]
    assert [at_most("a", value, 10, 15, "b.").status for value in (10, 12, 16, np.nan)] == [
        "ok",
        "suspect",
        "failed",
        "failed",
    ]
    checks = tuple(Check("a", 0.0, 0.0, status, "") for status in ("ok", "suspect"))
    assert verdict_of(checks) == "suspect"


def test_chains_stuck_at_one_end_make_no_round_trips(good):
    draws = good.draws
    order = np.argsort(draws.log_weight_base, axis=None)  # the first chains at the target, the last at the base
    apart = {
        name: getattr(draws, name).ravel()[order].reshape(draws.log_ratio.shape)
        for name in ("log_ratio", "log_weight_base", "log_weight_target", "inverse_temperature")
    }
    context = spoiled(good, **apart, jump_acceptance=np.zeros_like(draws.jump_acceptance))
    assert statuses(context, "round trips") == {"returns to the base": "failed"}
    assert "failed" in statuses(context, "r-hat").values()
    assert "failed" in statuses(context, "agreement").values()


def test_a_base_that_is_the_target_has_no_error_to_know(good):
    def degrees(error, dof):
        return statuses(good._context()._replace(log_evidence=tc.Estimate(0.0, error, dof)), "error")

    name = "degrees of freedom of the error"
    assert degrees(0.0, 0.0) == {name: "ok"}
    assert degrees(0.1, 2.0) == {name: "failed"}
    assert degrees(np.nan, 30.0) == {name: "failed"}


def test_a_shifted_base_is_noticed(good):
    context = good._context()
    shifted = with_base(context, mean=context.base.mean + 0.5 * np.sqrt(context.base.variance))
    assert statuses(shifted, "base moments") == {"base moments (p)": "failed"}
    other_law = with_base(context, log_ratio=context.base.log_ratio + 3.0)
    assert statuses(other_law, "base ratio") == {"log ratio under the base (p)": "failed"}


def test_draws_of_the_base_that_miss_what_chains_found_are_noticed(good):
    context, name = good._context(), "base and chains agree on log Z (p)"
    assert statuses(context, "states") == {name: "ok"}
    states = context.states
    low = states._replace(log_ratio=(states.log_ratio[0] - 1.0, states.log_ratio[1]))
    assert statuses(context._replace(states=low), "states") == {name: "failed"}
    assert statuses(context._replace(states=None), "states") == {}


def test_a_base_is_compared_by_its_mean_and_quartiles_whatever_its_tails(good):
    context = good._context()
    centre, position = context.base.mean, context.base.position
    assert statuses(with_base(context, mean=centre + 2.0), "base moments") == {"base moments (p)": "failed"}
    wider = with_base(context, position=centre + 1.6 * (position - centre))
    assert statuses(wider, "base moments") == {"base moments (p)": "failed"}
    far = np.concatenate([position, np.full((3, position.shape[1]), 50.0)])
    heavy = with_base(context, position=far, log_ratio=np.append(context.base.log_ratio, np.zeros(3)))
    assert statuses(heavy, "base moments") == {"base moments (p)": "ok"}


def test_rounding_of_a_constant_r_is_no_difference(good):
    rounding = 1e-14 * np.arange(good.draws.log_ratio.size).reshape(good.draws.log_ratio.shape)
    context = spoiled(good, log_ratio=rounding)
    context = with_base(context, log_ratio=np.zeros_like(context.base.log_ratio))
    assert statuses(context, "base ratio") == {"log ratio under the base (p)": "ok"}


def test_stays_beyond_the_base_are_counted_by_their_weight():
    """Two chains: one stay of three draws, and three of one."""
    r = np.array([[5.0, 5.0, 5.0, 0.0, 0.0, 5.0, 0.0, 0.0], [0.0, 5.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0]])
    draws = Draws(*[np.zeros_like(r)] * len(Draws._fields))._replace(log_ratio=r, inverse_temperature=np.ones_like(r))
    share, number = tours(draws, 0.0)
    assert share == pytest.approx(6 / 16)
    assert number == pytest.approx(6**2 / (3**2 + 1 + 1 + 1))
    assert tours(draws, 6.0) == (0.0, 0.0)
    amid = np.where(np.arange(8) == 1, 0.0, np.ones_like(r))  # the base, amid the first stay
    assert tours(draws._replace(inverse_temperature=amid), 0.0)[1] == pytest.approx(6**2 / (2**2 + 1 + 1 + 1 + 1))


def test_what_many_short_stays_hold_is_explored_and_what_a_long_one_holds_is_not():
    """Half of all draws lie beyond the base's reach: in 200 stays of one draw, or in one of 200."""
    scattered, lone = np.zeros((2, 1, 400))
    scattered[:, ::2], lone[:, :200] = 5.0, 5.0
    blank = Draws(*[np.zeros((1, 400))] * len(Draws._fields))._replace(inverse_temperature=np.ones((1, 400)))
    assert are_explored(blank._replace(log_ratio=scattered), 0.0, 0.05)
    assert not are_explored(blank._replace(log_ratio=lone), 0.0, 0.05)
    assert are_explored(blank._replace(log_ratio=lone), 0.0, 0.51)  # what holds less than the error


def test_a_lone_stay_beyond_the_base_is_noticed(good):
    num_chains, num_draws = good.draws.log_ratio.shape
    log_ratio = np.zeros((num_chains, num_draws))
    assert CHECKS["thin base"](spoiled(good, log_ratio=log_ratio)) == []
    log_ratio[0] = 50.0
    level = np.zeros_like(log_ratio)
    context = spoiled(
        good, log_ratio=log_ratio, log_weight_target=level, log_weight_base=level, inverse_temperature=level + 1
    )
    assert statuses(context, "thin base") == {"visits where the base is thin": "failed"}


def test_an_evidence_below_its_lower_bound_is_noticed(good):
    context = good._context()._replace(log_zeta=good.log_zeta + 50.0)
    assert list(statuses(context, "lower bound").values()) == ["failed"]


def test_drifting_halves_are_noticed(good):
    half = good.draws.log_ratio.shape[1] // 2
    weights = good.draws.log_weight_target.copy()
    weights[:, half:] += 1.0
    assert statuses(spoiled(good, log_weight_target=weights), "agreement")["halves agree on log Z (p)"] == "failed"


def test_divergent_and_nonfinite_moves_are_noticed(good):
    share = np.zeros_like(good.draws.is_divergent)
    share[:, ::20] = True
    assert statuses(spoiled(good, is_divergent=share), "divergences") == {"divergent moves (share)": "suspect"}
    assert statuses(spoiled(good, is_nonfinite=share), "non-finite") == {"non-finite moves (share)": "suspect"}


def test_a_few_draws_with_all_the_weight_are_noticed(good):
    weights = good.draws.log_weight_target.copy()
    weights[0, :3] += 12.0
    found = statuses(spoiled(good, log_weight_target=weights), "weights")
    assert found["effective weights (target)"] == "failed"


@pytest.mark.slow
def test_fifty_draws_are_not_enough():
    problem = bimodal()
    result = tc.sample(
        problem.target,
        base=problem.base,
        seed=0,
        num_chains=4,
        num_draws=12,
        num_warmup=50,
        progress=False,
        search=False,
    )
    assert result.verdict != "ok"


def test_the_share_of_heavy_weights():
    log_weight = np.log(np.concatenate([np.ones(990), np.full(10, 99.0)])).reshape(4, 250)
    assert heavy_share(log_weight, 10.0) == pytest.approx(0.5)
    assert heavy_share(log_weight, 60.0) == 0
    tail = np.log(np.random.default_rng(0).pareto(1 / 0.7, size=(8, 20_000)) + 1)  # exactly 33.3 ** -0.43 = 0.22
    assert heavy_share(tail, 10.0) == pytest.approx(0.22, abs=0.05)


def test_pareto_k_of_known_tails():
    generator = np.random.default_rng(0)
    for shape in (0.3, 0.9):
        weights = generator.pareto(1 / shape, size=(8, 5000)) + 1
        assert pareto_k(np.log(weights)) == pytest.approx(shape, abs=4 * (1 + shape) / np.sqrt(4000))
    assert pareto_k(np.log(generator.uniform(0.5, 1.0, size=(8, 1000)))) < 0
    alone = np.full(1000, -300.0)
    alone[7] = 0.0  # all that counts
    assert pareto_k(alone) == np.inf
    assert pareto_k(np.log(np.repeat([1.0, 2.0], 500))) == -np.inf  # atoms


def test_round_trips_count_whole_journeys():
    ends = np.array([[-1, 0, 1, 0, -1, 1, 1, -1, 0, 0]])
    nothing = np.zeros_like(ends, float)
    draws = Draws(*[nothing] * len(Draws._fields))._replace(
        log_weight_target=np.where(ends == 1, 0.0, -9.0), log_weight_base=np.where(ends == -1, 0.0, -9.0)
    )
    assert round_trips(draws).tolist() == [2]
    assert round_trips(Draws(*(leaf[:, :3] for leaf in draws))).tolist() == [0]


def test_effective_size_and_r_hat_of_independent_draws():
    values = np.random.default_rng(0).normal(size=(8, 2000))
    assert effective_size(values, np.zeros_like(values)) == pytest.approx(16_000, rel=0.4)
    assert r_hat(values) < 1.01
    assert r_hat(values + np.arange(8)[:, None]) > 2


@pytest.mark.parametrize(("axis", "words"), [((0, 1, 0), "along x[1]"), ((0, 0, 0), "|x|^-3, its dimension")])
def test_a_density_that_does_not_fall_is_named(good, axis, words):
    (check,) = CHECKS["tail index"](good._context()._replace(tail_index=TailIndex(0.7, np.array(axis, float))))
    assert check.status == "failed"
    assert words in check.advice
