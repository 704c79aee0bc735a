"""A result in tables for people, the answer first, then what it rests on; and results as JSON for scripts."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from thermocline.bases import base_name
from thermocline.checks import Check, Verdict
from thermocline.estimators.convergence import round_trips
from thermocline.estimators.stages import has_stages, stepping_stones, swap_rejections
from thermocline.records import Estimate, Mode, Phases
from thermocline.results.many import ManyResults
from thermocline.results.result import Result
from thermocline.results.weighing import by_component
from thermocline.support.tables import Section

MOST_COMPONENTS = 20
MOST_MODES = 12
MOST_TELLING = 3  # parameters by which modes are described
ROUNDING = 1e-6  # nats
MEANING: dict[Verdict, str] = {
    "ok": "nothing was found against this run",
    "suspect": "look at the checks below before using these numbers",
    "failed": "do not use these numbers; the checks below say why",
}


def tables(result: Result) -> list[Section]:
    """All that the summary says, in order."""
    of_result = (answer_table, modes_table, run_table, parameters_table)
    made = [*(table(result) for table in of_result), checks_table(result.checks)]
    return [table for table in made if table.rows]


def tables_of_mode(result: Result, number: int) -> list[Section]:
    """All that the summary says of one mode."""
    parameters, table = parameters_table(result, number), modes_table(result)
    row = _mode_row(result.modes[number - 1], telling(result.modes))
    return [table._replace(title="", rows=[row], notes=()), parameters]


def answer_table(result: Result) -> Section:
    rows = [("verdict", f"{result.verdict}: {MEANING[result.verdict]}")]
    estimate = result.log_evidence
    if estimate is None:
        why = next((check.advice for check in result.checks if check.name == "evidence"), "this method estimates none.")
        return Section("", (), [*rows, ("log Z", f"none: {why}")])
    rows.append(("log Z", with_interval(estimate)))
    rows += [("partial", result.info.cut_short)] if result.info.cut_short else []
    rows += [("caveat", caveat) for caveat in result.caveats]
    if result.is_joint:
        there, back = (divergence(estimate) for estimate in (result.kl_base_to_target, result.kl_target_to_base))
        rows.append(("KL divergence", f"base to target {there}, target to base {back}"))
    if has_stages(result.draws):
        rows += _stages(result)
    if result.is_joint or has_stages(result.draws):
        trips = round_trips(result.draws)
        rows.append(("round trips", f"{trips.sum()} between base and target, {trips.min()} to {trips.max()} a chain"))
    return Section("", (), rows)


def with_interval(estimate: Estimate) -> str:
    """An estimate with its interval, to as many digits as the error has."""
    if estimate.status == "unknown":
        return str(estimate)
    lower, upper = interval_of(estimate)
    degrees = f"{estimate.dof:.0f} degrees of freedom; " if np.isfinite(estimate.dof) else ""
    return f"{estimate}  ({degrees}95% interval {lower} to {upper})"


def interval_of(estimate: Estimate) -> tuple[str, str]:
    """The ends of the 95% interval, to as many digits as the error has."""
    low, high = (str(Estimate(end, estimate.standard_error, np.inf)) for end in estimate.interval(0.95))
    return low.split(" ±")[0], high.split(" ±")[0]


def divergence(estimate: Estimate) -> str:
    """A KL divergence is never negative: where draws cannot tell it from zero, what it is at most."""
    if estimate.status == "unknown" or estimate.value > max(estimate.standard_error, ROUNDING):
        return str(estimate)
    return f"at most {max(estimate.interval()[1], estimate.standard_error, ROUNDING):.1g}"


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
    met, names = met_modes(result), telling(result.modes)
    shown, unmet = met[:MOST_MODES], len(result.modes) - len(met)
    rows = [_mode_row(mode, names) for mode in shown]
    notes = [_highest(shown[:MOST_TELLING], names)] if shown else []
    if unmet:
        notes.insert(0, f"{unmet} more {'was' if unmet == 1 else 'were'} found by the search, in which no draw fell.")
    if len(met) > len(shown):
        notes.insert(0, f"and {len(met) - len(shown)} lighter ones, in result.modes.")
    if result.mode_table is not None:
        notes.append(str(result.mode_table.search))
    columns = ("", "mass (chains)", "mass (own fit)", "visits", *(f"{name}: mean (sd)" for name in names))
    return Section("Modes", columns, rows, tuple(notes))


def met_modes(result: Result) -> tuple[Mode, ...]:
    """Those of which something is known: that draws fell in, or that their own fit can weigh."""
    return tuple(mode for mode in result.modes if mode.mass.value > 0 or _is_known(mode.mass_by_importance))


def _mode_row(mode: Mode, names: list[str]) -> tuple[str, ...]:
    mass = str(mode.mass) if mode.mass.value > 0 else "not visited"
    means, deviations = by_component(mode.mean, 0), by_component(mode.deviation, 0)
    spreads = (_spread(means[name], deviations[name]) for name in names)
    return mode.name, mass, _by_importance(mode), f"{mode.visits:,}", *spreads


def telling(modes: tuple[Mode, ...]) -> list[str]:
    """The few numbers among the parameters in which the modes differ most, by their spread within."""
    if not modes:
        return []
    means, deviations = ([by_component(getattr(mode, kind), 0) for mode in modes] for kind in ("mean", "deviation"))
    apart = {}
    for name in means[0]:
        between, within = (np.array([float(each[name]) for each in table]) for table in (means, deviations))
        known = np.isfinite(between + within)
        spread = between[known].std() if known.any() else 0.0
        apart[name] = spread / max(np.mean(within[known]), 1e-300) if spread > 0 else 0.0
    chosen = sorted(apart, key=lambda name: -apart[name])[:MOST_TELLING]
    return [name for name in apart if name in chosen]


def _spread(mean: Any, deviation: Any) -> str:
    """Mean and standard deviation of a mode, to as many digits as the latter has."""
    if not np.isfinite(mean):
        return "no draws"
    return str(Estimate(float(mean), float(deviation), np.inf)).replace(" ± ", " (") + (")" if deviation > 0 else "")


def _highest(modes: tuple[Mode, ...], names: list[str]) -> str:
    """Where the density itself is highest, which means little to people: a footnote."""
    tops = [(mode.name, by_component(mode.location, 0)) for mode in modes]
    parts = [f"{name} at " + ", ".join(f"{own} = {float(top[own]):.4g}" for own in names) for name, top in tops]
    return f"The density of the unconstrained parameters is highest in {'; in '.join(parts)}."


def _by_importance(mode: Mode) -> str:
    """The mass by importance sampling, where it is known at all."""
    return str(mode.mass_by_importance) if _is_known(mode.mass_by_importance) else "unknown"


def _is_known(mass: Estimate) -> bool:
    return bool(np.isfinite(mass.value) and mass.standard_error <= 0.5 * mass.value)


def run_table(result: Result) -> Section:
    info, base = result.info, result.continuation.base
    chains, draws = result.draws.log_ratio.shape
    evaluations, seconds = info.cost.evaluations, info.cost.seconds
    rows = [
        ("method", info.method),
        ("base", base_name(base)),
        ("draws", f"{chains} chains x {draws}"),
        ("evaluations", f"{evaluations.total:,} ({by_name(evaluations.shown(), ',')})"),
        ("seconds", f"{seconds.total:.1f} ({by_name(long_phases(seconds), '.1f')})"),
        ("seed", f"{info.seed}, {info.precision}"),
        ("versions", by_name(info.versions, "")),
    ]
    return Section("Run", (), rows, info.notes)


def long_phases(seconds: Phases) -> dict[str, float]:
    """The phases that took a time worth printing."""
    return {name: taken for name, taken in seconds.shown().items() if taken >= 0.05}


def by_name(numbers: dict[str, Any], form: str) -> str:
    return ", ".join(f"{name} {number:{form}}" for name, number in numbers.items())


def parameters_table(result: Result, mode: int | None = None) -> Section:
    """Means, spreads and quantiles under the target, or under one of its modes."""
    weighing = result.weighing if mode is None else result.weighing_of(mode)
    rows = []
    for name, values in result.components(MOST_COMPONENTS).items():
        own = weighing.describe(values)
        spread = (f"{value:.4g}" for value in (own.deviation, own.low, own.high))
        rows.append((name, str(own.mean), *spread, f"{own.effective_size:,.0f}", f"{own.r_hat:.3f}"))
    left = len(by_component(result.parameters)) - len(rows)
    notes = (f"and {left} more; all are in result.parameters and result.expectation.",) if left else ()
    title = "Parameters under the target" if mode is None else f"Parameters within mode {mode}"
    return Section(title, ("", "mean", "sd", "5%", "95%", "ESS", "R-hat"), rows, notes)


def checks_table(checks: tuple[Check, ...]) -> Section:
    rows = [(check.name, number_of(check.value), number_of(check.limit), check.status) for check in checks]
    advice = (f"{check.name}: {check.meaning} {check.advice} See {check.link}" for check in checks if not check.passed)
    return Section("Checks", ("", "value", "limit", "status"), rows, tuple(" ".join(line.split()) for line in advice))


def number_of(value: float) -> str:
    """A check's value or limit; what knows no bound is only said to be far beyond it."""
    if np.isnan(value):
        return ""
    if np.isinf(value):
        return "far above" if value > 0 else "far below"
    small = 0 < abs(value) < 1e-3
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1g}" if small else f"{value:.4g}"


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
            "draws": runs.by_target.num_draws[results.index],
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
