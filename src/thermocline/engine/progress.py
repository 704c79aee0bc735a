"""What people see while a run goes on; silent where nobody watches, and never in the way."""

import time
from contextlib import suppress
from typing import Any, Protocol

from thermocline.engine.figures import REFRESH_SECONDS, Answer
from thermocline.engine.notebook import Line


class Reporter(Protocol):
    """Told of phases and steps; must not raise."""

    def phase(self, name: str, total: int | None) -> None: ...
    def advance(self, num_steps: int, num_gradients: int) -> None: ...
    def figures(self, answer: Answer) -> None: ...
    def close(self) -> None: ...


class Silent:
    """Reports nothing."""

    def phase(self, name: str, total: int | None) -> None: ...
    def advance(self, num_steps: int, num_gradients: int) -> None: ...
    def figures(self, answer: Answer) -> None: ...
    def close(self) -> None: ...


class Live:
    """A Rich progress bar: phase, rate, time left, running log Z and round trips."""

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self.bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<11}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("[bold]{task.fields[answer]}"),
            console=console,
            transient=False,
        )
        self.task: Any = None
        self.started = self.shown = time.monotonic()
        self.gradients = 0
        self.bar.start()

    def phase(self, name: str, total: int | None) -> None:
        self._finish()
        self.started, self.gradients = time.monotonic(), 0
        self.task = self.bar.add_task(name, total=total, rate="", answer="")

    def advance(self, num_steps: int, num_gradients: int) -> None:
        self.gradients += num_gradients
        rate = self.gradients / max(time.monotonic() - self.started, 1e-9)
        self.bar.update(self.task, advance=num_steps, rate=f"{rate:,.0f} gradients/s")

    def figures(self, answer: Answer) -> None:
        if time.monotonic() - self.shown < REFRESH_SECONDS:
            return
        found = answer()
        if found is not None:
            self.shown = time.monotonic()
            self.bar.update(self.task, answer=found)

    def close(self) -> None:
        self._finish()
        self.bar.stop()

    def _finish(self) -> None:
        """The present phase is over, however long it was to be."""
        if self.task is not None:
            done = self.bar.tasks[-1].completed or 1
            self.bar.update(self.task, total=done, completed=done)


class Guarded:
    """Passes everything on until the first failure, then nothing: progress must not end a run."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter

    def _tell(self, name: str, *arguments: Any) -> None:
        try:
            getattr(self.reporter, name)(*arguments)
        except Exception:  # noqa: BLE001
            broken, self.reporter = self.reporter, Silent()
            with suppress(Exception):
                broken.close()

    def phase(self, name: str, total: int | None) -> None:
        self._tell("phase", name, total)

    def advance(self, num_steps: int, num_gradients: int) -> None:
        self._tell("advance", num_steps, num_gradients)

    def figures(self, answer: Answer) -> None:
        self._tell("figures", answer)

    def close(self) -> None:
        self._tell("close")


def reporter_for(progress: bool) -> Reporter:
    """A live bar in a terminal or notebook, silence elsewhere."""
    if not progress:
        return Silent()
    from rich.console import Console

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        return Silent()
    try:
        if console.is_jupyter:
            return Guarded(Line())
        return Guarded(Live(console))
    except Exception:  # noqa: BLE001
        return Silent()
