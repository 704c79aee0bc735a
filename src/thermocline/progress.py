"""What people see while a run goes on; silent where nobody watches, and never in the way."""

import time
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from thermocline.draws import Draws
from thermocline.estimators.convergence import round_trips
from thermocline.estimators.evidence import log_ratio

REFRESH_SECONDS = 0.5
MOST_DRAWS_SHOWN = 2_000  # a chain; running figures thin longer runs


class Reporter(Protocol):
    """Told of phases and steps; must not raise."""

    def phase(self, name: str, total: int | None) -> None: ...
    def advance(self, num_steps: int, num_gradients: int) -> None: ...
    def figures(self, chunks: list[Draws], log_zeta: float) -> None: ...
    def close(self) -> None: ...


class Silent:
    """Reports nothing."""

    def phase(self, name: str, total: int | None) -> None: ...
    def advance(self, num_steps: int, num_gradients: int) -> None: ...
    def figures(self, chunks: list[Draws], log_zeta: float) -> None: ...
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

    def figures(self, chunks: list[Draws], log_zeta: float) -> None:
        if time.monotonic() - self.shown < REFRESH_SECONDS:
            return
        answer = running_answer(chunks, log_zeta)
        if answer is not None:
            self.shown = time.monotonic()
            self.bar.update(self.task, answer=answer)

    def close(self) -> None:
        self._finish()
        self.bar.stop()

    def _finish(self) -> None:
        """The present phase is over, however long it was to be."""
        if self.task is not None:
            done = self.bar.tasks[-1].completed or 1
            self.bar.update(self.task, total=done, completed=done)


def running_answer(chunks: list[Draws], log_zeta: float) -> str | None:
    """Log Z and round trips from the draws so far, or None while there are too few or no evidence."""
    length = sum(chunk.log_ratio.shape[1] for chunk in chunks)
    if length < 8:
        return None
    stride = max(1, length // MOST_DRAWS_SHOWN)
    draws = Draws(*(np.concatenate(parts, axis=1)[:, ::stride] for parts in zip(*chunks, strict=True)))
    if not np.isfinite(draws.log_weight_base).any():
        return None
    estimate = log_ratio(draws) + log_zeta
    return f"log Z {estimate}, {round_trips(draws).sum()} round trips"


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

    def figures(self, chunks: list[Draws], log_zeta: float) -> None:
        self._tell("figures", chunks, log_zeta)

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
            from thermocline.notebook import Line

            return Guarded(Line())
        return Guarded(Live(console))
    except Exception:  # noqa: BLE001
        return Silent()
