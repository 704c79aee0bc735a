"""Plots for users: the report's drawings on figures of pyplot, which notebooks and windows show; axes are returned."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from thermocline.report.page import FAINT, STYLE, TARGET, shortened, unscaled
from thermocline.report.posterior import (
    MOST_MODES,
    MOST_PAIRS,
    cloud_of,
    draw_map,
    draw_marginal,
    draw_masses,
    draw_pairs,
)
from thermocline.report.summary import met_modes
from thermocline.report.temperature import DRAWN
from thermocline.results.compare import Comparison
from thermocline.results.result import Result
from thermocline.support.errors import ThermoclineError


@contextmanager
def shown(width: float, height: float, **grid: Any) -> Iterator[Any]:
    """Axes in our style, whatever the user's own, on a figure that pyplot knows."""
    from matplotlib import pyplot, style

    with style.context(STYLE, after_reset=True):
        canvas, axes = pyplot.subplots(figsize=(width, height), **grid)
        yield axes
        canvas.draw_without_rendering()  # what is laid out later would be in the user's style


def plot_modes(result: Result) -> Any:
    """Draws by mode on the map, or as a histogram where there is one parameter; and the masses."""
    if not result.modes:
        raise ThermoclineError("this result has no table of modes: search=False or a limit left it out.")
    cloud = cloud_of(result)
    with shown(8.0, 3.0, ncols=2) as axes:
        if cloud.position.shape[1] > 1:
            draw_map(axes[0], result, cloud)
        else:
            name = next(iter(cloud.components))
            draw_marginal(axes[0], name, cloud)
            unscaled(axes[0], name)
        draw_masses(axes[1], met_modes(result)[:MOST_MODES])
    return axes


def plot_temperature(result: Result) -> Any:
    """The trace of beta, where it was, and the partition function."""
    result.need_joint("plots of the temperature")
    with shown(11.0, 2.8, ncols=len(DRAWN)) as axes:
        for draw, own in zip(DRAWN, axes, strict=True):
            draw(own, result)
    return axes


def plot_pair(result: Result, names: Sequence[str] | None, mode: int | None) -> Any:
    """A grid of scatters, with histograms on the diagonal."""
    cloud = cloud_of(result, mode)
    known = list(cloud.components)
    chosen = known[:MOST_PAIRS] if names is None else [own for name in names for own in _components(name, known)]
    side = max(1.6 * len(chosen), 2.4)
    with shown(side, 0.85 * side, nrows=len(chosen), ncols=len(chosen), squeeze=False) as grid:
        draw_pairs(grid, chosen, cloud)
    return grid


def _components(name: str, known: list[str]) -> list[str]:
    """A parameter's numbers: one of them by its own name, or all."""
    found = [own for own in known if own == name or own.startswith(f"{name}[")]
    if not found:
        raise ThermoclineError(f"there is no parameter {name!r}; there are {', '.join(known[:20])}.")
    return found


def plot_comparison(comparison: Comparison) -> Any:
    """Log evidences relative to the best with 95% intervals, and probabilities of the models."""
    names = comparison.ranking[::-1]
    rows = np.arange(len(names))
    with shown(7.2, 1.2 + 0.32 * len(names), ncols=2, sharey=True) as axes:
        left, right = axes
        best = comparison.log_evidences[names[-1]].value
        for row, name in zip(rows, names, strict=True):
            estimate = comparison.log_evidences[name]
            low, high = estimate.interval()
            left.plot([low - best, high - best], [row, row], color=TARGET)
            left.plot(estimate.value - best, row, "o", color=TARGET, markersize=4.5)
            low, high = comparison.probability_interval(name)
            right.barh(row, comparison.probability(name).value, color=TARGET, alpha=0.35, height=0.6)
            right.plot([low, high], [row, row], color=TARGET)
        left.axvline(0, color=FAINT, linewidth=1, zorder=0)
        left.set_yticks(rows, [shortened(str(name)) for name in names])
        left.set(xlabel="log Z, less that of the best", ylim=(-0.6, len(names) - 0.4))
        right.set(xlabel="probability of the model", xlim=(0, 1.01))
    return axes
