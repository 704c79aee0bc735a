"""The library's own exceptions and warnings, and how they quote what they are about."""

from typing import Any


def brief(value: Any, longest: int = 80) -> str:
    """A value as it is written, in one short line."""
    written = " ".join(repr(value).split())
    return written if len(written) <= longest else f"{written[: longest - 1]}…"


def reason(error: BaseException) -> str:
    """What an error of somebody else's code says, in a line."""
    said = " ".join(str(error).split("\n\n")[0].split()).rstrip(". ")
    return f"{type(error).__name__}: {said[:300]}" if said else type(error).__name__


class ThermoclineError(ValueError):
    """The input cannot be sampled as given; the message says why and what to change."""


class CheckpointError(ThermoclineError):
    """A checkpoint is damaged, or belongs to another run."""


class ThermoclineWarning(UserWarning):
    """Results may be unreliable; the message names what was noticed."""
