"""Ctrl-C and SIGTERM of the command: each ends it with a sentence and a status of its own."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from thermocline.support.interrupts import is_waiting


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends the command in the way of Ctrl-C."""


@contextmanager
def stoppable() -> Iterator[None]:
    """SIGTERM is raised like Ctrl-C; a second signal, while the first waits for a safe point, ends the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def status_of(stop: KeyboardInterrupt) -> int:
    """The exit status as shells have it: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)


def _stop(number: int, frame: Any) -> None:
    if is_waiting():
        os._exit(128 + number)
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt
