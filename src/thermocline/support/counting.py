"""What a density costs, by its JAX program: the numbers it makes, without running it."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

LONG = 1000  # times that a loop of unknown length may go round


def largest_array(function: Callable[..., Any], position: Any) -> int:
    """Numbers in the largest array that a function makes of one position."""
    made = _equations(jax.make_jaxpr(function)(position).jaxpr)
    return max((size for _, sizes, _ in made for size in sizes), default=1)


def operations(function: Callable[..., Any], position: Any) -> int:
    """About how many operations a function of one position takes.

    A number made is one, and in a product of matrices as many as it sums. A loop of unknown length, as that of a solver
    that chooses its steps, is taken for a long one.
    """
    made = _equations(jax.make_jaxpr(function)(position).jaxpr)
    return sum(times * sum(sizes) * _summed(equation) for equation, sizes, times in made)


def _equations(jaxpr: Any, times: int = 1) -> Iterator[tuple[Any, list[int], int]]:
    """Every equation that makes something, the sizes of what it makes, and how often it is known to be repeated."""
    for equation in jaxpr.eqns:
        inner = [getattr(value, "jaxpr", value) for value in equation.params.values()]
        inner = [value for value in inner if hasattr(value, "eqns")]
        for part in inner:
            yield from _equations(part, times * _repeats(equation))
        if not inner:
            yield equation, [int(np.prod(getattr(out.aval, "shape", ()))) for out in equation.outvars], times


def _repeats(equation: Any) -> int:
    """How often what is inside of an equation is done."""
    return LONG if equation.primitive.name == "while" else int(equation.params.get("length", 1))


def _summed(equation: Any) -> int:
    """Terms of each number that a product of matrices makes; one for anything else."""
    if equation.primitive.name != "dot_general":
        return 1
    contracted = equation.params["dimension_numbers"][0][0]
    return int(np.prod([equation.invars[0].aval.shape[axis] for axis in contracted]))
