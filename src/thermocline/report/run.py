"""What was run: all that it takes to run it again, and what it cost."""


from thermocline.report import summary
from thermocline.report.page import Section
from thermocline.results.result import Result


def run(result: Result) -> Section:
    table = summary.run_table(result)
    marks = list(result.info.fingerprint.marks().items())
    return Section(tables=(table._replace(title="", notes=()), summary.Section("Fingerprints", (), marks)))
