"""The page: sections made of sentences, tables and figures, put into one autoescaped template."""

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from thermocline.report.drawing import Figure
from thermocline.report.summary import MEANING
from thermocline.results.storage import written_whole
from thermocline.support.tables import COLOURS
from thermocline.support.tables import Section as Table


class Section(NamedTuple):
    """What one section shows, in this order."""

    sentences: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()


def write_page(result: Any, path: str | Path, sections: dict[str, Callable[[Any], Section]]) -> Path:
    """Write the page of a Result, or of the results of many targets, whole or not at all."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("thermocline", "report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    html = environment.get_template("page.html").render(
        verdict=result.verdict,
        meaning=MEANING[result.verdict],
        colours=COLOURS,
        estimate=None if result.log_evidence is None else str(result.log_evidence),
        sections={title: section(result) for title, section in sections.items()},
        version=version("thermocline"),
    )
    with written_whole(path) as file:
        file.write_text(html, encoding="utf-8")
    return Path(path)
