"""What is the answer: log Z as it settled, and the parameters."""

from dataclasses import replace

import numpy as np

from thermocline.records import Draws
from thermocline.report import summary
from thermocline.report.drawing import BASE, FAINT, TARGET, drawing, evidences, figure
from thermocline.report.page import Figure, Section
from thermocline.results.result import Result

NUM_LOOKS, MOST_MODES = 12, 10


def answer(result: Result) -> Section:
    table = summary.answer_table(result)
    tables = table._replace(rows=table.rows[1:]), summary.parameters_table(result)  # the verdict is the headline
    return Section(figures=(*evidence_against_work(result), *masses(result)), tables=tables)


def evidence_against_work(result: Result) -> tuple[Figure, ...]:
    """Log Z with its error from the first part of the draws, for growing parts."""
    from matplotlib.ticker import EngFormatter

    final, draws = result.log_evidence, result.draws
    if final is None or not np.isfinite(final.value):
        return ()
    num_draws = draws.log_ratio.shape[1]
    lengths = np.unique(np.geomspace(min(16, num_draws), num_draws, NUM_LOOKS).astype(int))
    work = np.cumsum(draws.num_gradients.sum(axis=0))[lengths - 1]
    parts = [Draws(*(leaf[:, :length] for leaf in draws)) for length in lengths]
    estimates = [replace(result, draws=part).log_evidence or final for part in parts]
    with drawing() as (canvas, axes):
        values, reach = evidences(axes, final, work, estimates)
        near = reach < 12 * max(reach[-1], 1e-12)  # the error of the first looks may be beyond all measure
        low, high = np.min((values - reach)[near]), np.max((values + reach)[near])
        margin = 0.08 * (high - low) or 0.1
        axes.set(xscale="log", xlabel="gradients while sampling", ylim=(low - margin, high + margin))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.xaxis.set_minor_formatter("")
        return (figure(canvas, "log Z with its 95% interval as draws came in; the band is the final interval."),)


def masses(result: Result) -> tuple[Figure, ...]:
    """The mass of each of the heaviest modes, from the chains and from its own fit."""
    modes = result.modes[:MOST_MODES]
    if len(modes) < 2:
        return ()
    rows = np.arange(len(modes))
    with drawing() as (canvas, axes):
        for offset, name, label, colour in (
            (-0.15, "mass", "from the chains", TARGET),
            (0.15, "mass_by_importance", "from its own fit", BASE),
        ):
            values = np.array([getattr(mode, name).value for mode in modes])
            errors = np.array([getattr(mode, name).standard_error for mode in modes])
            known = np.isfinite(values) & (errors < np.maximum(values, 0.05))
            options = {"color": colour, "fmt": "o", "markersize": 4, "label": label}
            axes.errorbar(values[known], rows[known] + offset, xerr=1.96 * errors[known], **options)
        axes.set_yticks(rows, [mode.name for mode in modes])
        axes.set(xlabel="share of the posterior", ylim=(len(modes) - 0.4, -0.6))
        axes.set_xlim(left=0)
        axes.legend(loc="best")
        axes.grid(axis="x", color=FAINT, linewidth=0.5)
        return (figure(canvas, "How much each mode holds, with 95% intervals, two ways that should agree."),)
