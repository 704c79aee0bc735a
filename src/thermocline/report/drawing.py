"""How figures look, and how one becomes SVG inside a page."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from thermocline.records import Estimate
from thermocline.report.page import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

TARGET, BASE, GREY, FAINT = "#1f5f8b", "#d9822b", "#5f6c7b", "#c9d1da"
MODES = ("#1f5f8b", "#d9822b", "#3a8f5c", "#a23b72", "#7a6bb0", "#8c6d46", "#5aa9b8", "#b8b042")
STYLE: dict[Any, Any] = {
    "axes.edgecolor": FAINT,
    "axes.labelcolor": GREY,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "font.family": "sans-serif",
    "font.size": 9,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "savefig.dpi": 160,  # of rasterised parts
    "svg.fonttype": "none",
    "svg.hashsalt": "thermocline",
    "text.parse_math": False,  # names of users are not mathematics
    **{f"{axis}tick.{option}": value for axis in "xy" for option, value in (("color", GREY), ("labelsize", 8.5))},
}
WIDTH, HEIGHT = 4.0, 2.5  # inches, of a figure that is legible on a phone
NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}
IDENTIFIER = re.compile(r'(id="|url\(#|href="#)')
numbers = count(1)


@contextmanager
def drawing(width: float = WIDTH, height: float = HEIGHT) -> "Iterator[tuple[Canvas, Axes]]":
    """A figure with one pair of axes, in our style, whatever the user's own; no window is opened."""
    with styled():
        from matplotlib.figure import Figure as Canvas

        canvas = Canvas(figsize=(width, height))
        yield canvas, canvas.add_subplot()


@contextmanager
def styled() -> Iterator[None]:
    """Our style, and the user's again."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def figure(canvas: "Canvas", caption: str, description: str = "", *, wide: bool = False) -> Figure:
    """The drawing as a figure of the page; those who cannot see it are told the description, else the caption.

    Its SVG scales with the page; identifiers are made unique, for a page has many drawings.
    """
    from markupsafe import Markup, escape

    stream = StringIO()
    with styled():
        canvas.savefig(stream, format="svg", metadata=NO_METADATA, transparent=True)
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    for side in ("width", "height"):
        text = re.sub(rf'(<svg[^>]*?) {side}="[^"]*"', r"\1", text, count=1)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = IDENTIFIER.sub(rf"\g<1>drawing{next(numbers)}-", text)
    label = escape(description or caption)
    return Figure(Markup(text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)), caption, wide)


def count_on(axis: Any) -> None:
    """Ticks at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def evidences(axes: "Axes", final: Estimate, at: np.ndarray, estimates: list[Estimate]) -> Any:
    """Log Z with 95% intervals at some places, over a band that is the final interval; the values and their reach."""
    known = [bool(np.isfinite(e.value) and np.isfinite(e.standard_error)) for e in estimates]
    kept = [e for e, is_known in zip(estimates, known, strict=True) if is_known]
    values, reach = np.array([e.value for e in kept]), np.array([e.interval()[1] - e.value for e in kept])
    axes.axhspan(*final.interval(), color=TARGET, alpha=0.12, linewidth=0)
    axes.axhline(final.value, color=FAINT, linewidth=1)
    axes.errorbar(at[known], values, reach, color=TARGET, fmt="o", markersize=3.5, elinewidth=1.2)
    axes.set_ylabel("log Z")
    axes.ticklabel_format(axis="y", useOffset=False)
    return values, reach


def without_scale(axes: "Axes", name: str) -> None:
    """A histogram's axes: the parameter below, and no heights."""
    axes.set(xlabel=shortened(name, 40), yticks=[])
    axes.spines["left"].set_visible(False)


def weighted_histogram(axes: "Axes", values: np.ndarray, weights: np.ndarray | None, edges: np.ndarray, **how) -> None:
    """A density as a filled step."""
    height, _ = np.histogram(values, edges, weights=weights, density=True)
    axes.fill_between(edges, np.append(height, height[-1]), step="post", linewidth=0, **how)


def range_of(values: np.ndarray, weights: np.ndarray | None = None) -> tuple[float, float]:
    """From the 0.2% to the 99.8% quantile and a little beyond: tails must not squeeze the rest."""
    values = np.ravel(values)
    order = np.argsort(values)
    share = np.full(values.size, 1.0) if weights is None else np.ravel(weights)[order]
    share = np.cumsum(share) / np.sum(share)
    low, high = (values[order][min(np.searchsorted(share, p), values.size - 1)] for p in (0.002, 0.998))
    margin = 0.05 * (high - low) or max(abs(low) * 1e-3, 1e-9)
    return float(low - margin), float(high + margin)


def shortened(name: str, longest: int = 24) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"
