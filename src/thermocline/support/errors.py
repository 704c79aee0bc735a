"""The library's own exceptions and warnings, how they quote what they are about, and where errors of others arose."""

import traceback
from pathlib import Path
from typing import Any

PACKAGE, STANDARD = str(Path(__file__).parents[1]), str(Path(traceback.__file__).parent)
LONGEST = 80  # characters of a value that is quoted


def brief(value: Any) -> str:
    """A value as it is written, in one short line."""
    written = " ".join(repr(value).split())
    return written if len(written) <= LONGEST else f"{written[: LONGEST - 1]}…"


class ThermoclineError(ValueError):
    """The input cannot be sampled as given; the message says why and what to change."""


class CheckpointError(ThermoclineError):
    """A checkpoint is damaged, or belongs to another run."""


class ThermoclineWarning(UserWarning):
    """Results may be unreliable; the message names what was noticed."""


def cause_of(error: BaseException) -> str:
    """Another's error in one line: where in the user's own code it arose, its type, and the first line it says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}: {said}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame.filename)]
    return f"{frames[-1].filename}, line {frames[-1].lineno}: {said}" if frames else said


def _is_users(file: str) -> bool:
    """Neither ours, nor installed, nor of the interpreter itself."""
    return not file.startswith((PACKAGE, STANDARD, "<frozen")) and "site-packages" not in file


def reason(error: BaseException) -> str:
    """The same, to go on within a sentence."""
    return cause_of(error).rstrip(". ")
