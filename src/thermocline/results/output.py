"""What results give to people and to other tools, whether of one target or of many."""

from pathlib import Path
from typing import Any

from thermocline.support.optional import require
from thermocline.support.tables import Section, html_of, sections_text


class Tables:
    """Prints as its tables do: as plain text, and as HTML in a notebook."""

    def _tables(self) -> list[Section]:
        raise NotImplementedError

    def summary(self) -> str:
        """The answer and what it rests on, as a table for people."""
        return sections_text(self._tables())

    def _repr_html_(self) -> str:
        return html_of(*self._tables())


class Output(Tables):
    """The summary, the page, the file and ArviZ's view of results."""

    def _tables(self: Any) -> list[Section]:
        from thermocline.report import tables_of

        return tables_of(self)

    def report(self: Any, path: str | Path = "report.html") -> Path:
        """Write one self-contained page for people: the answer, whether to trust it, figures, what was run."""
        require("report", "matplotlib", "jinja2")
        from thermocline.report import write_report

        return write_report(self, path)

    def to_arviz(self: Any) -> Any:
        """The draws for ArviZ: InferenceData before its version 1, an xarray DataTree from there on.

        Those of many targets have a leading dimension over them.
        """
        from thermocline.results.export import to_arviz

        return to_arviz(self)

    def save(self: Any, path: str | Path) -> None:
        """Write a netCDF file that `tc.load`, xarray and ArviZ open; many targets have a leading dimension in it."""
        from thermocline.results.files import save

        save(self, path)
