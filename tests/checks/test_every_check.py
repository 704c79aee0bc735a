"""Every check of the registry once where it must fire and once where it must not, on draws made without a run."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.checks.test_mode_checks import mode_of
from tests.lines import LAWS, SHIFTED, sample_line
from thermocline.checks import CHECKS, Check, Context, explained
from thermocline.checks.many import check_sum, check_targets
from thermocline.estimators.chains import log_evidence
from thermocline.records import BaseDraws, Draws, Estimate, TailIndex

SHAPE = NUM_CHAINS, NUM_DRAWS = 8, 400
ROOT = Path(__file__).parents[2]
CERTAIN = Estimate(0.0, 0.0, np.inf)
REGISTERED = tuple(CHECKS)  # before the examples of the documentation add theirs


@cache
def sound() -> Context:
    """Exact independent draws of a flat law's chains and of the base."""
    sample = sample_line(SHIFTED, LAWS["flat"], 0, 2000, SHAPE)
    (base_ratio, ratio), (_, mass) = sample.log_ratio, sample.log_mass
    uniform = np.random.default_rng(1).uniform(size=SHAPE)
    beta = np.log1p(uniform * np.expm1(ratio)) / ratio  # of density proportional to exp(beta r)
    zeros, never = np.zeros(SHAPE), np.zeros(SHAPE, bool)
    draws = Draws(
        *(sample.chains[..., None], beta, ratio, ratio - mass, -mass),
        *(zeros + 0.9, never, never, np.ones(SHAPE, int), zeros),
        *(np.zeros((*SHAPE, 2, 0)), np.zeros(SHAPE, int)),
    )
    base = BaseDraws(sample.base[:, None], base_ratio, np.array([0.0]), np.array([1.5**2]))
    return Context(
        *(draws, {"x": sample.chains}, True, log_evidence(draws, 0.0, CERTAIN), 0.0, CERTAIN),
        *(np.zeros_like, base, (mode_of(1.0, 1.0),), Estimate(SHIFTED.log_evidence, 0.01, np.inf)),
        tail_index=TailIndex(3.0, np.array([1.0])),
        states=sample.states(),
    )


def with_draws(**changes) -> Context:
    return sound()._replace(draws=sound().draws._replace(**changes))


def with_base(**changes) -> Context:
    return sound()._replace(base=sound().base._replace(**changes))


def untempered(num_chains: int) -> Context:
    return sound()._replace(has_evidence=False, draws=Draws(*(leaf[:num_chains] for leaf in sound().draws)))


def apart(chains: slice, size: float) -> Context:
    """Some chains about another place, with other log ratios."""
    place, ratio = sound().draws.position[..., 0].copy(), sound().draws.log_ratio.copy()
    place[chains] += size
    ratio[chains] += size
    return with_draws(log_ratio=ratio)._replace(parameters={"x": place})


def replicas(log_weight: float) -> Context:
    """An ensemble, whose neighbours swap with the probability exp(2 log_weight)."""
    return with_draws(stage_log_weights=np.full((*SHAPE, 2, 3), log_weight))


def at_rest(num_moves: int) -> Context:
    """Chains that leave their place once in so many moves."""
    place = np.arange(NUM_DRAWS) // num_moves
    return with_draws(position=np.broadcast_to(place[:, None], (*SHAPE, 1)).astype(float))


def steps_of(values: np.ndarray) -> np.ndarray:
    """The same values, each held for fifty draws."""
    return np.repeat(values[:, ::50], 50, axis=1)


def heavy_tail() -> Context:
    weights = np.random.default_rng(2).pareto(1 / 0.9, SHAPE)
    return with_draws(log_weight_target=np.log(weights))


def one_stay() -> Context:
    ratio, zeros = np.zeros(SHAPE), np.zeros(SHAPE)
    ratio[0] = 50.0
    return with_draws(log_ratio=ratio, log_weight_target=zeros, log_weight_base=zeros, inverse_temperature=zeros + 1)


def at_one_end() -> Context:
    """Half of the chains at the target, the others at the base."""
    is_target = np.broadcast_to(np.arange(NUM_CHAINS)[:, None] < 4, SHAPE)
    return with_draws(log_weight_target=np.where(is_target, 0.0, -9.0), log_weight_base=np.where(is_target, -9.0, 0.0))


def refused(acceptance: float) -> Context:
    return with_draws(acceptance=np.full(SHAPE, acceptance))._replace(share_arrived=0.1)


def sometimes(field: str) -> Context:
    return with_draws(**{field: np.broadcast_to(np.arange(NUM_DRAWS) % 20 == 0, SHAPE)})


def base_too_low() -> Context:
    states = sound().states
    assert states is not None
    return sound()._replace(states=states._replace(log_ratio=(states.log_ratio[0] - 1.0, states.log_ratio[1])))


