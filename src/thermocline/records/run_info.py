"""What was run: all that it takes to run it again, and what it cost."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from thermocline.records.cost import Cost


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
