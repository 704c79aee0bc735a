"""What is the answer: log Z as it settled, and the parameters."""


import numpy as np

from thermocline import estimators
from thermocline.records import Draws
from thermocline.report import summary
from thermocline.report.drawing import BASE, FAINT, TARGET, drawing, figure
from thermocline.report.page import Figure, Section
from thermocline.results.result import Result

NUM_LOOKS, MOST_MODES = 12, 10


def answer(result: Result) -> Section:
    table = summary.answer_table(result)
    tables = table._replace(rows=table.rows[1:]), summary.parameters_table(result)  # the verdict is the headline
    return Section(figures=(*evidence_against_work(result), *masses(result)), tables=tables)


def evidence_against_work(result: Result) -> tuple[Figure, ...]:
    """Log Z with its error from the first part of the draws, for growing parts."""
    final = result.log_evidence
    num_draws = result.draws.log_ratio.shape[1]
    if final is None or not np.isfinite(final.value):
        return ()
    lengths = np.unique(np.geomspace(min(16, num_draws), num_draws, NUM_LOOKS).astype(int))
    work = np.cumsum(result.draws.num_gradients.sum(axis=0))[lengths - 1]
    estimates = [
        estimators.log_evidence(Draws(*(leaf[:, :n] for leaf in result.draws)), result.log_zeta, result.log_support)
        for n in lengths
    ]
    known = [np.isfinite(e.value) and np.isfinite(e.standard_error) for e in estimates]
    values = np.array([e.value for e, k in zip(estimates, known, strict=True) if k])
    reach = np.array([e.interval()[1] - e.value for e, k in zip(estimates, known, strict=True) if k])
    with drawing() as (canvas, axes):
        axes.axhspan(*final.interval(), color=TARGET, alpha=0.12, linewidth=0)
        axes.axhline(final.value, color=FAINT, linewidth=1)
        axes.errorbar(work[known], values, reach, color=TARGET, fmt="o", markersize=3.5, elinewidth=1.2)
        near = reach < 12 * max(reach[-1], 1e-12)
        axes.set_ylim(_limits(values[near], reach[near]))
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda gradients, _: rounded(gradients))
        axes.xaxis.set_minor_formatter("")
        axes.set_xlabel("gradients while sampling")
        axes.set_ylabel("log Z")
        axes.ticklabel_format(axis="y", useOffset=False)
        caption = "log Z with its 95% interval as draws came in; the band is the final interval."
        return (figure(canvas, caption),)


def masses(result: Result) -> tuple[Figure, ...]:
    """The mass of each of the heaviest modes, from the chains and from its own fit."""
    modes = result.modes[:MOST_MODES]
    if len(modes) < 2:
        return ()
    rows = np.arange(len(modes))
    with drawing() as (canvas, axes):
        for offset, name, colour in ((-0.15, "mass", TARGET), (0.15, "mass_by_importance", BASE)):
            values, errors = (
                np.array([getattr(getattr(mode, name), part) for mode in modes]) for part in ("value", "standard_error")
            )
            known = np.isfinite(values) & (errors < np.maximum(values, 0.05))
            label = "from the chains" if name == "mass" else "from its own fit"
            at = rows[known] + offset
            axes.errorbar(
                values[known], at, xerr=1.96 * errors[known], color=colour, fmt="o", markersize=4, label=label
            )
        axes.set_yticks(rows, [mode.name for mode in modes])
        axes.set_ylim(len(modes) - 0.4, -0.6)
        axes.set_xlim(left=0)
        axes.set_xlabel("share of the posterior")
        axes.legend(loc="best")
        axes.grid(axis="x", color=FAINT, linewidth=0.5)
        return (figure(canvas, "How much each mode holds, with 95% intervals, two ways that should agree."),)


def rounded(number: float) -> str:
    """A large number in few characters."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:g}{letter}"
    return f"{number:g}"


def _limits(values: np.ndarray, reach: np.ndarray) -> tuple[float, float]:
    """All that is shown, without the first looks whose error is beyond all measure."""
    low, high = np.min(values - reach), np.max(values + reach)
    margin = 0.08 * (high - low) or 0.1
    return float(low - margin), float(high + margin)
