"""A second opinion: another method, from another base, other starts and another seed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from thermocline.api import extend, sample
from thermocline.bases import BaseFit, NormalisedDensity
from thermocline.engine.workers import on_workers
from thermocline.estimators.convergence import difference_p_value
from thermocline.estimators.stages import has_stages
from thermocline.methods import GibbsTempering, Method, ParallelTempering
from thermocline.records import Estimate
from thermocline.results.result import Result
from thermocline.support.errors import ThermoclineError, brief
from thermocline.support.runner import in_process
from thermocline.target import Target

DISAGREEMENT = 1e-3  # p-value of the difference from which two answers are said to differ
FIRST_DRAWS = 200
NUM_CHAINS = 8


@dataclass(frozen=True, eq=False)
class CrossCheck:
    """Two answers for one target, and whether they agree within their errors."""

    first: Estimate
    second: Estimate
    p_value: float  # that they share one truth
    result: Result  # of the second method
    names: tuple[str, str]
    num_gradients: int
    budget: int

    @property
    def agrees(self) -> bool | None:
        """None where the second run failed its own checks, and so is no opinion."""
        return None if self.result.verdict == "failed" else self.p_value >= DISAGREEMENT

    def __str__(self) -> str:
        first, second = self.names
        values = f"log Z is {self.first} by {first} and {self.second} by {second} from another base"
        difference = f"{abs(self.first.value - self.second.value):.3g} apart (p = {self.p_value:.2g})"
        spent = f"{self.num_gradients:,} gradients of {self.budget:,} allowed"
        cost = f"The second run took {spent}; its verdict is {self.result.verdict}."
        if self.agrees is None:
            return f"No second opinion: {values}, but the second run failed its own checks. {cost}"
        if self.agrees:
            return f"They agree within errors: {values}, {difference}. {cost}"
        return f"They disagree: {values}, {difference}; at least one of them has missed something. {cost}"

    __repr__ = __str__


def cross_check(
    result: Result,
    target: Target,
    *,
    method: Method | None = None,
    base: NormalisedDensity | BaseFit | None = None,
    seed: int | None = None,
    num_gradients: int | None = None,
    progress: bool = True,
    workers: Any = None,
) -> CrossCheck:
    """Sample `target` again by another method, and say whether the two log evidences agree within errors.

    By default parallel tempering, or Gibbs tempering where `result` was parallel tempering's; from a base that
    `fit_auto` finds anew from other starts, because two methods on one base lose the same modes. It stops when its
    error is no larger than that of `result`, or before it would exceed `num_gradients`, by default twice as many as
    `result` took. A loaded result will do: only its numbers are used. `workers` are those of `sample`.
    """
    if not isinstance(result, Result):
        raise ThermoclineError(f"result is {brief(result)}; give what tc.sample returned, and its target.")
    if result.log_evidence is None:
        raise ThermoclineError("this run has no evidence to check; cross_check compares log evidences.")
    budget = 2 * result.cost.evaluations.total if num_gradients is None else num_gradients
    other_seed: int = (result.info.seed + 0x9E37) % 2**32 if seed is None else seed
    chosen = method or (GibbsTempering() if has_stages(result.draws) else ParallelTempering())
    options: dict[str, Any] = {"precision": result.info.precision, "progress": progress}
    with on_workers(workers) as runner:
        options |= {"workers": None if runner is in_process else runner}
        lengths = {"num_chains": NUM_CHAINS, "num_draws": FIRST_DRAWS}
        second = sample(target, seed=other_seed, base=base, method=chosen, **lengths, **options)
        while True:
            evidence, spent = second.log_evidence, second.cost.evaluations.total
            if evidence is None:
                raise ThermoclineError(f"{second.info.method} gives no evidence to compare; choose another method.")
            is_allowed = spent + int(np.sum(second.draws.num_gradients)) <= budget  # as many draws again
            if evidence.standard_error <= result.log_evidence.standard_error or not is_allowed:
                break
            second = extend(second, target, progress=progress, workers=options["workers"])
    p_value = difference_p_value(result.log_evidence, evidence)
    names = result.info.method.split("(")[0], second.info.method.split("(")[0]
    return CrossCheck(result.log_evidence, evidence, p_value, second, names, spent, int(budget))
