"""Tables of figures in README and docs, rebuilt from what studies have stored: `make tables`.

A study stores its table as `studies/results/NAME.json`: header, rows, the command, and the commit and the day on which
it was measured. It stands in a document between `<!-- table NAME -->` and `<!-- end NAME -->`. A test fails where the
two differ, or where what is stored stands nowhere.
"""

import datetime
import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "studies" / "results"
PLACE = re.compile(r"<!-- table ([\w-]+) -->\n.*?<!-- end \1 -->", re.DOTALL)


class Table(NamedTuple):
    """What a study printed, and where it comes from."""

    command: str
    commit: str
    date: str
    header: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """The first column to the left and the others to the right; below it, what was measured."""
        lines = [self.header, ["---", *["---:"] * (len(self.header) - 1)], *self.rows]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return f"{table}\n\n*`{self.command}`, {self.date}, commit {self.commit}.*"


def store(name: str, command: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Keep a table as of today and of the commit that is checked out."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True)
    made = Table(
        command,
        commit.stdout.strip() or "unknown",
        datetime.date.today().isoformat(),
        list(header),
        [[str(entry) for entry in row] for row in rows],
    )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(made._asdict(), indent=1, ensure_ascii=False) + "\n")


def stored(name: str) -> Table:
    return Table(**json.loads((RESULTS / f"{name}.json").read_text()))


def documents() -> list[Path]:
    """README and all pages."""
    return [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def rebuilt(text: str) -> str:
    """The text of a document with every table as it is stored."""

    def table(place: re.Match[str]) -> str:
        name = place[1]
        return f"<!-- table {name} -->\n{stored(name).markdown()}\n<!-- end {name} -->"

    return PLACE.sub(table, text)


def main() -> None:
    for document in documents():
        text = document.read_text()
        if (new := rebuilt(text)) != text:
            document.write_text(new)
            print(f"rebuilt {document.relative_to(REPOSITORY)}")


if __name__ == "__main__":
    main()
