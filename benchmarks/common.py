"""Timing shared by the benchmarks: programs take turns, so that a busy machine slows all of them alike."""

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np


class Ratio(NamedTuple):
    """How much longer one program takes than another: the median over rounds, and its quartiles."""

    median: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.lower:.3f} to {self.upper:.3f})"


def seconds_of(program: Callable[[], Any]) -> float:
    """Seconds that one call takes until its arrays are there."""
    began = time.perf_counter()
    jax.block_until_ready(program())
    return time.perf_counter() - began


def take_turns(programs: dict[str, Callable[[], Any]], *, num_rounds: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Seconds of each program in each round; a round runs every program once, in random order.

    The first call of each compiles and is not counted.
    """
    generator = np.random.default_rng(seed)
    names = list(programs)
    for name in names:
        jax.block_until_ready(programs[name]())
    seconds = {name: np.empty(num_rounds) for name in names}
    for index in range(num_rounds):
        for name in generator.permutation(names):
            seconds[name][index] = seconds_of(programs[name])
    return seconds


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> Ratio:
    """Quartiles of the ratios within rounds, in which both programs met the same machine."""
    lower, median, upper = statistics.quantiles(numerator / denominator, n=4)
    return Ratio(median, lower, upper)
