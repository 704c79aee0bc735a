"""Progress in a notebook: one line of HTML, without widgets."""

import time
from html import escape
from typing import Any

from thermocline.engine.figures import REFRESH_SECONDS, Answer


class Line:
    """One line of HTML that is replaced as a run goes on: phase, share done, rate, running log Z."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self.html = HTML
        self.handle: Any = display(HTML(""), display_id=True)
        self.name, self.total, self.done, self.gradients, self.answer = "", None, 0, 0, ""
        self.began = self.started = time.monotonic()
        self.shown = 0.0
        self.latest: Answer | None = None

    def phase(self, name: str, total: int | None) -> None:
        self.name, self.total, self.done, self.gradients = name, total, 0, 0
        self.started = time.monotonic()
        self._show()

    def advance(self, num_steps: int, num_gradients: int) -> None:
        self.done += num_steps
        self.gradients += num_gradients
        if time.monotonic() - self.shown > REFRESH_SECONDS:
            self._show()

    def figures(self, answer: Answer) -> None:
        self.latest = answer
        if time.monotonic() - self.shown > REFRESH_SECONDS:
            self.answer = answer() or self.answer
            self._show()

    def close(self) -> None:
        self.name, self.total, self.gradients = "done", None, 0
        self.answer = (self.latest() if self.latest else None) or self.answer
        self._show()

    def _show(self) -> None:
        self.shown = time.monotonic()
        share = f" {min(self.done / self.total, 1.0):.0%}" if self.total else ""
        rate = f"{self.gradients / max(self.shown - self.started, 1e-9):,.0f} gradients/s" if self.gradients else ""
        seconds = f"{self.shown - self.began:.0f} s"
        words = " · ".join(part for part in (f"{self.name}{share}", seconds, rate, self.answer) if part)
        self.handle.update(self.html(f"<code>{escape(words)}</code>"))
