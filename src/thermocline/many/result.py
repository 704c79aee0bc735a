"""What many targets leave: a Result for each, their joint log evidence, and a verdict on the sum."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np

from thermocline.checks import Check, Verdict, verdict_of
from thermocline.engine.explore import Exploration
from thermocline.engine.loop import Outcome
from thermocline.engine.prepare import CERTAIN
from thermocline.estimators.batches import batches_of_groups
from thermocline.estimators.evidence import log_ratio_of_means
from thermocline.many.checks import check_sum, check_targets
from thermocline.many.program import Paths, at
from thermocline.many.run import Runs
from thermocline.methods import Method
from thermocline.paths import Path
from thermocline.records import Draws, Estimate, Phases
from thermocline.results.assemble import assemble
from thermocline.results.result import Result
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import cast, computing_in

DROPPED = "the draws of the parameters were not kept; call sample_many with positions=True for what needs them."
VERDICTS: tuple[Verdict, ...] = ("ok", "suspect", "failed")


class Settings(NamedTuple):
    """What all targets of a call have in common."""

    method: Method
    precision: str
    num_steps: int  # of every chain, from the first climb on
    seconds: Phases  # of all targets together


@dataclass(frozen=True, eq=False)
class ManyResults:
    """The results of many targets, as a sequence: `results[i]` is the Result of target i, made when asked for.

    A slice, a list of indices or a mask gives the results of some of them, with their own joint evidence.
    """

    runs: Runs
    paths: Paths
    settings: Settings
    index: np.ndarray  # of each among the targets of the call
    known_checks: dict[int, tuple[Check, ...]] = field(default_factory=dict)  # by index, as they are made

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[Result]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, place: int) -> Result: ...
    @overload
    def __getitem__(self, place: slice | list[Any] | np.ndarray) -> "ManyResults": ...
    def __getitem__(self, place: Any) -> "Result | ManyResults":
        if isinstance(place, int | np.integer):
            if not -len(self) <= place < len(self):
                raise IndexError(f"there are {len(self)} targets; {place} is not one of them.")
            return self._result(int(place) % len(self))
        chosen = place if isinstance(place, slice) else np.asarray(place, None if len(place) else int)
        return replace(self, runs=at(self.runs, chosen), paths=self.paths.take(chosen), index=self.index[chosen])

    @cached_property
    def log_evidences(self) -> Estimate | None:
        """The log evidence of every target: arrays of values, errors and degrees of freedom.

        NaN for a target that could not be sampled; None for a method without evidence.
        """
        return self._log_evidences(slice(None)) if self.settings.method.has_evidence else None

    @property
    def log_evidence(self) -> Estimate | None:
        """The joint log evidence, the sum over targets: errors add in squares, degrees of freedom by Satterthwaite."""
        return None if self.log_evidences is None else sum_of(self.log_evidences)

    @cached_property
    def bias(self) -> Estimate | None:
        """What is left of the estimator's bias in the joint log evidence, as the draws themselves tell.

        The mean of the estimates from the two halves of the draws, less that from all: what is linear in the draws
        cancels, and a bias that falls with their number shows, once if as 1/n, thrice if as 1/n². The errors of
        many targets add in squares, their biases do not.
        """
        if self.log_evidences is None:
            return None
        first, second = self._halves
        shift = 0.5 * (first.value + second.value) - self.log_evidences.value
        error = shift.std(ddof=1) * np.sqrt(len(self)) if len(self) > 1 else np.inf
        return Estimate(float(shift.sum()), float(error), float(max(len(self) - 1, 1)))

    @cached_property
    def verdicts(self) -> np.ndarray:
        """Every target's own verdict, by the checks of `tc.sample` but for those of its search for modes."""
        return np.array([verdict_of(self.checks_of(i)) for i in range(len(self))])

    @property
    def verdict_counts(self) -> dict[Verdict, int]:
        """How many targets have each verdict."""
        counts = Counter(self.verdicts.tolist())
        return {verdict: counts[verdict] for verdict in VERDICTS}

    @property
    def verdict(self) -> Verdict:
        """Whether to trust the results together: the worst of `checks`."""
        return verdict_of(self.checks)

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """What the verdict on all targets together rests on."""
        found = check_targets([self.checks_of(i) for i in range(len(self))])
        if self.log_evidence is None or self.bias is None:
            return tuple(found)
        first, second = map(sum_of, self._halves)
        return (*found, *check_sum(self.log_evidence, first, second, self.bias))

    def checks_of(self, place: int) -> tuple[Check, ...]:
        """The checks of one target, made once."""
        index = int(self.index[place])
        if index not in self.known_checks:
            self.known_checks[index] = self[place].checks
        return self.known_checks[index]

    def summary(self) -> str:
        """The joint answer, what it rests on, and the worst targets by index, as a table for people."""
        from thermocline.report.many import summary_text

        return summary_text(self)

    def __repr__(self) -> str:
        answer = "no evidence" if self.log_evidence is None else f"joint log Z = {self.log_evidence}"
        _, chains, draws = self.runs.draws.log_ratio.shape
        return f"<ManyResults of {len(self)} targets: {answer}, {chains} chains of {draws} draws each>"

    @cached_property
    def _halves(self) -> tuple[Estimate, Estimate]:
        """The log evidence of every target from the first and from the second half of its draws."""
        half = self.runs.draws.log_ratio.shape[2] // 2
        return self._log_evidences(slice(half)), self._log_evidences(slice(half, None))

    def _log_evidences(self, part: slice) -> Estimate:
        draws, log_zeta = self.runs.draws, self.runs.log_zeta
        schedule, rows = self.runs.tuning.schedule, []
        group = 0 if schedule is None else schedule.group  # of draws that are one independent piece
        for i in range(len(self)):
            first, second = (weight[i][:, part] for weight in (draws.log_weight_target, draws.log_weight_base))
            batches = batches_of_groups(first.shape[0], first.shape[1], group) if group else None
            estimate = log_ratio_of_means(first, second, batches) + float(log_zeta[i])
            estimate = estimate + log_support(self.runs.support[i])
            rows.append((estimate.value, estimate.standard_error, estimate.dof))
        value, standard_error, dof = np.array(rows).reshape(-1, 3).T
        return Estimate(value, standard_error, dof)

    def _result(self, place: int) -> Result:
        """The Result as `tc.sample` assembles it; without parameters where their draws were not kept."""
        run, (method, precision, num_steps, _) = at(self.runs, place), self.settings
        kept, index = run.draws, int(self.index[place])
        has_positions = kept.position.shape[-1] > 0
        with computing_in(precision):
            path = self.paths.take(place).path
            path, method = cast((Path(path.target, path.base, run.log_zeta), method), precision)
            if not has_positions:
                kept = kept._replace(position=np.zeros((*kept.log_ratio.shape, path.dimension)))
            outcome = Outcome(kept, run.tuning, run.states, num_steps, Phases(), int(run.warmup_gradients))
            went = Exploration(path, outcome, run.base_draws, log_support(run.support))
            story = (f"target {index} of a call of sample_many",)
            result = assemble(went, method, int(run.seed), precision, None, story=story)
        if not has_positions:
            result = without_parameters(result, run.draws)
        if index in self.known_checks:
            result.__dict__["checks"] = self.known_checks[index]  # where a cached property keeps its value
        return result


