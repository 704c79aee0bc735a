"""What people see while a run goes on; silent where nobody watches, and never in the way."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from html import escape
from typing import Any, Protocol

REFRESH_SECONDS = 0.5
Answer = Callable[[], str | None]  # computed only when it is shown


class Reporter(Protocol):
    """Told of phases and steps; must not raise."""

    def phase(self, name: str, total: int | None) -> None: ...
    def advance(self, num_steps: int, num_gradients: int) -> None: ...
    def figures(self, answer: Answer) -> None: ...
    def close(self, is_whole: bool = True) -> None: ...


class Silent:
    """Reports nothing."""

    def phase(self, name: str, total: int | None) -> None: ...
    def advance(self, num_steps: int, num_gradients: int) -> None: ...
    def figures(self, answer: Answer) -> None: ...
    def close(self, is_whole: bool = True) -> None: ...


class Display:
    """Where a run stands: phase, share done, rate and running answer, shown now and then."""

    name: str
    total: int | None
    done: int
    gradients: int
    answer: str
    latest: Answer
    began: float
    started: float
    answered: float
    shown: float

    def __init__(self) -> None:
        self.name, self.total, self.done, self.gradients = "", None, 0, 0
        self.answer, self.latest = "", lambda: None
        self.began = self.started = self.answered = self.shown = time.monotonic()

    def phase(self, name: str, total: int | None) -> None:
        self.name, self.total, self.done, self.gradients = name, total, 0, 0
        self.started = time.monotonic()
        self.show()

    def advance(self, num_steps: int, num_gradients: int) -> None:
        self.done += num_steps
        self.gradients += num_gradients
        if time.monotonic() - self.shown >= REFRESH_SECONDS:
            self.show()

    def figures(self, answer: Answer) -> None:
        self.latest = answer
        if time.monotonic() - self.answered >= REFRESH_SECONDS:
            self.answer = answer() or self.answer
            self.answered = time.monotonic()
            self.show()

    def close(self, is_whole: bool = True) -> None:
        self.name, self.total, self.gradients = "done" if is_whole else f"interrupted: {self.name}", None, 0
        self.answer = self.latest() or self.answer
        self.show()

    @property
    def rate(self) -> str:
        spent = max(time.monotonic() - self.started, 1e-9)
        return f"{self.gradients / spent:,.0f} gradients/s" if self.gradients else ""

    def show(self) -> None:
        self.shown = time.monotonic()


class Line(Display):
    """In a notebook, a line of HTML without widgets that is replaced as a run goes on."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        super().__init__()
        self.html = HTML
        self.handle: Any = display(HTML(""), display_id=True)

    def show(self) -> None:
        super().show()
        share = f" {min(self.done / self.total, 1.0):.0%}" if self.total else ""
        seconds = f"{self.shown - self.began:.0f} s elapsed"
        words = " · ".join(part for part in (f"{self.name}{share}", seconds, self.rate, self.answer) if part)
        self.handle.update(self.html(f"<code>{escape(words)}</code>"))


class Live(Display):
    """In a terminal, a bar of Rich's for each phase, with its time and, where its length is known, the time left."""

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn
        from rich.text import Text

        super().__init__()

        class Times(ProgressColumn):
            def render(self, task: Any) -> Text:
                return Text(times_of(task), style="progress.remaining")

        self.bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<22}"),
            BarColumn(bar_width=16),
            Times(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("[bold]{task.fields[answer]}"),
            console=console,
            transient=False,
        )
        self.task: Any = None
        self.bar.start()

    def phase(self, name: str, total: int | None) -> None:
        self._finish()
        self.task, self.answer = self.bar.add_task(name, total=total, rate="", answer=""), ""
        super().phase(name, total)

    def close(self, is_whole: bool = True) -> None:
        if is_whole:
            self._finish()
        elif self.task is not None:
            self.show()
            self.bar.update(self.task, description=f"interrupted: {self.name}")
            self.bar.stop_task(self.task)
        self.bar.stop()

    def show(self) -> None:
        super().show()
        self.bar.update(self.task, completed=self.done, rate=self.rate, answer=self.answer, refresh=True)

    def _finish(self) -> None:
        """The present phase is over, however long it was to be."""
        if self.task is not None:
            self.show()
            self.bar.update(self.task, total=self.done or 1, completed=self.done or 1)


class Part:
    """Passes on what a part of the run says, whose phases are then named as its own."""

    def __init__(self, name: str, reporter: Reporter) -> None:
        self.name, self.reporter = name, reporter
        self.advance, self.figures = reporter.advance, reporter.figures

    def phase(self, name: str, total: int | None) -> None:
        self.reporter.phase(f"{self.name}: {name}", total)

    def close(self, is_whole: bool = True) -> None: ...


def times_of(task: Any) -> str:
    """How far a phase of Rich's is, how long it has gone on, and how long it may."""
    clock = lambda seconds: f"{int(seconds) // 60}:{int(seconds) % 60:02d}"  # noqa: E731
    share = f"{task.percentage:3.0f}%, " if task.total else ""
    left = "" if task.finished or not task.time_remaining else f", {clock(task.time_remaining)} remaining"
    return f"{share}{clock(task.elapsed or 0)} elapsed{left}"


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

    def close(self, is_whole: bool = True) -> None:
        self._tell("close", is_whole)


@contextmanager
def watched(reporter: Reporter) -> Iterator[Reporter]:
    """Closes the reporter, which is told whether the run came to its end."""
    try:
        yield reporter
    except BaseException:
        reporter.close(is_whole=False)
        raise
    reporter.close()


def reporter_for(progress: bool) -> Reporter:
    """A live bar in a terminal or notebook, silence elsewhere."""
    if not progress:
        return Silent()
    from rich.console import Console

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        return Silent()
    try:
        return Guarded(Line() if console.is_jupyter else Live(console))
    except Exception:  # noqa: BLE001
        return Silent()
