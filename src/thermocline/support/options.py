"""What counts as a number where a user gives an option: True and False do not."""

from numbers import Real
from typing import Any

import numpy as np

from thermocline.support.errors import ThermoclineError, brief


def is_whole(value: Any) -> bool:
    """An integer of Python or NumPy."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """A real number of Python or NumPy."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_seed(seed: Any) -> None:
    """The same seeds everywhere."""
    if not (is_whole(seed) and 0 <= seed < 2**32):
        raise ThermoclineError(f"seed is {brief(seed)}; give an integer from 0 to 2**32 - 1.")
