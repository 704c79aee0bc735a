"""What the experiments share: their options, where results go, tables in a README, and how figures look."""

import argparse
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
BLUE, GREEN, ORANGE, PINK, SKY, INK = "#0072B2", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#333333"
STYLE: Any = {
    "font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK,
    "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "text.color": INK, "legend.frameon": False,
}  # the colours are Okabe and Ito's, safe for colour blindness


class Options(NamedTuple):
    """How an experiment was called: in its full form, or in one of minutes that leaves the stored results alone."""

    quick: bool
    out: Path


def options(folder: Path, parser: argparse.ArgumentParser | None = None) -> Options:
    """Read `--quick` and `--out`; a full run writes into the experiment's own folder, a quick one into `build/`."""
    parser = parser or argparse.ArgumentParser(description=f"The experiment in {folder.name}; see its README.")
    parser.add_argument("--quick", action="store_true", help="minutes instead of about an hour; writes into build/")
    parser.add_argument("--out", type=Path, help="folder for the figure, result.json and README")
    given = parser.parse_args()
    out = given.out or (REPOSITORY / "build" / f"paper-{folder.name}" if given.quick else folder)
    return Options(given.quick, out)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as Markdown has it, the first column to the left and the others to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def store(folder: Path, out: Path, numbers: dict[str, Any], tables: dict[str, str]) -> None:
    """Write `result.json` and the README, each table put between `<!-- name -->` and `<!-- end name -->`."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "result.json").write_text(json.dumps(numbers, indent=1) + "\n")
    write_readme(folder, out, tables)


def write_readme(folder: Path, out: Path, tables: dict[str, str]) -> None:
    """The folder's README with these tables in their places, into `out`."""
    text = (folder / "README.md").read_text()
    for name, table in tables.items():
        opening, closing = f"<!-- {name} -->", f"<!-- end {name} -->"
        if opening not in text or closing not in text:
            raise ValueError(f"{folder.name}/README.md has no place for the table {name!r}: "
                             f"put {opening} and {closing} where it belongs")
        place = re.escape(opening) + ".*?" + re.escape(closing)
        text = re.sub(place, lambda _, new=f"{opening}\n{table}\n{closing}": new, text, flags=re.DOTALL)
    (out / "README.md").write_text(text)
