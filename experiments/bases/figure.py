"""The figure: a row a target, every seed a mark."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from experiments.bases.outcomes import FITS, LEAST, MOST, Outcome, of
from experiments.common import BLUE, GREEN, INK, ORANGE, PINK, STYLE

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.lines import Line2D

FAINT = "#BBBBBB"
VERDICTS = {"ok": ("o", GREEN), "suspect": ("s", PINK), "failed": ("X", INK)}


def draw_divergences(axes: Any, outcomes: list[Outcome], problem: str) -> None:
    for row, fit in enumerate(FITS):
        done = [run for run in of(outcomes, problem, fit) if not run.refusal]
        if not done:
            axes.text(0.02, row, "refused", transform=axes.get_yaxis_transform(), va="center", fontstyle="italic")
        for field, shift, marker, colour in (
            ("kl_base_to_target", -0.14, "<", BLUE),
            ("kl_target_to_base", 0.14, ">", ORANGE),
        ):
            values = [min(max(getattr(run, field), LEAST), MOST) for run in done]
            axes.plot(values, np.full(len(values), row + shift), marker, color=colour, markersize=5, alpha=0.75)
    axes.set(xscale="log", xlim=(LEAST / 1.5, 1.5 * MOST))


def draw_errors(axes: Any, outcomes: list[Outcome], problem: str) -> None:
    axes.axvline(0, color=INK, linewidth=1)
    for row, fit in enumerate(FITS):
        runs = of(outcomes, problem, fit)
        done = [run for run in runs if not run.refusal]
        if not done:
            axes.text(0.02, row, "refused", transform=axes.get_yaxis_transform(), va="center", fontstyle="italic")
        for run, shift in zip(done, np.linspace(-0.22, 0.22, len(done)), strict=True):
            marker, colour = VERDICTS[run.verdict]
            axes.plot(run.log_zeta_error, row + shift, "|", color=FAINT, markersize=6, markeredgewidth=2, zorder=1)
            axes.errorbar(
                run.log_evidence_error,
                row + shift,
                xerr=2 * run.standard_error,
                fmt=marker,
                color=colour,
                markersize=5,
                elinewidth=1,
                markeredgecolor="white",
                markeredgewidth=0.4,
            )
    axes.set_xscale("symlog", linthresh=0.1, linscale=1.0)
    done = [run for run in outcomes if run.problem == problem and not run.refusal]
    reach = max([0.3, *(abs(error) for run in done for error in (run.log_zeta_error, run.log_evidence_error))])
    ticks = [tick for tick in (0.05, 0.2, 0.5, 2, 5, 20, 100) if tick <= reach * 1.2]
    ticks = [*(-tick for tick in reversed(ticks)), 0, *ticks]
    axes.set_xticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
    axes.minorticks_off()
    axes.set_xlim(-1.3 * reach, 1.3 * reach)


def draw_gradients(axes: Any, outcomes: list[Outcome], problem: str) -> None:
    for row, fit in enumerate(FITS):
        values = [run.fit_gradients for run in of(outcomes, problem, fit) if not run.refusal]
        axes.plot(values, np.full(len(values), row), "D", color=INK, markersize=4, alpha=0.6)
    run_gradients = np.nanmedian([run.run_gradients for run in outcomes if run.problem == problem])
    axes.axvline(run_gradients, color=FAINT, linewidth=1, linestyle="--")
    axes.set(xscale="log", xlim=(5, 3e6))


def draw_figure(outcomes: list[Outcome], file: Path) -> None:
    """A row a target, every seed a mark: how far the fit is, what it cost, what it leads to."""
    names = list(dict.fromkeys(run.problem for run in outcomes))
    with plt.rc_context(STYLE | {"font.size": 9}):
        figure, grid = plt.subplots(
            len(names),
            3,
            figsize=(11, 3.1 * len(names)),
            sharey=True,
            layout="constrained",
            width_ratios=[1.1, 0.8, 1.3],
        )
        for row, name in enumerate(names):
            draw_divergences(grid[row, 0], outcomes, name)
            draw_gradients(grid[row, 1], outcomes, name)
            draw_errors(grid[row, 2], outcomes, name)
            grid[row, 0].set_title(name, loc="left", fontweight="bold", fontsize=10)
            for axes in grid[row]:
                axes.grid(axis="y", color="#EEEEEE", linewidth=0.8)
                axes.set_axisbelow(True)
                axes.tick_params(axis="y", length=0)
        grid[0, 0].set_yticks(range(len(FITS)), list(FITS))
        grid[0, 0].set_ylim(len(FITS) - 0.5, -0.5)
        grid[-1, 0].set_xlabel("KL divergence, nats (cut to 0.001 and 1000)")
        grid[-1, 1].set_xlabel("gradients of fit (dashed: run)")
        grid[-1, 2].set_xlabel("error of log Z, ± 2 standard errors")
        figure.legend(handles=legend_handles(), loc="outside upper center", ncols=7, handletextpad=0.3)
        figure.savefig(file, dpi=150, metadata={"Software": None})
        plt.close(figure)


def legend_handles() -> list[Any]:
    def handle(marker: str, colour: str, label: str, **options: Any) -> Any:
        return Line2D([], [], linestyle="", marker=marker, color=colour, label=label, **options)

    return [
        handle("<", BLUE, "KL(base ‖ target)"),
        handle(">", ORANGE, "KL(target ‖ base)"),
        *(handle(marker, colour, f"log Z, {name}") for name, (marker, colour) in VERDICTS.items()),
        handle("|", FAINT, "log ζ of the fit", markeredgewidth=2),
    ]
