"""Where pure functions are computed: here, one after another, or wherever another runner sends them."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Runner = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]


def in_process(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """A runner: maps a pure function over items, here one after another, each only when it is asked for."""
    return map(function, items)
