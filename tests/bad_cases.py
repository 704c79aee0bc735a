"""A case of bad input: the call, the sentence it must get, and how that is looked at."""

import os
import traceback
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest

import thermocline as tc
from tests.spoiled import sample, untempered


class Case(NamedTuple):
    """What is wrong, the call, and parts of the sentence, in order."""

    what: str
    call: Callable[[], Any]
    says: tuple[str, ...]


def case(what: str, call: Callable[[], Any], *says: str) -> Case:
    return Case(what, call, says)


def option(name: str, value: Any, remedy: str) -> Case:
    return case(f"{name}={value!r}", lambda: sample(**{name: value}), f"{name} is {value!r}", remedy)


def base(what: str, given: Any, *says: str) -> Case:
    return case(f"a base {what}", lambda: sample(base=given), *says)


def evidence(what: str, ask: Callable[[tc.Result], Any]) -> Case:
    return case(f"{what} of an untempered run", lambda: ask(untempered()), what, "need a tempered run", "beta = 1")


def sentence_of(wrong: Case) -> str:
    """What is said, after a traceback that has nothing of JAX in it."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        wrong.call()
    assert f"{os.sep}jax{os.sep}" not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def each_of(table: Iterable[Case]) -> Any:
    """A test for each case of a table."""
    return pytest.mark.parametrize("wrong", [pytest.param(wrong, id=wrong.what) for wrong in table])


def check_sentence(wrong: Case) -> None:
    """One line, not long, that has its parts in order."""
    said, place = sentence_of(wrong), 0
    for part in wrong.says:
        assert part in said[place:], said
        place = said.index(part, place) + len(part)
    assert "\n" not in said
    assert len(said) < 500
