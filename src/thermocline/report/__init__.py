"""The report: one self-contained page that answers six questions, in order.

A section is a file with a function from a Result to `Section`, and one line here.
"""

from collections.abc import Callable

from thermocline.report.answer import answer
from thermocline.report.base import base
from thermocline.report.page import Section, write_page
from thermocline.report.posterior import posterior
from thermocline.report.temperature import temperature
from thermocline.report.trust import run, trust
from thermocline.results.result import Result

SECTIONS: dict[str, Callable[[Result], Section]] = {
    "What is the answer?": answer,
    "Can I trust it?": trust,
    "What does the posterior look like?": posterior,
    "Did temperature mix?": temperature,
    "Was the base any good?": base,
    "What was run?": run,
}

__all__ = ["SECTIONS", "Section", "write_page"]
