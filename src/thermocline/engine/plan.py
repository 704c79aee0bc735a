"""How long a run is: the first way up the path, warm-up rounds that double, and sampling."""

from collections.abc import Callable
from typing import NamedTuple

from thermocline.methods.tuning import Tuning
from thermocline.records import Draws

RAMP, WARMUP, SAMPLING = range(3)
PHASES = ("ramp", "warmup", "sampling")  # as `records.Phases` has them
SHOWN = ("ramp", "warm-up", "sampling")
FIRST_ROUND = 16  # steps of the first warm-up round
MOST_RAMPS = 400  # rounds


class RunPlan(NamedTuple):
    """How long to run: warm-up steps, draws, and the rule that may end sampling early.

    With a `stop` rule, sampling goes on in rounds that double the draws, from `num_draws` up to `most_draws`,
    and the rule is asked at their ends only.
    """

    num_warmup: int
    num_draws: int
    most_draws: int
    stop: Callable[[Draws], bool] | None = None

    def length(self, phase: int, index: int, tuning: Tuning, num_chains: int) -> int:
        """Steps of a round; 0 when its phase is over."""
        if phase == RAMP:
            goes_on = self.num_warmup > 0 and index < MOST_RAMPS and tuning.is_ramping
            return max(4, 64 // num_chains) if goes_on else 0
        if phase == WARMUP:
            lengths = warmup_rounds(self.num_warmup)
            return lengths[index] if index < len(lengths) else 0
        if index == 0:
            return self.num_draws
        drawn = self.num_draws * 2 ** (index - 1)
        return min(drawn, max(self.most_draws - drawn, 0))

    def total(self, phase: int, index: int) -> int | None:
        """Steps that a progress bar counts to from the start of this round; None when nobody knows."""
        if phase == RAMP:
            return None
        return self.num_warmup if phase == WARMUP else self.num_draws * 2 ** max(index - 1, 0)

    def is_over(self, index: int, draws: Callable[[], Draws]) -> bool:
        """Whether sampling ends with this round."""
        drawn = self.num_draws * 2**index
        return self.stop is None or drawn >= self.most_draws or self.stop(draws())

    def is_last_warmup(self, phase: int, index: int) -> bool:
        return phase == WARMUP and index == len(warmup_rounds(self.num_warmup)) - 1


def warmup_rounds(num_warmup: int) -> list[int]:
    """Lengths that double from the first; the last takes what is left."""
    lengths, length = [], FIRST_ROUND
    while num_warmup > 0:
        length = length if num_warmup >= 3 * length else num_warmup
        lengths.append(length)
        num_warmup -= length
        length *= 2
    return lengths
