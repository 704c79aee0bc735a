"""Misspelt options: which one was meant."""

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

from thermocline.support.errors import ThermoclineError

P = ParamSpec("P")
T = TypeVar("T")


def suggesting(function: Callable[P, T], name: str = "") -> Callable[P, T]:
    """The function, which answers an option that it does not have with those that it has."""
    parameters = inspect.signature(function).parameters.values()
    known = [each.name for each in parameters if each.kind is not each.VAR_POSITIONAL and each.name != "self"]

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        for given in kwargs:
            if given not in known:
                close = get_close_matches(given, known, 1, 0.5)
                remedy = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}."
                raise ThermoclineError(f"{name or function.__name__} has no option {given!r}; {remedy}")
        return function(*args, **kwargs)

    return checked
