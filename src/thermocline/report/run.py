"""What was run: all that it takes to run it again, and what it cost."""

from typing import TYPE_CHECKING

from thermocline import summary
from thermocline.report.page import Section

if TYPE_CHECKING:
    from thermocline.result import Result


def run(result: "Result") -> Section:
    table = summary.run_table(result)
    marks = [(name, value) for name, value in result.info["fingerprint"].items()]
    return Section(tables=(table._replace(title="", notes=()), summary.Section("Fingerprints", (), marks)))
