"""What a method is: how the path is explored, one step at a time."""

from typing import Any, Protocol, runtime_checkable

import jax

from thermocline.methods.tuning import Tuning
from thermocline.movers import Keys, Metric
from thermocline.paths import Path
from thermocline.records import Draw, Draws


class Method(Protocol):
    """Options as a frozen PyTree; the run loop calls these on one chain and maps them over all."""

    def initial_tuning(self, metric: Metric, base_log_ratio: jax.Array) -> Tuning:
        """Before the first round, from the base's metric and the log ratios of exact base draws."""
        ...

    def init(self, key: jax.Array, path: Path, tuning: Tuning, position: jax.Array) -> Any:
        """The state of a chain that starts at `position`, an exact draw of the base."""
        ...

    def step(self, keys: Keys, path: Path, tuning: Tuning, state: Any) -> tuple[Any, Draw]:
        """One transition that leaves the method's law invariant, and its record."""
        ...

    def adapt(self, tuning: Tuning, draws: Draws, is_last: jax.Array) -> Tuning:
        """After a warm-up round, from the kept draws of all chains; unused slots hold NaN log ratios."""
        ...


@runtime_checkable
class Piloted(Method, Protocol):
    """A method whose one step takes in the whole path, and which has its moves tuned by another in warm-up.

    Its step sizes, metric and temperatures come from a pilot that moves at one beta at a time; it may be given a
    share of the warm-up steps for rounds of its own.
    """

    @property
    def has_evidence(self) -> bool: ...

    @property
    def own_warmup(self) -> float:
        """Its own warm-up, as a share of the pilot's."""
        ...

    @property
    def first_draws(self) -> int:
        """Draws a chain that a run which stops by its error begins with."""
        ...

    @property
    def pilot(self) -> Method:
        """What warms up in its place."""
        ...

    def tuned(self, tuning: Tuning) -> "tuple[Piloted, Tuning]":
        """The method and its tuning after the pilot; on the host, so that sizes may depend on what was learned."""
        ...


@runtime_checkable
class Rehearsed(Piloted, Protocol):
    """A piloted method whose sizes are set right by short runs of its own."""

    @property
    def is_sized(self) -> bool:
        """Whether its size was given, so that it need not rehearse."""
        ...

    def resized(self, tuning: Tuning) -> Tuning | None:
        """The tuning at another size, after a rehearsal; None where the size is right."""
        ...
