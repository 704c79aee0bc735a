"""Ctrl-C and SIGTERM wait for a safe point: raised while XLA compiles, they end in crashes."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_handlers: dict[int, Any] = {}  # of before, while they are held
_waiting: list[int] = []  # numbers of the signals that came since


@contextmanager
def held() -> Iterator[None]:
    """What a signal's handler would have done at once, it does at the next `check`, or at the end.

    A second signal is not held: it means now, wherever that is. Only the main thread has handlers.
    """
    if _handlers or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    _handlers.update({number: handler for number, handler in before.items() if callable(handler)})
    for number in _handlers:
        signal.signal(number, _hold)
    try:
        yield
    finally:
        held_back = dict(_handlers)
        for number, handler in held_back.items():
            signal.signal(number, handler)
        came = _waiting[:]  # none is lost: from here on handlers act by themselves
        _handlers.clear()
        _waiting.clear()
        for number in came:
            held_back[number](number, None)


def check() -> None:
    """A safe point: here signals that wait are handled."""
    if _waiting and threading.current_thread() is threading.main_thread():
        number = _waiting.pop()
        _handlers[number](number, None)


def is_waiting() -> bool:
    """Whether a signal has come and is not handled yet."""
    return bool(_waiting)


def _hold(number: int, frame: Any) -> None:
    if _waiting:
        _waiting.clear()
        _handlers[number](number, frame)
        return
    _waiting.append(number)
    if sys.stderr is not None and sys.stderr.isatty():
        os.write(2, b"\nStopping after this step; once more to stop at once.\n")
