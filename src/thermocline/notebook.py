"""What a notebook shows: a line of progress that needs no widgets, and targets and fits as tables."""

import time
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from thermocline.draws import Draws
from thermocline.progress import REFRESH_SECONDS, running_answer
from thermocline.summary import Section, base_name, section_html
from thermocline.target import named_leaves

if TYPE_CHECKING:
    from thermocline.bases import BaseFit
    from thermocline.target import Target

MOST_STORY = 12


class Line:
    """One line of HTML that is replaced as a run goes on: phase, share done, rate, running log Z."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self.html = HTML
        self.handle: Any = display(HTML(""), display_id=True)
        self.name, self.total, self.done, self.gradients, self.answer = "", None, 0, 0, ""
        self.began = self.started = time.monotonic()
        self.shown = 0.0
        self.latest: tuple[list[Draws], float] | None = None

    def phase(self, name: str, total: int | None) -> None:
        self.name, self.total, self.done, self.gradients = name, total, 0, 0
        self.started = time.monotonic()
        self._show()

    def advance(self, num_steps: int, num_gradients: int) -> None:
        self.done += num_steps
        self.gradients += num_gradients
        if time.monotonic() - self.shown > REFRESH_SECONDS:
            self._show()

    def figures(self, chunks: list[Draws], log_zeta: float) -> None:
        self.latest = chunks, log_zeta
        if time.monotonic() - self.shown > REFRESH_SECONDS:
            self.answer = running_answer(chunks, log_zeta) or self.answer
            self._show()

    def close(self) -> None:
        self.name, self.total, self.gradients = "done", None, 0
        self.answer = (running_answer(*self.latest) if self.latest else None) or self.answer
        self._show()

    def _show(self) -> None:
        self.shown = time.monotonic()
        share = f" {min(self.done / self.total, 1.0):.0%}" if self.total else ""
        rate = f"{self.gradients / max(self.shown - self.started, 1e-9):,.0f} gradients/s" if self.gradients else ""
        seconds = f"{self.shown - self.began:.0f} s"
        words = " · ".join(part for part in (f"{self.name}{share}", seconds, rate, self.answer) if part)
        self.handle.update(self.html(f"<code>{escape(words)}</code>"))


def target_html(target: "Target") -> str:
    """What is sampled: parameters, data and what is known besides."""
    rows = [("parameters", _shapes(target.initial_position))]
    rows.append(("data", _shapes(target.data) if target.data is not None else "none"))
    rows.append(("prior", "none" if target.prior is None else type(target.prior).__name__))
    rows += [("caveat", str(caveat)) for caveat in getattr(target, "caveats", ())]
    return f'<div class="thermocline">{section_html(Section("Target", (), rows))}</div>'


def fit_html(fit: "BaseFit") -> str:
    """A fitted base: its kind, log zeta, and how it was come by."""
    rows = [
        ("base", base_name(fit.base)),
        ("log ζ", f"{fit.log_zeta:.6g} ({fit.log_zeta_is})"),
        ("gradients", f"{fit.num_gradients:,}"),
    ]
    return f'<div class="thermocline">{section_html(Section("Base", (), rows, tuple(fit.story[:MOST_STORY])))}</div>'


def _shapes(tree: Any) -> str:
    """Names with their shapes."""
    return ", ".join(
        f"{name}{list(np.shape(leaf))}" if np.ndim(leaf) else name for name, leaf in named_leaves(tree).items()
    )
