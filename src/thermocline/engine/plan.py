"""How long a run is: the first way up the path, warm-up rounds that double, and sampling; and who rests meanwhile."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from thermocline.estimators.convergence import kish_share
from thermocline.estimators.two_states import TwoStates
from thermocline.methods import Method, Temperatures
from thermocline.methods.tuning import Tuning
from thermocline.records import BaseDraws, Draws, Estimate
from thermocline.support.budget import Budget
from thermocline.support.errors import ThermoclineError, brief
from thermocline.support.options import check_seed, is_number, is_whole

RAMP, WARMUP, SAMPLING = range(3)
PHASES = ("ramp", "warmup", "sampling")  # as `records.Phases` has them
SHOWN = ("first warm-up", "warm-up", "sampling")
FIRST_ROUND = 16  # steps of the first warm-up round
MOST_RAMPS = 400  # rounds
NUM_KEPT = 8  # draws a chain, of a run without warm-up
TARGET_ERROR = 0.05  # of log Z, where neither an error nor a number of draws is asked for
FEWEST_WARMUP, MOST_WARMUP = 112, 1000  # steps, where a run is not told how many
WARMUP_A_DRAW = 64  # steps, times the share of the base's draws that count: what these know need not be learned
DRAWS_A_WARMUP = 2  # first draws a chain for a step of such a warm-up, of a run that may double them
MOST_DRAWS = 2**14  # a chain, for such a run
GRADIENTS_A_STEP = 16  # taken for granted before any step was made


class Round(NamedTuple):
    """Some steps between two looks at what they gave: those targets take them that are active, the others rest."""

    phase: int
    number: int  # among the rounds of its phase
    first_step: int
    length: int
    is_active: np.ndarray  # by target
    is_last_warmup: bool = False

    @property
    def end(self) -> int:
        return self.first_step + self.length


class Sizes(NamedTuple):
    """What changes no law: targets a block, draws a chain that adaptation sees, steps between looks at the progress."""

    block_size: int = 1
    num_kept: int = NUM_KEPT
    chunk_size: int | None = None


class RunPlan(NamedTuple):
    """Tells a run what to do next: warm-up steps, draws, and the rule that may end the sampling of a target early.

    With a `stop` rule, sampling goes on in rounds that double the draws, from `num_draws` up to `most_draws`; the rule
    is asked of every target at their ends only, and a target that has enough rests from there on. A target that is
    not usable, because its density is no number, holds nobody up.

    Targets that have climbed rest until all have. With `is_numbered_apart` the numbers of the steps after that do not
    depend on how long it took, and so a target's draws not on its company.
    """

    num_warmup: int
    num_draws: int
    most_draws: int
    stop: Callable[[int, Draws, Tuning], bool] | None = None
    is_usable: np.ndarray = np.ones(1, bool)
    is_numbered_apart: bool = False

    def next(
        self, before: Round | None, tuning: Tuning, draws_of: Callable[[int], Draws], num_chains: int
    ) -> Round | None:
        """The round after `before`, or the first; None when the run is over. `draws_of` a target are those so far."""
        phase, index, step = RAMP, 0, 0
        if before is not None:
            phase, index, step = before.phase, before.number + 1, before.end
        if phase == RAMP:
            steps = max(4, 64 // num_chains)
            is_ramping = tuning.is_ramping & self.is_usable
            if self.num_warmup > 0 and index < MOST_RAMPS and is_ramping.any():
                return Round(RAMP, index, step, steps, is_ramping)
            phase, index = WARMUP, 0
            if self.is_numbered_apart and self.num_warmup > 0:
                step = MOST_RAMPS * steps
        everyone = np.ones(len(tuning.step_size), bool)
        if phase == WARMUP:
            lengths = warmup_rounds(self.num_warmup)
            if index < len(lengths):
                return Round(WARMUP, index, step, lengths[index], everyone, index == len(lengths) - 1)
            return Round(SAMPLING, 0, step, self.num_draws, everyone)
        return self._more(index, step, before, tuning, draws_of)

    def _more(
        self, index: int, step: int, before: Round | None, tuning: Tuning, draws_of: Callable[[int], Draws]
    ) -> Round | None:
        """As many draws again, of the targets that the rule is not yet content with."""
        drawn = self.num_draws * 2 ** (index - 1)
        if self.stop is None or before is None or drawn >= self.most_draws:
            return None
        is_active = before.is_active & self.is_usable
        for target in np.flatnonzero(is_active):
            is_active[target] = not self.stop(int(target), draws_of(int(target)), tuning)
        if not is_active.any():
            return None
        return Round(SAMPLING, index, step, min(drawn, self.most_draws - drawn), is_active)

    def total(self, coming: Round) -> int | None:
        """Steps that a progress bar counts to from the start of this round; None when nobody knows."""
        if coming.phase == RAMP:
            return None
        return self.num_warmup if coming.phase == WARMUP else coming.length


class MorePlan(NamedTuple):
    """So many more draws for every target of a finished run, from the step at which each had ended.

    Steps have one number for all that take them: targets that ended at different steps go on in different rounds.
    """

    ended_at: np.ndarray  # by target
    num_draws: int

    def next(
        self, before: Round | None, tuning: Tuning, draws_of: Callable[[int], Draws], num_chains: int
    ) -> Round | None:
        ends = np.unique(self.ended_at)
        index = 0 if before is None else before.number + 1
        if index >= len(ends):
            return None
        return Round(SAMPLING, index, int(ends[index]), self.num_draws, self.ended_at == ends[index])

    def total(self, coming: Round) -> int | None:
        return coming.length


Plan = RunPlan | MorePlan


def warmup_rounds(num_warmup: int) -> list[int]:
    """Lengths that double from the first; the last takes what is left."""
    lengths, length = [], FIRST_ROUND
    while num_warmup > 0:
        length = length if num_warmup >= 3 * length else num_warmup
        lengths.append(length)
        num_warmup -= length
        length *= 2
    return lengths


class Look(NamedTuple):
    """What a stopping rule sees of one target at the end of a round."""

    log_evidence: Estimate
    log_zeta: float
    log_support: Estimate
    draws: Draws
    states: TwoStates | None  # both states, where there are two
    base: BaseDraws
    has_law: bool  # beta is drawn along with x


class Lengths(NamedTuple):
    """How many chains, how long, and the rule that may end sampling early."""

    num_chains: int
    num_warmup: int | None  # None: as the base asks for
    num_draws: int
    most_draws: int
    target_error: float | None = None  # of log Z, by which sampling may end early
    is_accurate: "Callable[[Look], bool] | None" = None
    begins_short: bool = False  # sampling may, as it will double if need be

    def suited(self, log_ratio: np.ndarray | None) -> "Lengths":
        """With a warm-up and first draws that are the fewer the more of the base's own draws count.

        Metric and law are known then. Of many targets none may depend on its company: they take all.
        """
        if self.num_warmup is not None:
            return self
        share = 0.0 if log_ratio is None else kish_share(log_ratio)
        num_warmup = int(np.clip(WARMUP_A_DRAW / max(share, 1e-12), FEWEST_WARMUP, MOST_WARMUP))
        num_draws = min(DRAWS_A_WARMUP * num_warmup, self.num_draws) if self.begins_short else self.num_draws
        return self._replace(num_warmup=num_warmup, num_draws=num_draws)

    def within(self, budget: Budget, rate: float) -> "Lengths":
        """The same, but for a warm-up and first draws of about half of what is left, and no doubling beyond it.

        A run of `num_draws` that are asked for is as long as it is.
        """
        is_accurate, begun = self.is_accurate, budget.left(rate)
        if is_accurate is None or begun == np.inf:
            return self
        num_warmup = MOST_WARMUP if self.num_warmup is None else self.num_warmup
        share = min(1.0, begun / (2 * GRADIENTS_A_STEP * self.num_chains * (num_warmup + self.num_draws)))
        num_warmup, num_draws = max(int(share * num_warmup), 1), max(int(share * self.num_draws), 4)

        def has_to_end(look: Look) -> bool:
            """Accurate, or as many draws again cost more than is left."""
            again = int(look.draws.num_gradients.sum())
            spent = again * (1 + num_warmup / look.draws.log_ratio.shape[1])
            return is_accurate(look) or min(budget.left(rate), begun - spent) < again

        return self._replace(num_warmup=num_warmup, num_draws=num_draws, is_accurate=has_to_end)


def lengths_of(
    method: Method,
    num_chains: int,
    num_warmup: int | None,
    num_draws: int | None,
    target_error: float | None,
    is_sound: Callable[[float, Look], bool],
) -> Lengths:
    """Draws a chain, or a rule that ends the run; a method without evidence has no error to stop by.

    `is_sound` says whether an error, once it is as small as wanted, can be believed.
    """
    if target_error is not None and not method.has_evidence:
        raise ThermoclineError("target_error is of the log evidence, which this method cannot give; set num_draws.")
    if method.has_evidence and num_draws is None and target_error is None:
        target_error = TARGET_ERROR
    first = method.first_draws if num_draws is None else num_draws
    rule = None if target_error is None else partial(is_accurate, target_error, is_sound)
    begins_short = rule is not None and num_draws is None and method.temperatures is Temperatures.LAW
    return Lengths(num_chains, num_warmup, first, MOST_DRAWS, target_error, rule, begins_short)


def checked_options(
    seed: Any, lengths: Lengths, target_error: Any, chunk_size: Any, **flags: Any
) -> tuple[int, Lengths, int | None]:
    """Seed, lengths and chunk size as Python's own integers; raises with the reason where an option is none."""
    for name, flag in flags.items():
        if not isinstance(flag, bool | np.bool_):
            raise ThermoclineError(f"{name} is {brief(flag)}; give True or False.")
    check_seed(seed)
    for name, least in (("num_chains", 1), ("num_warmup", 0), ("num_draws", 4)):
        if name == "num_warmup" and lengths.num_warmup is None:
            continue
        value: Any = getattr(lengths, name)
        if not (is_whole(value) and least <= value < 2**31):
            raise ThermoclineError(f"{name} is {brief(value)}; give an integer of at least {least}.")
        lengths = lengths._replace(**{name: int(value)})
    if target_error is not None and not (is_number(target_error) and target_error > 0):
        remedy = "give a positive standard error of log Z, or None"
        raise ThermoclineError(f"target_error is {brief(target_error)}; {remedy}.")
    if chunk_size is not None and not (is_whole(chunk_size) and chunk_size >= 1):
        raise ThermoclineError(f"chunk_size is {brief(chunk_size)}; give a positive number of steps, or None.")
    return int(seed), lengths, None if chunk_size is None else int(chunk_size)


def is_accurate(target_error: float, is_sound: Callable[[float, Look], bool], look: Look) -> bool:
    """The stopping rule: an error below the wanted one that can be believed."""
    return look.log_evidence.standard_error <= target_error and is_sound(target_error, look)
