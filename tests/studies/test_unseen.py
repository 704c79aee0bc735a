"""The study of unseen targets counts what it says, and the count of constants sees numbers and not indices."""

from io import StringIO

from rich.console import Console

from studies.constants import constants_in
from studies.unseen import is_wrong, line, table

RUN = {"family": "funnel", "seed": 1, "dimension": 3, "log_volume_spread": 0.0, "status": "ok", "seconds": 2.0}
ANSWER = {"z": 0.5, "difference": 0.01, "standard_error": 0.02, "num_lost": 0, "num_modes": 1, "num_draws": 128}
GOOD = RUN | ANSWER | {"failed": []}


def test_wrong_is_ok_and_off_by_more_than_four_errors():
    assert not is_wrong(GOOD)
    assert is_wrong(GOOD | {"z": -4.5})
    assert not is_wrong(GOOD | {"z": -4.5, "status": "suspect"})


def test_the_table_counts_by_family_and_in_all():
    runs = [GOOD, GOOD | {"z": 9.0, "num_lost": 1}, GOOD | {"status": "failed"}, RUN | {"status": "timeout"}]
    console = Console(width=140, file=StringIO())
    console.print(table([*runs, GOOD | {"family": "bounded"}]))
    rows = [[cell.strip() for cell in row.split("│")[1:-1]] for row in console.file.getvalue().splitlines()]  # type: ignore
    counts = {row[0]: row[1:6] for row in rows if row and row[0] in ("funnel", "bounded", "all")}
    assert counts["funnel"] == ["4", "2", "1", "1", "1"]
    assert counts["bounded"] == ["1", "1", "1", "0", "0"]
    assert counts["all"] == ["5", "3", "2", "1", "1"]


def test_a_run_without_an_answer_has_a_line_too():
    assert "timeout" in line(RUN | {"status": "timeout"})
    assert "±" in line(GOOD)


def test_constants_are_numbers_that_are_no_indices_and_not_plain():
    source = "LIMIT = 0.7\nx = y[3] + 1 - 0.5\nz = sum(y, axis=7) * 12\n"
    assert [(found.name, found.value) for found in constants_in("a", source)] == [("LIMIT", 0.7), ("z", 12)]
