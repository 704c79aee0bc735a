"""A result in one table for people: the answer first, then what it rests on."""

from typing import Any

import numpy as np

from thermocline.bases import base_name
from thermocline.checks import Check, Verdict
from thermocline.estimators.convergence import round_trips
from thermocline.estimators.stages import has_stages, stepping_stones, swap_rejections
from thermocline.estimators.two_states import Pair
from thermocline.records import Mode
from thermocline.results.result import Result
from thermocline.support.tables import Section, html_of, sections_text
from thermocline.target import describe

MOST_COMPONENTS = 20
MOST_MODES = 12
MEANING: dict[Verdict, str] = {
    "ok": "nothing was found against this run",
    "suspect": "look at the checks below before using these numbers",
    "failed": "do not use these numbers; the checks below say why",
}


def summary_text(result: Result) -> str:
    """The summary as plain text, without colour codes, whatever the terminal."""
    return sections_text(sections(result))


def summary_html(result: Result) -> str:
    """The summary as a piece of HTML that needs nothing from outside."""
    return html_of(*sections(result))


def sections(result: Result) -> list[Section]:
    """All that the summary says, in order."""
    tables = [answer_table(result), modes_table(result), run_table(result), parameters_table(result)]
    return [*tables, checks_table(result.checks)]


def answer_table(result: Result) -> Section:
    rows = [("verdict", f"{result.verdict}: {MEANING[result.verdict]}")]
    estimate = result.log_evidence
    if estimate is None:
        why = next((check.advice for check in result.checks if check.name == "evidence"), "this method estimates none.")
        return Section("", (), [*rows, ("log Z", f"none: {why}")])
    lower, upper = estimate.interval(0.95)
    known = f"{estimate.dof:.0f} degrees of freedom; 95% interval {lower:.6g} to {upper:.6g}"
    rows.append(("log Z", f"{estimate}  ({known})"))
    if result.is_joint:
        divergences = f"base to target {result.kl_base_to_target}, target to base {result.kl_target_to_base}"
        rows.append(("KL divergence", divergences))
    if has_stages(result.draws):
        rows += _stages(result)
    if result.is_joint or has_stages(result.draws):
        trips = round_trips(result.draws)
        rows.append(("round trips", f"{trips.sum()} between base and target, {trips.min()} to {trips.max()} a chain"))
    return Section("", (), rows)


def _stages(result: Result) -> list[tuple[str, str]]:
    """What replicas say: both stepping stones, and the barrier that swaps have to overcome."""
    (up, down), rejections = stepping_stones(result.draws, result.log_zeta), swap_rejections(result.draws)
    barrier = (
        f"{rejections.sum():.2f} over {len(rejections) + 1} temperatures; swaps of neighbours are rejected with "
        f"probability {rejections.min():.2f} to {rejections.max():.2f}"
    )
    return [
        ("stepping stones", f"up from the base {up}, down from the target {down}"),
        ("barrier", barrier),
    ]


def modes_table(result: Result) -> Section:
    """The census: did I find all the modes?"""
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
        ("evaluations", f"{evaluations.total:,} ({_by_name(evaluations.shown(), ',')})"),
        ("seconds", f"{seconds.total:.1f} ({_by_name(seconds.shown(), '.1f')})"),
        ("seed", f"{info.seed}, {info.precision}"),
        ("versions", _by_name(info.versions, "")),
    ]
    return Section("Run", (), rows, info.notes)


def _by_name(numbers: dict[str, Any], form: str) -> str:
    return ", ".join(f"{name} {number:{form}}" for name, number in numbers.items())


def parameters_table(result: Result) -> Section:
    rows = [(name, *_described(result, pair)) for name, pair in result.components(MOST_COMPONENTS).items()]
    left = len(component_names(result.parameters)) - len(rows)
    notes = (f"and {left} more; all are in result.parameters and result.expectation.",) if left else ()
    return Section("Parameters under the target", ("", "mean", "sd", "5%", "95%", "ESS", "R-hat"), rows, notes)


def _described(result: Result, values: Pair) -> tuple[str, ...]:
    """Weighted mean ± error, deviation, quantiles, effective size and R-hat of one component."""
    own = result.weighing.describe(values)
    spread = (f"{value:.4g}" for value in (own.deviation, own.low, own.high))
    return str(own.mean), *spread, f"{own.effective_size:.0f}", f"{own.r_hat:.3f}"


def checks_table(checks: tuple[Check, ...]) -> Section:
    rows = [(check.name, _number(check.value), _number(check.limit), check.status) for check in checks]
    advice = tuple(f"{check.name}: {check.advice}" for check in checks if not check.passed)
    return Section("Checks", ("", "value", "limit", "status"), rows, advice)


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4g}"


def component_names(variables: dict[str, np.ndarray]) -> list[str]:
    """Every number among variables with leading axes (chain, draw), as one would index it."""
    each = ((name, place) for name, values in variables.items() for place in np.ndindex(values.shape[2:]))
    return [f"{name}[{','.join(map(str, place))}]" if place else name for name, place in each]