FIRES = {  # a check of the registry: (how to spoil the sound draws, the name of what must fire)
    "evidence": (lambda: untempered(3), "untempered chains"),
    "method": (lambda: sound()._replace(biases=("Steps are not tested.",)), "method is exact"),
    "tail index": (lambda: sound()._replace(tail_index=TailIndex(0.9, np.ones(1))), "tail index of the density"),
    "round trips": (at_one_end, "returns to the base"),
    "occupancy": (lambda: sound()._replace(log_prior=lambda beta: -60.0 * beta), "least visited part of the path"),
    "r-hat": (lambda: apart(slice(4), 9.0), "R-hat (log ratio)"),
    "effective size": (
        lambda: sound()._replace(parameters={"x": steps_of(sound().parameters["x"])}),
        "effective size (x)",
    ),
    "agreement": (
        lambda: with_draws(log_weight_target=sound().draws.log_weight_target + np.arange(8)[:, None]),
        "chains agree on log Z (p)",
    ),
    "weights": (heavy_tail, "Pareto k (target)"),
    "error": (lambda: sound()._replace(log_evidence=Estimate(0.0, 0.1, 2.0)), "degrees of freedom of the error"),
    "base moments": (lambda: with_base(mean=np.array([0.6])), "base moments (p)"),
    "base ratio": (lambda: with_base(log_ratio=sound().base.log_ratio + 3.0), "log ratio under the base (p)"),
    "states": (base_too_low, "base and chains agree on log Z (p)"),
    "lower bound": (lambda: sound()._replace(log_zeta=50.0), "evidence above its lower bound (p)"),
    "modes": (lambda: sound()._replace(modes=(mode_of(1.0, 1.0, visits=2),)), "visits of mode 1"),
    "thin base": (one_stay, "visits where the base is thin"),
    "divergences": (lambda: sometimes("is_divergent"), "divergent moves (share)"),
    "non-finite": (lambda: sometimes("is_nonfinite"), "non-finite moves (share)"),
    "stuck chains": (lambda: at_rest(20), "weight on stuck chains (share)"),
    "unbounded": (lambda: refused(0.05), "moves refused where unbounded (share)"),
    "swaps": (lambda: replicas(-5.0), "swaps rejected (worst pair)"),
}
QUIET = {  # where the sound draws give a check nothing to look at, or it is to see the near miss
    "evidence": lambda: untempered(4),
    "stuck chains": lambda: at_rest(10),
    "unbounded": lambda: refused(0.2),
    "swaps": lambda: replicas(-0.1),
}


def test_every_check_has_its_case():
    assert set(FIRES) == set(REGISTERED)


@pytest.mark.parametrize("name", REGISTERED)
def test_a_check_fires(name):
    spoil, fired = FIRES[name]
    found = {check.name: check for check in CHECKS[name](spoil())}
    assert found[fired].status != "ok"
    assert not np.isnan(found[fired].value)
    assert found[fired].limit != found[fired].value
    assert found[fired].advice.endswith(".")
    assert explained(name, found[fired]).meaning.endswith((".", "?"))
    heading = explained(name, found[fired]).link.removeprefix("docs/diagnosing.md#").replace("-", "[- ]")
    assert re.search(f"^### {heading}$", (ROOT / "docs/diagnosing.md").read_text(), re.IGNORECASE | re.MULTILINE)


@pytest.mark.parametrize("name", REGISTERED)
def test_a_check_does_not_fire_on_sound_draws(name):
    found = CHECKS[name](QUIET.get(name, sound)())
    assert all(check.passed for check in found), found
    assert found or name == "method"  # which has something to say only against a run


def test_checks_of_many_targets_fire_and_do_not():
    ok = Check("returns to the base", 30, 20, "ok", "Fine.")
    failed = Check("returns to the base", 1, 20, "failed", "Draw more.")
    p_values = [Check("halves agree on log Z (p)", value, 1e-3, "suspect", "Longer.") for value in (5e-4, 1e-9)]
    fine = Check("halves agree on log Z (p)", 0.5, 1e-3, "ok", "Fine.")
    suspect = Check("returns to the base", 10, 20, "suspect", "Draw more.")

    def statuses(*checks):
        return [check.status for check in check_targets([(check,) for check in checks])]

    assert statuses(ok, fine) == ["ok", "ok", "ok"]
    assert statuses(fine, failed) == ["failed", "ok", "ok"]
    assert statuses(fine, suspect) == ["ok", "suspect", "ok"]
    assert statuses(ok, *p_values[:1] * 3) == ["ok", "ok", "ok"]  # one in a thousand, among three: chance
    assert statuses(ok, p_values[1]) == ["ok", "ok", "failed"]


@pytest.mark.parametrize(("dof", "status"), [(50.0, "ok"), (5.0, "suspect"), (2.0, "failed")])
def test_few_degrees_of_freedom_of_a_sum_are_noticed(dof, status):
    joint = Estimate(0.0, 1.0, dof)
    first, *_ = check_sum(joint, joint, joint, CERTAIN)
    assert (first.name, first.status) == ("degrees of freedom of the joint error", status)


def test_moves_refused_at_an_edge_are_no_runaways():
    context = refused(0.05)
    off = context.base.log_ratio.copy()
    off[0] = -np.inf
    assert CHECKS["unbounded"](context)
    assert not CHECKS["unbounded"](context._replace(base=context.base._replace(log_ratio=off)))


def test_the_base_end_is_not_asked_of_chains_where_its_own_draws_count():
    names = [{check.name for check in CHECKS["weights"](sound()._replace(states=s))} for s in (None, sound().states)]
    assert names[0] - names[1] == {"effective weights (base)", "Pareto k (base)"}
