"""The report: one self-contained page that answers its questions, in order; and the tables of the summary.

A section is a function from a Result to `Section`, and one line here.
"""

from collections.abc import Callable
from pathlib import Path

from thermocline.report import many, summary
from thermocline.report.head import head_of_many, head_of_one
from thermocline.report.page import Section, write_page
from thermocline.report.posterior import posterior
from thermocline.report.sections import answer, base, run, trust
from thermocline.report.temperature import temperature
from thermocline.results.many import ManyResults
from thermocline.results.result import Result
from thermocline.support.tables import Section as Table

SECTIONS: dict[str, Callable[[Result], Section]] = {
    "What is the answer?": answer,
    "Can I trust it?": trust,
    "What does the posterior look like?": posterior,
    "Did temperature mix?": temperature,
    "Was the base any good?": base,
    "What was run?": run,
}


def tables_of(results: Result | ManyResults) -> list[Table]:
    """All that the summary says, in order."""
    return many.tables(results) if isinstance(results, ManyResults) else summary.tables(results)


def write_report(results: Result | ManyResults, path: str | Path) -> Path:
    """The page of one target or of many."""
    if isinstance(results, ManyResults):
        return write_page(results, path, many.SECTIONS, head_of_many(results))
    return write_page(results, path, SECTIONS, head_of_one(results))


__all__ = ["SECTIONS", "Section", "head_of_many", "head_of_one", "tables_of", "write_page", "write_report"]
