"""Many results in one table or on one page for people: the joint answer, what it rests on, and the worst targets."""

from collections.abc import Callable

import numpy as np

from thermocline.checks import Check
from thermocline.records import Estimate, sum_of
from thermocline.report.page import FAINT, TARGET, Figure, drawing, figure
from thermocline.report.page import Section as PageSection
from thermocline.report.sections import with_checks
from thermocline.report.summary import MEANING, by_name, checks_table, long_phases, number_of, with_interval
from thermocline.results.many import ManyResults
from thermocline.support.tables import Section

MOST_TARGETS = 10
RANKS = {"failed": 0, "suspect": 1, "ok": 2}


def tables(results: ManyResults) -> list[Section]:
    """All that the summary says, in order."""
    return [_answer(results), _run(results), _worst(results), checks_table(results.checks)]


def _trust(results: ManyResults) -> PageSection:
    number = sum(not check.passed for check in results.checks) or "none"
    said = f"{len(results.checks)} checks were made of all targets together, and {number} did not pass."
    return with_checks(said, results.checks)


def _each(results: ManyResults) -> tuple[Figure, ...]:
    """Log Z of every target that has one, in order of size, and its error."""
    each = results.log_evidences
    if each is None or not np.isfinite(each.value).any():
        return ()
    order = [i for i in np.argsort(each.value) if np.isfinite(each.value[i])]
    rank, errors = np.arange(1, len(order) + 1), each.standard_error[order]
    pieces = []
    for name, values, caption in (
        ("log Z", each.value[order], "log Z of each target, in order of its size."),
        ("error of log Z", errors, "The standard error of each, in the same order; the line is their median."),
    ):
        with drawing() as (canvas, axes):
            if name != "log Z":
                axes.axhline(float(np.median(errors)), color=FAINT, linewidth=1)
            axes.plot(rank, values, color=TARGET, linestyle="none", marker="o", markersize=2)
            axes.set(xlabel="targets, by log Z", ylabel=name)
            axes.ticklabel_format(axis="y", useOffset=False)
            pieces.append(figure(canvas, caption))
    return tuple(pieces)


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
        rows.append(("joint log Z", with_interval(joint)))
    else:
        rows.append(("joint log Z", f"unknown, for {np.sum(~usable)} of the targets could not be sampled"))
        rest = sum_of(Estimate(*(column[usable] for column in vars(each).values())))
        rows.append(("", f"{with_interval(rest)} without them"))
    errors = each.standard_error[usable]
    rows.append(
        ("each log Z", f"mean {each.value[usable].mean():.6g}, errors {errors.min():.2g} to {errors.max():.2g}")
    )
    if results.bias is not None and usable.all():
        rows.append(("bias", f"{results.bias} in the joint log Z, as estimates from halves of the draws show it"))
    return Section("", (), rows)


def _run(results: ManyResults) -> Section:
    runs, by_target = results.runs, results.runs.by_target
    warmup = int(by_target.warmup_gradients[results.index].sum())
    gradients = warmup + sum(int(leaf.sum()) for (leaf,) in runs.fields(results.index, "num_gradients"))
    kept = "" if runs.settings.has_positions else "; the parameters' were not kept"
    rows = [
        ("method", runs.settings.method_name),
        ("draws", f"{runs.num_chains} chains x {results.lengths} a target{kept}"),
        ("gradients", f"{gradients:,}, {warmup:,} of them in warm-up"),
        ("seconds", f"{runs.seconds.total:.1f} ({by_name(long_phases(runs.seconds), '.1f')})"),
    ]
    return Section("Run", (), rows)


def _worst(results: ManyResults) -> Section:
    """Failed targets first, then suspect ones, then by the size of the error."""
    each = results.log_evidences
    errors = np.zeros(len(results)) if each is None else np.nan_to_num(each.standard_error, nan=np.inf)
    order = sorted(range(len(results)), key=lambda i: (RANKS[results.verdicts[i]], -errors[i]))
    rows = []
    for place in order[:MOST_TARGETS]:
        worst: Check = min(results.checks_of(place), key=lambda check: RANKS[check.status])
        answer = "" if each is None else str(Estimate(*(column[place] for column in vars(each).values())))
        shown = (worst.name, number_of(worst.value), number_of(worst.limit)) if not worst.passed else ("", "", "")
        rows.append((f"target {results.index[place]}", answer, str(results.verdicts[place]), *shown))
    left = len(results) - len(rows)
    notes = (f"and {left} more; results[i].summary() tells all of one.",) if left else ()
    return Section("Worst targets", ("", "log Z", "verdict", "worst check", "value", "limit"), rows, notes)


SECTIONS: dict[str, Callable[[ManyResults], PageSection]] = {
    "What is the answer?": lambda results: PageSection((), _each(results), (_answer(results),)),
    "Can I trust it?": _trust,
    "Which targets are the worst?": lambda results: PageSection(tables=(_worst(results),)),
    "What was run?": lambda results: PageSection(tables=(_run(results),)),
}
