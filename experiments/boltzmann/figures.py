"""The figures: relative errors against run time (the paper's Figure 2), and a relaxation seen in two dimensions."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from experiments.boltzmann.estimates import MOMENTS
from experiments.boltzmann.machine import exact_draws, random_machine, relax, smallest_shift
from experiments.boltzmann.tables import Curve
from experiments.common import BLUE, GREEN, INK, ORANGE, PINK, SKY, STYLE

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter

COLOURS = {"AIS": INK, "simulated tempering": SKY, "Gibbs CT": BLUE, "joint CT": ORANGE, "black box": PINK}
TITLES = dict(zip(MOMENTS, (r"$\log Z$", r"mean $E[x]$", "covariance of $x$"), strict=True))


def draw_errors(curves: dict[str, Curve], file: Path) -> None:
    """One panel a moment; bands and bars are three standard errors over the machines."""
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, 3, figsize=(11, 4.2), layout="constrained", sharex=True)
        for column, (axes, moment) in enumerate(zip(panels, MOMENTS, strict=True)):
            for name, curve in curves.items():
                draw_curve(axes, curve, column, name)
            axes.axhline(1.0, color=INK, linewidth=0.8, linestyle=":")
            axes.set(xscale="log", yscale="log", title=TITLES[moment], xlabel="run time of a repeat (s)")
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        panels[0].set_ylabel("RMSE relative to the variational fit")
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=len(names))
        figure.savefig(file, dpi=150, metadata={"Software": None})
        plt.close(figure)


def draw_curve(axes: Any, curve: Curve, column: int, name: str) -> None:
    colour, mean, error = COLOURS[name], curve.mean[:, column], 3 * curve.standard_error[:, column]
    lower = np.maximum(mean - error, 0.05 * mean)  # a log scale has no room for zero
    if curve.is_line:
        axes.plot(curve.seconds, mean, color=colour, linewidth=1.8, label=name)
        axes.fill_between(curve.seconds, lower, mean + error, color=colour, alpha=0.18, linewidth=0)
    else:
        marker = "s" if name == "AIS" else "D"
        axes.errorbar(curve.seconds, mean, [mean - lower, error], color=colour, fmt=marker, markersize=5, capsize=3,
                      linewidth=1.2, label=name)


def draw_projection(file: Path, *, num_units: int = 28, seed: int = 28, number: int = 10_000) -> None:
    """Independent draws of one relaxation, along the two directions in which W + D is largest."""
    machine = random_machine(num_units, seed)
    relaxation = relax(machine, smallest_shift(machine.weights))
    draws = exact_draws(relaxation, number, np.random.default_rng(seed))
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(5, 4.6), layout="constrained")
        axes.plot(draws[:, -1], draws[:, -2], ".", color=GREEN, markersize=2, alpha=0.35, markeredgewidth=0)
        axes.set(xlabel="$x$ along the first eigenvector of $W + D$", ylabel="along the second", aspect="equal")
        figure.savefig(file, dpi=150, metadata={"Software": None})
        plt.close(figure)
