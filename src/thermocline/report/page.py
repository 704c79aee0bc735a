"""The page: sections of sentences, tables and figures in one autoescaped template; and how figures look."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from thermocline.results.storage import written_whole
from thermocline.support.tables import COLOURS
from thermocline.support.tables import Section as Table

TARGET, BASE, GREY, FAINT = "#1f5f8b", "#d9822b", "#5f6c7b", "#c9d1da"
MODES = ("#1f5f8b", "#d9822b", "#3a8f5c", "#a23b72", "#7a6bb0", "#8c6d46", "#5aa9b8", "#b8b042")
STYLE: dict[Any, Any] = {
    "axes.edgecolor": FAINT,
    "axes.labelcolor": GREY,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
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


class Figure(NamedTuple):
    """A drawing as SVG, and the sentence below it; a wide one takes the whole width of the page."""

    svg: Any  # Markup, which needs no escaping
    caption: str
    wide: bool = False


class Section(NamedTuple):
    """What one section shows, in this order."""

    sentences: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()


class Head(NamedTuple):
    """The first screen: what was asked, the answer in a sentence, and how far to trust it, in boxes side by side."""

    title: str
    below: tuple[str, ...]
    answer: str
    boxes: tuple[tuple[str, str, str], ...]  # question, a word, a sentence
    cautions: tuple[str, ...] = ()


def write_page(result: Any, path: str | Path, sections: dict[str, Callable[[Any], Section]], head: Head) -> Path:
    """Write the page of a Result, or of the results of many targets, whole or not at all."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("thermocline", "report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    html = environment.get_template("page.html").render(
        verdict=result.verdict,
        colours=COLOURS,
        head=head,
        sections={title: section(result) for title, section in sections.items()},
        version=version("thermocline"),
    )
    with written_whole(path) as file:
        file.write_text(html, encoding="utf-8")
    return Path(path)


@contextmanager
def drawing(width: float = WIDTH, height: float = HEIGHT, **grid: Any) -> Iterator[tuple[Any, Any]]:
    """A figure and its axes, one pair or a grid, in our style, whatever the user's own; no window is opened."""
    from matplotlib import figure, style

    with style.context(STYLE, after_reset=True):
        canvas = figure.Figure(figsize=(width, height))
        yield canvas, canvas.subplots(**grid)


def figure(canvas: Any, caption: str, description: str = "", *, wide: bool = False) -> Figure:
    """The drawing as a figure of the page; those who cannot see it are told the description, else the caption.

    Its SVG scales with the page; identifiers are made unique, for a page has many drawings.
    """
    from markupsafe import Markup, escape

    stream = StringIO()
    canvas.savefig(stream, format="svg", metadata=NO_METADATA, transparent=True)
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    for side in ("width", "height"):
        text = re.sub(rf'(<svg[^>]*?) {side}="[^"]*"', r"\1", text, count=1)
    text = IDENTIFIER.sub(rf"\g<1>drawing{next(numbers)}-", text)
    label = escape(description or caption)
    return Figure(Markup(text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)), caption, wide)


def unscaled(axes: Any, name: str) -> None:
    """A histogram's axes: the parameter below, and no heights."""
    axes.set(xlabel=shortened(name, 40), yticks=[])
    axes.spines["left"].set_visible(False)


def range_of(values: np.ndarray, weights: np.ndarray | None = None) -> tuple[float, float]:
    """From the 0.2% to the 99.8% quantile and a little beyond: tails must not squeeze the rest."""
    weights = np.ravel(weights) if weights is not None and np.any(weights) else None
    low, high = np.quantile(np.ravel(values), (0.002, 0.998), weights=weights, method="inverted_cdf")
    margin = 0.05 * (high - low) or max(abs(low) * 1e-3, 1e-9)
    return float(low - margin), float(high + margin)


def shortened(name: str, longest: int = 24) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"
