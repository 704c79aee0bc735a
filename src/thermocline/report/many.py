"""Many results in one table for people: the joint answer, what it rests on, and the worst targets."""


import numpy as np

from thermocline.checks import Check
from thermocline.many.result import ManyResults
from thermocline.methods import describe_method
from thermocline.records import Estimate
from thermocline.report.summary import MEANING, Section, checks_table, sections_text

MOST_TARGETS = 10
RANKS = {"failed": 0, "suspect": 1, "ok": 2}


def summary_text(results: ManyResults) -> str:
    """The summary as plain text, without colour codes, whatever the terminal."""
    return sections_text([_answer(results), _run(results), _worst(results), checks_table(results.checks)])


def _answer(results: ManyResults) -> Section:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in results.verdict_counts.items())
    rows = [
        ("verdict", f"{results.verdict}: {MEANING[results.verdict]}"),
        ("targets", f"{len(results)}, each by itself: {counts}"),
    ]
    joint, each = results.log_evidence, results.log_evidences
    if joint is None or each is None:
        return Section("", (), [*rows, ("joint log Z", "none: this method estimates no evidence")])
    usable = np.isfinite(each.value)
    if usable.all():
        rows.append(("joint log Z", _with_interval(joint)))
    else:
        rows.append(("joint log Z", f"unknown, for {np.sum(~usable)} of the targets could not be sampled"))
        rows.append(("", f"{_with_interval(_of(results, usable))} without them"))
    errors = each.standard_error[usable]
    rows.append(
        ("each log Z", f"mean {each.value[usable].mean():.6g}, errors {errors.min():.2g} to {errors.max():.2g}")
    )
    if results.bias is not None and usable.all():
        rows.append(("bias", f"{results.bias} in the joint log Z, as estimates from halves of the draws show it"))
    return Section("", (), rows)


def _of(results: ManyResults, chosen: np.ndarray) -> Estimate:
    joint = results[chosen].log_evidence
    assert joint is not None, "a subset has evidence where the whole has"
    return joint


def _with_interval(joint: Estimate) -> str:
    lower, upper = joint.interval(0.95)
    return f"{joint}  ({joint.dof:.0f} degrees of freedom; 95% interval {lower:.8g} to {upper:.8g})"


def _run(results: ManyResults) -> Section:
    draws, settings = results.runs.draws, results.settings
    _, num_chains, num_draws = draws.log_ratio.shape
    gradients, warmup = int(draws.num_gradients.sum()), int(results.runs.warmup_gradients.sum())
    seconds = ", ".join(f"{phase} {spent:.1f}" for phase, spent in settings.seconds.shown().items())
    kept = "" if draws.position.shape[-1] else "; the parameters' were not kept"
    return Section(
        "Run",
        (),
        [
            ("method", describe_method(settings.method)),
            ("draws", f"{num_chains} chains x {num_draws} a target{kept}"),
            ("gradients", f"{gradients + warmup:,}, {warmup:,} of them in warm-up"),
            ("seconds", f"{settings.seconds.total:.1f} ({seconds})"),
        ],
    )


def _worst(results: ManyResults) -> Section:
    """Failed targets first, then suspect ones, then by the size of the error."""
    each = results.log_evidences
    errors = np.zeros(len(results)) if each is None else np.nan_to_num(each.standard_error, nan=np.inf)
    order = sorted(range(len(results)), key=lambda i: (RANKS[results.verdicts[i]], -errors[i]))
    rows = [_row(results, i) for i in order[:MOST_TARGETS]]
    left = len(results) - len(rows)
    notes = (f"and {left} more; results[i].summary() tells all of one.",) if left else ()
    return Section("Worst targets", ("", "log Z", "verdict", "worst check", "value", "limit"), rows, notes)


def _row(results: ManyResults, place: int) -> tuple[str, ...]:
    each, checks = results.log_evidences, results.checks_of(place)
    worst: Check = min(checks, key=lambda check: RANKS[check.status])
    answer = "" if each is None else str(Estimate(each.value[place], each.standard_error[place], each.dof[place]))
    shown = (worst.name, f"{worst.value:.3g}", f"{worst.limit:.3g}") if not worst.passed else ("", "", "")
    return f"target {results.index[place]}", answer, str(results.verdicts[place]), *shown
