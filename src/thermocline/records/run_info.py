"""What was run: all that it takes to run it again, and what it cost."""

from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

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


class Fingerprint(NamedTuple):
    """Short hashes and names of all that decides the draws."""

    target: str
    data: str
    base: str
    log_zeta: str
    method: str
    seed: str
    number_of_chains: str
    precision: str
    number_of_devices: str
    version: str

    def marks(self) -> dict[str, str]:
        """By names for people."""
        return {name.replace("_", " "): mark for name, mark in self._asdict().items()}


@dataclass(frozen=True)
class AxisLabels:
    """Names of the axes of named parameters, and the values along them, as plain values."""

    dims: dict[str, list[str]] = field(default_factory=dict)
    coords: dict[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class RunInfo:
    """What a Result says of the run behind it."""

    seed: int
    method: str  # as one would write it
    precision: str
    fingerprint: Fingerprint
    versions: dict[str, str]
    cost: Cost
    notes: tuple[str, ...]  # how the base was come by, in sentences
    caveats: tuple[str, ...]  # why log Z may not be the model's evidence
    biases: tuple[str, ...]  # why the method is not exact
    has_evidence: bool  # whether the method's weights give log Z
    labels: AxisLabels
    observations: str  # hash of what models must share to be compared
