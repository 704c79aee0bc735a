"""Figure 3b: log marginal likelihood against run time."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from experiments.common import BLUE, GREEN, INK, ORANGE, PINK, SKY, STYLE

mpl.use("Agg")
import matplotlib.pyplot as plt


def draw_figure(numbers: dict[str, Any], file: Path) -> None:
    """Left all of it, ADVI's climb included; right what is near the exact value."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
        for panel in axes:
            draw_answers(panel, numbers)
            panel.set(xscale="log", xlabel="run time / s, without compiling")
        exact, bound = numbers["exact"], numbers["advi"]["elbo"]
        fall = exact - bound
        axes[0].set(ylabel="log marginal likelihood", ylim=(bound - 1.2 * fall, exact + 0.5 * fall))
        axes[0].set_title("$\\bf{(a)}$ from ADVI's first steps", loc="left", fontsize=10)
        axes[1].set(ylim=(exact - 0.6, exact + 0.6))
        axes[1].set_title("$\\bf{(b)}$ near the exact value", loc="left", fontsize=10)
        axes[0].legend(loc="lower right", fontsize=8)
        figure.savefig(file, dpi=150, metadata={"Software": None})
        plt.close(figure)


def draw_answers(panel: Any, numbers: dict[str, Any]) -> None:
    fit, annealed = numbers["advi"], numbers["runs"]["AIS"]
    panel.axhline(numbers["exact"], color=INK, linewidth=1, label="exact")
    panel.axhline(fit["elbo"], color=PINK, linestyle="-.", linewidth=1.2, label="ADVI's bound (log ζ)")
    blocks = np.arange(1, len(fit["trace"]) + 1)
    panel.plot(fit["seconds"] * blocks / blocks.size, fit["trace"], color=PINK, linewidth=1.2, label="ADVI's objective")
    for (name, curve), colour in zip(numbers["curves"].items(), (GREEN, BLUE, SKY), strict=True):
        seconds, mean, error = (np.array(curve[key]) for key in ("seconds", "mean", "error"))
        panel.plot(seconds, mean, color=colour, linewidth=1.6, label=f"{name}, ± 3 errors")
        panel.fill_between(seconds, mean - 3 * error, mean + 3 * error, color=colour, alpha=0.2, linewidth=0)
    value, error = annealed["log_evidence"]
    panel.errorbar(fit["seconds"] + annealed["running_seconds"], value, 3 * error, fmt="o", color=ORANGE, markersize=5,
                   capsize=3, label="AIS, ± 3 errors")
