"""A target on a batch of flat rows: NumPy in, log density and gradient out, and every row counted."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.support.budget import Budget
from thermocline.support.counting import largest_array, operations
from thermocline.support.errors import ThermoclineError
from thermocline.support.flat import ravelled, unravelled
from thermocline.support.interrupts import check
from thermocline.support.options import check_seed
from thermocline.support.precision import cast, computing_in
from thermocline.support.programs import jit_by
from thermocline.support.pytree import pytree
from thermocline.support.runner import Runner, in_process
from thermocline.target import Target, check_shapes, check_target, data_of, describe, named_leaves, not_finite

WIDTHS = (16, 256)  # rows of the two sizes in which the one program is compiled
WIDE_WIDTHS = (16, 64)  # of a density that makes arrays of more than `WIDE` numbers a row: then caches are the limit
WIDE = 4096


class Trouble(NamedTuple):
    """How many rows gave NaN or +inf, and the first of them with what it gave."""

    number: int = 0
    row: np.ndarray | None = None
    value: float = np.nan


class RowDensity(Protocol):
    """What ascents and curvatures need of a density: an `Evaluator`, or something made of one."""

    @property
    def precision(self) -> str: ...

    def __call__(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...


class Evaluator:
    """Log density and gradient of a target at ravelled positions, one a row.

    All that is not the chains' own loop asks here: any number of rows at any time, without compiling anew. Rows are
    padded to the next of two sizes and looped over in Python; a second target of the same function and shapes shares
    the programs. A host target is called as it is. What is NaN or +inf comes back as -inf, and `trouble` remembers it.
    A call that the `budget` cannot pay for raises `BudgetSpentError`. What is more than one size holds goes to the
    `runner`.
    """

    target: Target
    bare: Target
    widths: tuple[int, int]
    operations: int | None
    precision: str
    initial_position: np.ndarray
    num_rows: int
    trouble: Trouble
    budget: Budget
    rate: float
    runner: Runner

    def __init__(
        self,
        target: Target,
        precision: str = "float64",
        budget: Budget | None = None,
        runner: Runner = in_process,
    ) -> None:
        with computing_in(precision):
            self.target = jax.device_put(cast(target, precision))
            known = (self.target, self.target.initial_position) if target.host is None else None
            self.widths = WIDE_WIDTHS if known and largest_array(*known) > WIDE else WIDTHS
            self.operations = operations(*known) if known else None  # of an evaluation, about
        self.bare = replace(self.target, prior=None, factors=None, known_modes=None)  # what rows need
        self.precision, self.initial_position = precision, ravelled(self.target.initial_position)
        self.num_rows = 0  # as really evaluated, padding included
        self.trouble, self.budget = Trouble(), Budget() if budget is None else budget
        self.rate, self.runner = np.inf, runner  # rows a second, of the last call

    @property
    def dimension(self) -> int:
        return self.initial_position.size

    def __call__(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log densities (row,) and gradients (row, dimension)."""
        rows = np.ascontiguousarray(rows, self.precision)
        values, gradients = self.unchecked(rows)
        bad = np.isnan(values) | np.isposinf(values)
        if bad.any():
            first = int(np.argmax(bad))
            kept = self.trouble if self.trouble.number else Trouble(0, rows[first].copy(), float(values[first]))
            self.trouble = kept._replace(number=kept.number + int(bad.sum()))
            values = np.where(bad, -np.inf, values)
        return values, gradients

    def unchecked(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same as the target gives them, NaN and +inf included."""
        check()
        rows = np.ascontiguousarray(rows, self.precision)
        if len(rows) == 0:
            return np.zeros(0, rows.dtype), np.zeros_like(rows)
        started, before = time.monotonic(), self.num_rows
        found = self._on_host(rows) if self.target.host is not None else self._compiled(rows)
        self.rate = (self.num_rows - before) / max(time.monotonic() - started, 1e-9)
        return found

    def values(self, rows: np.ndarray) -> np.ndarray:
        """Log densities alone, of rows with any leading axes."""
        flat = np.reshape(rows, (-1, np.shape(rows)[-1]))
        return self(flat)[0].reshape(np.shape(rows)[:-1])

    def count(self, number: int) -> None:
        """So many evaluations were made, here or by chains."""
        self.num_rows += number
        self.budget.spent += number

    def sized(self, number: int) -> int:
        """A number of things to do at once, or fewer where little is left of the budget."""
        return self.budget.sized(number, self.rate)

    @contextmanager
    def within(self, budget: Budget) -> Iterator[None]:
        """With a part of what may be spent."""
        outer, self.budget = self.budget, budget
        try:
            yield
        finally:
            outer.spent += budget.spent
            self.budget = outer

    def unravel(self, row: np.ndarray) -> Any:
        """One row as the target takes it, in NumPy."""
        return unravelled(row, self.target.initial_position)

    def describe_trouble(self) -> str:
        """A sentence on the first row that gave no number; empty where none did."""
        if self.trouble.row is None:
            return ""
        where = describe(self.unravel(self.trouble.row))
        return f"log density is {self.trouble.value} at {where}, and at {self.trouble.number} positions in all."

    def _on_host(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.budget.check(len(rows), self.rate)
        self.count(len(rows))
        size = len(rows) if self.runner is in_process else self.widths[0]
        found = self._run(np.split(np.asarray(rows, float), range(size, len(rows), size)))
        values, gradients = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return np.asarray(values, self.precision), np.asarray(gradients, self.precision)

    def _compiled(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, gradients = np.empty(len(rows), rows.dtype), np.empty_like(rows)
        with computing_in(self.precision):
            parts = _parts(len(rows), self.widths)
            self.budget.check(sum(_width(part, self.widths) for part in parts), self.rate)
            started = self._run([_padded(rows[part], self.widths) for part in parts])
            for part, (some_values, some_gradients) in zip(parts, started, strict=True):
                self.count(len(some_values))
                number = part.stop - part.start
                values[part] = np.asarray(some_values)[:number]
                gradients[part] = np.asarray(some_gradients)[:number]
        return values, gradients

    def _run(self, parts: list[np.ndarray]) -> list[Any]:
        """All are started before the first is waited for; a single one gains nothing elsewhere."""
        function = _OnRows(self.bare)
        return list(self.runner(function, parts) if len(parts) > 1 else map(function, parts))


@pytree
class _OnRows:
    """The target on some rows: as many as its program takes, or any number on the host."""

    target: Target

    def __call__(self, rows: np.ndarray) -> tuple[Any, Any]:
        target = self.target
        if target.host is not None:
            return target.host(rows, target.data)
        return _evaluate(target.log_density, target.initial_position, target.data, rows)


def checked_evaluator(
    target: Target,
    precision: str = "float64",
    budget: Budget | None = None,
    seed: int = 0,
    runner: Runner = in_process,
) -> Evaluator:
    """The target in `precision` on rows; an error with the reason if it cannot be sampled from where it starts."""
    check_target(target)
    check_seed(seed)
    with computing_in(precision):
        check_shapes(cast(target, precision))
    evaluate = Evaluator(target, precision, budget, runner)
    value, gradient = evaluate(evaluate.initial_position[None])
    start = evaluate.unravel(evaluate.initial_position)
    if not np.isfinite(value[0]):
        shown = evaluate.trouble.value if evaluate.trouble.number else value[0]
        raise ThermoclineError(
            f"log density is {shown} at the initial position ({describe(start)}); "
            f"{not_finite(data_of(target)) or 'pass an `initial_position` inside the support'}."
        )
    for name, leaf in named_leaves(evaluate.unravel(gradient[0])).items():
        if not np.all(np.isfinite(leaf)):
            raise ThermoclineError(
                f"the gradient of log density with respect to {name} is not finite at the initial position "
                f"({describe({name: named_leaves(start)[name]})}); start elsewhere, or rewrite the density so that it "
                "is smooth there (see jnp.where's two-sided trap)."
            )
        if not np.any(leaf):
            check_falls(evaluate, name, float(value[0]))
    return evaluate


def check_falls(evaluate: Evaluator, name: str, height: float) -> None:
    """Raise where a parameter alone, moved however far, changes nothing: nobody can integrate over it."""
    leaves = named_leaves(evaluate.target.initial_position).items()
    moved = np.concatenate([np.full(np.size(leaf), float(own == name)) for own, leaf in leaves])
    reach = np.outer([-1, 1], 10.0 ** np.arange(-2, 14, 2)).reshape(-1, 1)
    if np.all(evaluate.unchecked(evaluate.initial_position + reach * moved)[0] == height):
        raise ThermoclineError(
            f"log density does not change with {name}, moved as far as {reach.max():g} from the start: its integral is "
            "infinite. Give the parameter a proper prior, or leave it out."
        )


def _parts(number: int, widths: tuple[int, int]) -> list[slice]:
    """Widest first; what is left over goes to whichever size wastes less."""
    narrow, wide = widths
    parts = [slice(first, min(first + wide, number)) for first in range(0, number, wide)]
    last = parts[-1]
    if -(-(last.stop - last.start) // narrow) * narrow * 2 <= wide:
        split = [slice(first, min(first + narrow, number)) for first in range(last.start, number, narrow)]
        parts = [*parts[:-1], *split]
    return parts


def _padded(rows: np.ndarray, widths: tuple[int, int]) -> np.ndarray:
    """Repeats of the first row make up the next size."""
    missing = _width(slice(0, len(rows)), widths) - len(rows)
    return np.concatenate([rows, np.broadcast_to(rows[:1], (missing, rows.shape[1]))])


def _width(part: slice, widths: tuple[int, int]) -> int:
    """Rows that are evaluated for these."""
    return widths[0] if part.stop - part.start <= widths[0] else widths[1]


@jit_by()
def _evaluate(
    log_density: Callable[..., Any], position: Any, data: Any, rows: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The one program; it knows of a target only what the density depends on."""
    unravel = ravel_pytree(position)[1]

    def one(row: jax.Array) -> jax.Array:
        value = log_density(unravel(row)) if data is None else log_density(unravel(row), data)
        return jnp.asarray(value, row.dtype)

    return jax.vmap(jax.value_and_grad(one))(rows)
