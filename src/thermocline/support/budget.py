"""What a call may spend, and the signal that it is spent."""

import time
from dataclasses import dataclass, field

from thermocline.support.errors import ThermoclineError, brief
from thermocline.support.options import is_number

NO_LIMIT = float("inf")
ENOUGH = 2**16  # evaluations; with fewer left, all that is done at once shrinks in proportion


class BudgetSpentError(Exception):
    """A limit of the caller's, which is named, is reached: what is known must do. Never leaves the library."""


@dataclass
class Budget:
    """Evaluations of the density and seconds that may be spent from now on, and those that were."""

    max_evaluations: float = NO_LIMIT
    max_seconds: float = NO_LIMIT
    spent: int = 0
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, max_evaluations: float | None, max_seconds: float | None) -> "Budget":
        """From the options of a call, where None is no limit."""
        for name, value in (("max_evaluations", max_evaluations), ("max_seconds", max_seconds)):
            if value is not None and not (is_number(value) and value > 0):
                raise ThermoclineError(f"{name} is {brief(value)}; it must be positive, or None for no limit.")
        return cls(max_evaluations or NO_LIMIT, max_seconds or NO_LIMIT)

    def half(self) -> "Budget":
        """Of what is left: half of the work looks for what is not known, half measures what is."""
        return Budget((self.max_evaluations - self.spent) / 2, self._seconds_left / 2)

    def check(self, number: int, rate: float) -> None:
        """Raises where so many evaluations, at so many a second, are more than is left."""
        if self._seconds_left < max(number / rate, 1e-9):
            raise BudgetSpentError("max_seconds")
        if self.spent + number > self.max_evaluations:
            raise BudgetSpentError("max_evaluations")

    def sized(self, number: int, rate: float) -> int:
        """A number of things to do at once, or fewer where little is left."""
        return max(int(number * min(1.0, self.left(rate) / ENOUGH)), min(number, 2))

    def left(self, rate: float) -> float:
        """Evaluations that may still be made, at so many a second."""
        seconds = self._seconds_left
        return min(self.max_evaluations - self.spent, NO_LIMIT if seconds == NO_LIMIT else max(seconds, 0.0) * rate)

    @property
    def _seconds_left(self) -> float:
        return self.max_seconds - (time.monotonic() - self.started)
