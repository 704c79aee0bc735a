"""What results give to people and to other tools, whether of one target or of many."""

from collections.abc import Sequence
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


class Pictures(Output):
    """What the Result of one target can be looked at by; every plot returns Matplotlib's axes."""

    def summary(self: Any, mode: int | None = None) -> str:
        """The answer and what it rests on, as a table for people; with `mode=2`, what is known of "mode 2" alone."""
        if mode is None:
            return super().summary()
        from thermocline.report.summary import tables_of_mode

        return sections_text(tables_of_mode(self, mode))

    def plot_modes(self: Any) -> Any:
        """Draws and modes in the plane that shows them best, and how much each mode holds: two axes."""
        return _plots().plot_modes(self)

    def plot_temperature(self: Any) -> Any:
        """How beta moved, where it was, and the partition function along it: three axes."""
        return _plots().plot_temperature(self)

    def plot_pair(self: Any, names: Sequence[str] | None = None, *, mode: int | None = None) -> Any:
        """Parameters two by two, coloured by mode, with histograms on the diagonal; a square grid of axes.

        `names` are as the summary has them, the first few by default; `mode=2` shows "mode 2" alone.
        """
        return _plots().plot_pair(self, names, mode)


def _plots() -> Any:
    require("report", "matplotlib")
    from thermocline.report import plots

    return plots
