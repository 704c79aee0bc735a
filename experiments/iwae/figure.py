"""The paper's Figure 5, and the generated images of its Appendix C."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from experiments.common import BLUE, GREEN, INK, ORANGE, PINK, SKY, STYLE
from experiments.iwae.stages import Problem

mpl.use("Agg")
import matplotlib.pyplot as plt

TITLES = {"mnist": "MNIST", "omniglot": "Omniglot"}
CURVES = {
    "gibbs": ("Gibbs CT", BLUE), "joint": ("joint CT", GREEN), "simulated": ("simulated tempering", PINK),
    "library": ("library's law of β (with its warm-up)", SKY),
}  # fmt: skip


def curves_of(stages: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Label and colour of the chains' methods among the stages."""
    return {name: look for name, look in CURVES.items() if name in stages}


def curve(stage: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Seconds of one run, the mean over runs of the mean over images, and its standard error."""
    by_run = stage["value"].mean(axis=0)  # (run, prefix)
    number, counts = len(by_run), stage["num_draws"]
    seconds = (stage["warmup_seconds"] + stage["seconds"] * counts / counts[-1]) / number
    return seconds, by_run.mean(axis=0), by_run.std(axis=0, ddof=1) / np.sqrt(number)


def points(found: dict[str, dict[str, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same for annealed runs, a point a schedule; errors are those of the weights' means."""
    stages = [stage for name, stage in found.items() if name.startswith("annealed-")]
    seconds, value, error = (np.array([stage[name] for stage in stages]) for name in ("seconds", "value", "error"))
    return seconds, value.mean(axis=1), np.sqrt(np.sum(error**2, axis=1)) / value.shape[1]


def draw_likelihoods(axes: Any, name: str, found: dict[str, dict[str, np.ndarray]]) -> None:
    bounds = found["bounds"]
    lower, upper = bounds["lower"].mean(), bounds["upper"].mean()
    axes.axhline(upper, color=INK, linestyle="--", linewidth=1, label="upper bound (BDMC)")
    axes.axhline(lower, color="#C00000", linestyle="--", linewidth=1, label="lower bound (BDMC)")
    for stage, (label, colour) in curves_of(found).items():
        seconds, value, error = curve(found[stage])
        axes.plot(seconds, value, color=colour, linewidth=1.8, label=label)
        axes.fill_between(seconds, value - 3 * error, value + 3 * error, color=colour, alpha=0.2, linewidth=0)
    seconds, value, error = points(found)
    axes.errorbar(seconds, value, 3 * error, color=ORANGE, fmt="o", markersize=4, label="AIS", capsize=2)
    spread = max(4 * (upper - lower), 1.2)
    axes.set(xscale="log", xlabel="seconds of one run over all images (without compiling)")
    axes.set_ylim(lower - 1.4 * spread, upper + 0.6 * spread)
    axes.set_title(f"{TITLES[name]}, {len(bounds['lower'])} generated images", fontsize=10)


def draw_images(axes: Any, images: np.ndarray, *, rows: int = 5, columns: int = 20) -> None:
    """The first images, on a grid."""
    shown = np.zeros((rows * columns, 28, 28))
    shown[: min(len(images), rows * columns)] = images[: rows * columns].reshape(-1, 28, 28)
    axes.imshow(shown.reshape(rows, columns, 28, 28).swapaxes(1, 2).reshape(rows * 28, columns * 28), cmap="Greys")
    axes.set_axis_off()


def draw(path: Path, problems: dict[str, Problem], found: dict[str, dict[str, dict[str, np.ndarray]]]) -> None:
    """Both panels of Figure 5 and, below each, the first images."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            2, len(problems), figsize=(10, 6.4), height_ratios=(3.2, 1.2), layout="constrained", squeeze=False
        )
        for column, name in enumerate(problems):
            draw_likelihoods(axes[0, column], name, found[name])
            draw_images(axes[1, column], problems[name].data["image"])
        axes[0, 0].set_ylabel("log marginal likelihood, mean per image (nats)")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncol=4, fontsize=9)
        figure.savefig(path, dpi=130)
        plt.close(figure)
