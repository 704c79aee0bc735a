"""Tables of figures in README and docs, rebuilt from what studies have stored: `make tables`.

A study stores its table as `studies/results/NAME.json`: header, rows, the command, and the commit and the day on which
it was measured. It stands in a document between `<!-- table NAME -->` and `<!-- end NAME -->`. A test fails where the
two differ, or where what is stored stands nowhere. A place whose table is not stored says so.
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
NOT_YET = "*Not measured yet.*"
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


def commit_now() -> str:
    """That which is checked out."""
    said = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True)
    return said.stdout.strip() or "unknown"


def store(
    name: str, command: str, header: Sequence[str], rows: Sequence[Sequence[Any]], commit: str | None = None
) -> None:
    """Keep a table as of today and of the commit that is checked out, or of that at which its runs were made."""
    made = Table(
        command,
        commit or commit_now(),
        datetime.date.today().isoformat(),
        list(header),
        [[str(entry) for entry in row] for row in rows],
    )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(made._asdict(), indent=1, ensure_ascii=False) + "\n")


def stored(name: str) -> Table | None:
    path = RESULTS / f"{name}.json"
    return Table(**json.loads(path.read_text())) if path.exists() else None


def documents() -> list[Path]:
    """README and all pages."""
    return [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def rebuilt(text: str) -> str:
    """The text of a document with every table as it is stored."""

    def table(place: re.Match[str]) -> str:
        name = place[1]
        shown = made.markdown() if (made := stored(name)) else NOT_YET
        return f"<!-- table {name} -->\n{shown}\n<!-- end {name} -->"

    return PLACE.sub(table, text)


def main() -> None:
    for document in documents():
        text = document.read_text()
        if (new := rebuilt(text)) != text:
            document.write_text(new)
            print(f"rebuilt {document.relative_to(REPOSITORY)}")


if __name__ == "__main__":
    main()