class EvidenceOnly(Result):
    """A Result whose draws of the parameters were dropped: it knows evidence, partition function and verdict."""

    def posterior(self, num_draws: int = 1000, *, seed: int = 0) -> Any:
        raise ThermoclineError(DROPPED)

    def to_arviz(self) -> Any:
        raise ThermoclineError(DROPPED)

    def save(self, path: Any) -> None:
        raise ThermoclineError(DROPPED)

    def _map(self, function: Any) -> Any:
        raise ThermoclineError(DROPPED)


def without_parameters(result: Result, draws: Draws) -> Result:
    """What is left of a result with draws that have no positions."""
    kept = {entry.name: getattr(result, entry.name) for entry in fields(result)}
    return EvidenceOnly(**kept | {"draws": draws, "parameters": {}, "unconstrained": {}, "template": {}})


def log_support(support: np.ndarray) -> Estimate:
    """Log of the base's mass on the target's support, from how many draws fell on it, and of how many."""
    inside, drawn = map(int, support)
    if inside == drawn:
        return CERTAIN
    share = max(inside, 1) / drawn
    return Estimate(float(np.log(share)), float(np.sqrt((1 - share) / (share * drawn))), np.inf)


def sum_of(estimates: Estimate) -> Estimate:
    """The sum of independent estimates; degrees of freedom by Welch and Satterthwaite."""
    variances = np.asarray(estimates.standard_error) ** 2
    shares = np.sum(variances**2 / np.maximum(estimates.dof, 1))
    dof = variances.sum() ** 2 / shares if shares != 0 else np.inf
    return Estimate(float(np.sum(estimates.value)), float(np.sqrt(variances.sum())), float(dof))
