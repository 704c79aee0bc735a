"""What many targets leave: a Result for each, their joint log evidence, and a verdict on the sum."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any, overload

import numpy as np

from thermocline.checks import Check, Verdict, verdict_of
from thermocline.checks.many import check_sum, check_targets
from thermocline.engine.prepare import log_support
from thermocline.estimators.batches import batches_of_groups
from thermocline.estimators.two_state_answers import log_evidence_of
from thermocline.estimators.two_states import states_of
from thermocline.records import Estimate, sum_of
from thermocline.results.output import Output
from thermocline.results.result import Result
from thermocline.results.runs import WEIGHTS, ManyRuns, stacked, weights
from thermocline.results.weighing import stacked_estimates

VERDICTS: tuple[Verdict, ...] = ("ok", "suspect", "failed")


@dataclass(frozen=True, eq=False)
class ManyResults(Output):
    """The results of many targets, as a sequence: `results[i]` is the Result of target i, made when asked for.

    A slice, a list of indices or a mask gives the results of some of them, with their own joint evidence.
    """

    runs: ManyRuns  # of all targets of the call
    index: np.ndarray  # which of them these are
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
            index = int(self.index[place])
            result = self.runs.result(index)
            if index in self.known_checks:
                result.__dict__["checks"] = self.known_checks[index]  # where a cached property keeps its value
            return result
        chosen = place if isinstance(place, slice) else np.asarray(place, None if len(place) else int)
        return replace(self, index=self.index[chosen])

    @cached_property
    def log_evidences(self) -> Estimate | None:
        """The log evidence of every target: arrays of values, errors and degrees of freedom.

        NaN for a target that could not be sampled; None for a method without evidence.
        """
        return self._evidences[0] if self.runs.settings.has_evidence else None

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
        _, first, second = self._evidences
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
        return {verdict: int(np.sum(self.verdicts == verdict)) for verdict in VERDICTS}

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
        _, first, second = map(sum_of, self._evidences)
        return (*found, *check_sum(self.log_evidence, first, second, self.bias))

    def checks_of(self, place: int) -> tuple[Check, ...]:
        """The checks of one target, made once."""
        index = int(self.index[place])
        if index not in self.known_checks:
            self.known_checks[index] = self.runs.result(index, is_for_checks=True).checks
        return self.known_checks[index]

    def stacked(self, name: str) -> np.ndarray:
        """A field of all draws (target, chain, draw); targets with fewer draws than others are filled up with NaN."""
        return stacked([leaf for (leaf,) in self.runs.fields(self.index, name)])

    def __repr__(self) -> str:
        answer = "no evidence" if self.log_evidence is None else f"joint log Z = {self.log_evidence}"
        return f"<ManyResults of {len(self)} targets: {answer}, {self.runs.num_chains} chains of {self.lengths} each>"

    @property
    def lengths(self) -> str:
        """Draws a chain, for people."""
        drawn = self.runs.by_target.num_draws[self.index]
        fewest, most = int(drawn.min(initial=drawn.max(initial=0))), int(drawn.max(initial=0))
        return f"{most} draws" if fewest == most else f"{fewest} to {most} draws"

    @cached_property
    def _evidences(self) -> tuple[Estimate, Estimate, Estimate]:
        """The log evidence of every target from all its draws, from the first half and from the second."""
        rows, by_target, group = [], self.runs.by_target, self.runs.group
        each = zip(self.index, weights(self.runs, self.index), self.runs.bases(self.index), strict=True)
        for target, own, (law, of_base) in each:
            log_zeta, support = float(by_target.log_zeta[target]), log_support(by_target.support[target])
            for part in (lambda n: slice(n), lambda n: slice(n // 2), lambda n: slice(n // 2, n)):
                chosen = part(own[0].shape[1])
                draws: Any = SimpleNamespace(**{name: leaf[:, chosen] for name, leaf in zip(WEIGHTS, own, strict=True)})
                states = None if law is None else states_of(law, of_base[part(len(of_base))], draws)
                batches = batches_of_groups(len(own[0]), draws.log_ratio.shape[1], group) if group else None
                rows.append(log_evidence_of(states, draws, log_zeta, support, batches))
        whole, first, second = (stacked_estimates(rows[part::3], (len(self),)) for part in range(3))
        return whole, first, second
