"""What a Result keeps so that its run can go on."""

from typing import Any, NamedTuple


class Continuation(NamedTuple):
    """What it takes to go on with a run: options, base, what was learned, where the chains stand."""

    method: Any
    base: Any
    tuning: Any
    states: Any
    num_steps: int
