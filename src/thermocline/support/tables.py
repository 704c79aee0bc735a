"""Tables for people: a few rows with a heading and notes, as plain text and as HTML."""

from html import escape
from io import StringIO
from typing import NamedTuple, TypeVar

T = TypeVar("T")
WIDTH = 110
LONGEST_NUMBER = 32  # characters of a cell that is not broken
COLOURS: dict[str, str] = {"ok": "#1a7f37", "suspect": "#9a6700", "failed": "#cf222e"}


class Section(NamedTuple):
    """One table: a heading, the columns' names (none for pairs of label and text), rows of cells, notes below."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    notes: tuple[str, ...] = ()


class Printed(str):
    """A text that a Python prompt shows as it is."""

    def __repr__(self) -> str:
        return self.rstrip("\n")


class Rows(tuple[T, ...]):
    """A tuple that a Python prompt shows with an item a line."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self)) or "()"


def sections_text(tables: list[Section]) -> Printed:
    """Tables with their headings and notes, as plain text."""
    from rich import box
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    stream = StringIO()
    console = Console(file=stream, width=WIDTH, color_system=None, force_terminal=False, force_jupyter=False)
    for title, columns, rows, notes in tables:
        has_head = bool(columns)
        lines = box.SIMPLE_HEAD if has_head else None
        table = Table(box=lines, show_header=has_head, pad_edge=False, padding=(0, 2, 0, 0))
        for index, column in enumerate(columns or rows[0]):
            is_number = has_head and index > 0 and max((len(row[index]) for row in rows), default=0) <= LONGEST_NUMBER
            side = "right" if is_number else "left"
            table.add_column(Text(column) if has_head else "", justify=side, no_wrap=is_number, overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        if title:
            console.print(Text(f"\n{title}"))
        console.print(table)
        for note in notes:
            console.print(Padding(Text(note), (0, 0, 0, 2)))
    return Printed("\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n")


def html_of(*sections: Section) -> str:
    """Tables as one piece of a notebook, that needs nothing from outside."""
    return f'<div class="thermocline">{"".join(map(_html, sections))}</div>'


def _html(section: Section) -> str:
    """One table; a verdict or a status is coloured by its word."""
    right = "right" if section.columns else "left"  # where numbers stand

    def row_of(tag: str, cells: tuple[str, ...]) -> str:
        written = []
        for index, cell in enumerate(cells):
            colour = COLOURS.get(cell.split(":")[0]) if tag == "td" and index > 0 else None
            style = f"text-align:{right if index else 'left'}" + (f";color:{colour}" if colour else "")
            written.append(f'<{tag} style="{style}">{escape(cell)}</{tag}>')
        return f"<tr>{''.join(written)}</tr>"

    title = f"<h4>{escape(section.title)}</h4>" if section.title else ""
    head = f"<thead>{row_of('th', section.columns)}</thead>" if section.columns else ""
    body = "".join(row_of("td", row) for row in section.rows)
    notes = "".join(f"<li>{escape(note)}</li>" for note in section.notes)
    return f"{title}<table>{head}<tbody>{body}</tbody></table>" + (f"<ul>{notes}</ul>" if notes else "")
