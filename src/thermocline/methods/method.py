"""What a method is: how the path is explored, one step at a time, and the facts that it states of itself."""

from enum import Enum
from typing import Any, Protocol

import jax
import numpy as np

from thermocline.methods import tuning as tune
from thermocline.methods.options import check_parts
from thermocline.methods.tuning import Tuning
from thermocline.movers import Keys, Metric, Mover
from thermocline.paths import Path
from thermocline.records import Draw, Draws
from thermocline.support import fingerprint
from thermocline.support.errors import ThermoclineError, brief


class Temperatures(Enum):
    """What the inverse temperatures of a method are, and so where its tuning has them."""

    LAW = "beta is drawn from a law along with x: `tuning.law`"
    SCHEDULE = "fixed ones, visited in order or held all at once: `tuning.schedule`"
    NONE = "neither: every draw is one of the target, or counts as none"


class Method(Protocol):
    """Options as a frozen PyTree, facts, and functions that the run loop calls on one chain and maps over all.

    What is learned lives in the tuning, never in the method.
    """

    @property
    def has_evidence(self) -> bool: ...  # the weights of its draws give log Z

    @property
    def temperatures(self) -> Temperatures: ...

    @property
    def is_sized(self) -> bool: ...  # array sizes are given beforehand; else `tuned` is asked again after short runs

    @property
    def first_draws(self) -> int: ...  # a chain, where a run is not told how many, or stops by its error

    @property
    def pilot(self) -> "Method | None": ...  # warms up in its place, where one step takes in the whole path

    @property
    def own_warmup(self) -> float: ...  # its own rounds of warm-up, as a share of the steps asked for

    @property
    def biases(self) -> tuple[str, ...]: ...  # why its draws are off by more than chance, in sentences

    def initial_tuning(self, metric: Metric, base_log_ratio: np.ndarray) -> Tuning:
        """Before the first round, from the base's metric and the log ratios of exact base draws.

        This and `adapt` are called on the host with NumPy arrays, of one target or, in `sample_many`, of many at once:
        then all arrays and all leaves of a tuning have a leading axis over targets.
        """
        ...

    def init(self, key: jax.Array, path: Path, tuning: Tuning, position: jax.Array) -> Any:
        """The state of a chain that starts at `position`, an exact draw of the base."""
        ...

    def step(self, keys: Keys, path: Path, tuning: Tuning, state: Any) -> tuple[Any, Draw]:
        """One transition that leaves the method's law invariant, and its record."""
        ...

    def adapt(self, tuning: Tuning, draws: Draws, is_last: bool) -> Tuning:
        """After a warm-up round, from the kept draws (chain, draw) of all chains; unused slots hold NaN log ratios."""
        ...

    def tuned(self, tuning: Tuning) -> Tuning:
        """With the sizes and temperatures that what was learned asks for; the same object where they are right.

        Asked on the host, of what the pilot has learned, and then of what short runs at these sizes have.
        """
        ...


class SelfTuned:
    """A method that warms up by itself and draws beta from its `law`, if it has one; what differs is stated anew."""

    mover: Mover

    has_evidence = True
    temperatures = Temperatures.LAW
    is_sized = True
    first_draws = 1000
    pilot = None
    own_warmup = 1.0
    num_nodes = tune.NUM_NODES  # of the step size along beta; one where beta moves with x

    @property
    def biases(self) -> tuple[str, ...]:
        return ()

    def initial_tuning(self, metric: Metric, base_log_ratio: np.ndarray) -> Tuning:
        law = getattr(self, "law", None)
        return tune.initial_tuning(self.mover, metric, law, base_log_ratio, num_nodes=self.num_nodes)

    def adapt(self, tuning: Tuning, draws: Draws, is_last: bool) -> Tuning:
        return tune.adapt_law(tune.adapt_moves(tuning, self.mover, draws, is_last), draws)

    def tuned(self, tuning: Tuning) -> Tuning:
        return tuning


def check_method(method: Any) -> None:
    """Raise where a method is none, or does not say all that a method says."""
    if isinstance(method, type) or not hasattr(method, "step"):
        raise ThermoclineError(
            f"method is {brief(method)}; give an object with its options, such as tc.GibbsTempering()."
        )
    missing = [name for name in vars(Method) if not (name.startswith("_") or hasattr(method, name))]
    if missing:
        raise ThermoclineError(
            f"{type(method).__name__} lacks {', '.join(missing)}, which every method has; docs/extending.md shows one."
        )
    check_parts(method)


def describe_method(method: Any) -> str:
    """A method and its parts by name, as one would write it: to be shown, and nothing decided by it."""
    parts = (getattr(method, name, None) for name in ("mover", "law"))
    return f"{type(method).__name__}({', '.join(type(part).__name__ for part in parts if part is not None)})"


def method_fingerprint(method: Any) -> str:
    """Hash of a method's options, and of the one that may be a user's function and is not drawn from."""
    control_map = getattr(method, "control_map", None)
    return fingerprint.of_arrays(method) + ("" if control_map is None else fingerprint.of_function(control_map, 0.5))
