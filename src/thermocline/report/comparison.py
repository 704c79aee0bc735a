"""Models side by side, as a figure."""

from typing import TYPE_CHECKING

import numpy as np

from thermocline.report.drawing import FAINT, TARGET, shortened, styled
from thermocline.results.compare import Comparison
from thermocline.support.optional import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure_of_comparison(comparison: Comparison) -> "Figure":
    """Log evidences relative to the best with 95% intervals, and probabilities of the models."""
    require("report", "matplotlib")
    from matplotlib.figure import Figure

    names = comparison.ranking[::-1]
    rows = np.arange(len(names))
    with styled():
        canvas = Figure(figsize=(7.2, 1.2 + 0.32 * len(names)))
        left, right = canvas.subplots(1, 2, sharey=True)
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
        canvas.draw_without_rendering()
    return canvas
