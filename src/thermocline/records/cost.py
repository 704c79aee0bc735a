"""What a run cost, by phase."""

from dataclasses import dataclass, fields
from typing import Any

NAMES = {"warmup": "warm-up", "modes": "mode table"}  # of phases that are not called as their field is


@dataclass(frozen=True)
class Phases:
    """A number for every phase of a call: seconds, or evaluations of the density with its gradient."""

    base: Any = 0  # finding one
    compile: Any = 0
    ramp: Any = 0  # the first way up the path
    warmup: Any = 0
    adapt: Any = 0  # between the rounds of warm-up
    sampling: Any = 0
    modes: Any = 0  # the table of modes

    def __add__(self, other: "Phases") -> "Phases":
        return Phases(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def total(self) -> Any:
        return sum(getattr(self, field.name) for field in fields(self))

    def shown(self) -> dict[str, Any]:
        """The phases that took something, as people call them."""
        values = {NAMES.get(field.name, field.name): getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value}


@dataclass(frozen=True)
class Cost:
    """Seconds and evaluations of a call."""

    seconds: Phases
    evaluations: Phases

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.seconds + other.seconds, self.evaluations + other.evaluations)
