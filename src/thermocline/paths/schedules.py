"""Schedules: inverse temperatures that are fixed beforehand, and not drawn."""

from typing import Any

import numpy as np

from thermocline.support.errors import ThermoclineError
from thermocline.support.pytree import pytree, static


@pytree
class TemperatureSchedule:
    """Inverse temperatures that a method visits in order, or holds all at once: a schedule, and not a law of beta.

    No single draw knows both ends of the path. Every `group` draws in a row are one piece, independent of all other
    draws; 0 where draws are those of a chain. `barrier` is what warm-up has measured between replicas, where it has.
    """

    betas: Any
    group: int = static(default=0)
    barrier: Any = None


def sigmoidal_betas(num_rungs: int, scale: float = 4.0) -> np.ndarray:
    """Inverse temperatures from 0 to 1, crowded at both ends as the paper's experiments space them."""
    grid = 1 / (1 + np.exp(-scale * np.linspace(-1, 1, num_rungs)))
    return (grid - grid[0]) / (grid[-1] - grid[0])


def checked_betas(betas: Any) -> np.ndarray:
    """A schedule that rises from 0 to 1."""
    schedule = np.asarray(betas, float)
    goes_up = schedule.ndim == 1 and schedule.size > 1 and np.all(np.diff(schedule) >= 0)
    if not goes_up or schedule[0] != 0 or schedule[-1] != 1:
        raise ThermoclineError(
            f"betas is {betas!r}; give inverse temperatures that rise from 0 to 1, as tc.sigmoidal_betas(100) does."
        )
    return schedule
