"""A result in tables for people, the answer first, then what it rests on; and results as JSON for scripts."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from thermocline.bases import base_name
from thermocline.checks import Check, Verdict
from thermocline.estimators.convergence import round_trips
from thermocline.estimators.stages import has_stages, stepping_stones, swap_rejections
from thermocline.records import Estimate, Mode
from thermocline.results.many import ManyResults
from thermocline.results.result import Result
from thermocline.results.weighing import by_component
from thermocline.support.tables import Section
from thermocline.target import describe

MOST_COMPONENTS = 20
MOST_MODES = 12
MEANING: dict[Verdict, str] = {
    "ok": "nothing was found against this run",
    "suspect": "look at the checks below before using these numbers",
    "failed": "do not use these numbers; the checks below say why",
}


def tables(result: Result) -> list[Section]:
    """All that the summary says, in order."""
    of_result = (answer_table, modes_table, run_table, parameters_table)
    return [*(table(result) for table in of_result), checks_table(result.checks)]


def answer_table(result: Result) -> Section:
    rows = [("verdict", f"{result.verdict}: {MEANING[result.verdict]}")]
    estimate = result.log_evidence
    if estimate is None:
        why = next((check.advice for check in result.checks if check.name == "evidence"), "this method estimates none.")
        return Section("", (), [*rows, ("log Z", f"none: {why}")])
    rows.append(("log Z", with_interval(estimate)))
    rows += [("caveat", caveat) for caveat in result.caveats]
    if result.is_joint:
        divergences = f"base to target {result.kl_base_to_target}, target to base {result.kl_target_to_base}"
        rows.append(("KL divergence", divergences))
    if has_stages(result.draws):
        rows += _stages(result)
    if result.is_joint or has_stages(result.draws):
        trips = round_trips(result.draws)
        rows.append(("round trips", f"{trips.sum()} between base and target, {trips.min()} to {trips.max()} a chain"))
    return Section("", (), rows)


def with_interval(estimate: Estimate, digits: int = 6) -> str:
    lower, upper = estimate.interval(0.95)
    return f"{estimate}  ({estimate.dof:.0f} degrees of freedom; 95% interval {lower:.{digits}g} to {upper:.{digits}g})"


def _stages(result: Result) -> list[tuple[str, str]]:
    """What replicas say: both stepping stones, and the barrier that swaps have to overcome."""
    (up, down), rejections = stepping_stones(result.draws, result.log_zeta), swap_rejections(result.draws)
    barrier = (
        f"{rejections.sum():.2f} over {len(rejections) + 1} temperatures; swaps of neighbours are rejected with "
        f"probability {rejections.min():.2f} to {rejections.max():.2f}"
    )
    both = f"up from the base {up}, down from the target {down}"
    return [("stepping stones", both), ("barrier", barrier)]


def modes_table(result: Result) -> Section:
    """Did I find all the modes?"""
    shown = result.modes[:MOST_MODES]
    rows = [
        (mode.name, describe(mode.location, longest=3), str(mode.mass), _by_importance(mode), str(mode.visits))
        for mode in shown
    ]
    notes = []
    if len(result.modes) > len(shown):
        notes.append(f"and {len(result.modes) - len(shown)} more, in result.modes.")
    if result.mode_table is not None:
        notes.append(str(result.mode_table.search))
    columns = ("", "highest at", "mass (chains)", "mass (own fit)", "visits")
    return Section("Modes", columns, rows, tuple(notes))


def _by_importance(mode: Mode) -> str:
    """The mass by importance sampling, where it is known at all."""
    estimate = mode.mass_by_importance
    is_known = np.isfinite(estimate.value) and estimate.standard_error <= 0.5 * estimate.value
    return str(estimate) if is_known else "unknown"


def run_table(result: Result) -> Section:
    info, base = result.info, result.continuation.base
    chains, draws = result.draws.log_ratio.shape
    evaluations, seconds = info.cost.evaluations, info.cost.seconds
    rows = [
        ("method", info.method),
        ("base", base_name(base)),
        ("draws", f"{chains} chains x {draws}"),
        ("evaluations", f"{evaluations.total:,} ({by_name(evaluations.shown(), ',')})"),
        ("seconds", f"{seconds.total:.1f} ({by_name(seconds.shown(), '.1f')})"),
        ("seed", f"{info.seed}, {info.precision}"),
        ("versions", by_name(info.versions, "")),
    ]
    return Section("Run", (), rows, info.notes)


def by_name(numbers: dict[str, Any], form: str) -> str:
    return ", ".join(f"{name} {number:{form}}" for name, number in numbers.items())


def parameters_table(result: Result) -> Section:
    rows = []
    for name, values in result.components(MOST_COMPONENTS).items():
        own = result.weighing.describe(values)
        spread = (f"{value:.4g}" for value in (own.deviation, own.low, own.high))
        rows.append((name, str(own.mean), *spread, f"{own.effective_size:.0f}", f"{own.r_hat:.3f}"))
    left = len(by_component(result.parameters)) - len(rows)
    notes = (f"and {left} more; all are in result.parameters and result.expectation.",) if left else ()
    return Section("Parameters under the target", ("", "mean", "sd", "5%", "95%", "ESS", "R-hat"), rows, notes)


def checks_table(checks: tuple[Check, ...]) -> Section:
    rows = [(check.name, _number(check.value), _number(check.limit), check.status) for check in checks]
    advice = (f"{check.name}: {check.meaning} {check.advice} See {check.link}" for check in checks if not check.passed)
    return Section("Checks", ("", "value", "limit", "status"), rows, tuple(" ".join(line.split()) for line in advice))


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4g}"


def as_dict(result: Result | ManyResults) -> dict[str, Any]:
    """The answer and what it rests on, of one target or of many."""
    answer = result.log_evidence
    of_all = {"verdict": result.verdict, "log_evidence": None if answer is None else vars(answer)}
    own = _of_many(result) if isinstance(result, ManyResults) else _of_one(result)
    return of_all | {"checks": [vars(check) for check in result.checks]} | own


def _of_one(result: Result) -> dict[str, Any]:
    """Caveats, modes, the first parameters and what was run."""
    chains, draws = result.draws.log_ratio.shape
    means = {name: result.weighing.mean(pair) for name, pair in result.components(MOST_COMPONENTS).items()}
    return {
        "caveats": list(result.info.caveats),
        "modes": [vars(mode) for mode in result.modes],
        "parameters": {
            name: {"mean": mean.value, "standard_error": mean.standard_error} for name, mean in means.items()
        },
        "run": {"chains": chains, "draws": draws} | asdict(result.info),
    }


def _of_many(results: ManyResults) -> dict[str, Any]:
    """Each target's answer, and what was run."""
    runs, each, bias = results.runs, results.log_evidences, results.bias
    return {
        "verdicts": results.verdicts,
        "log_evidences": None if each is None else vars(each),
        "bias": None if bias is None else vars(bias),
        "targets": results.index,
        "run": {
            "chains": runs.num_chains,
            "draws": runs.known.num_draws[results.index],
            "method": runs.settings.method_name,
            "seed": runs.settings.seed,
        },
    }


def to_json(value: Any) -> str:
    """Strict JSON: what is not a finite number is null."""
    return json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Estimate):
        return _plain(vars(value))
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(np.asarray(value).tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)
