"""What a check is, and how checks make a verdict."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from thermocline.estimators.batches import Batches
from thermocline.estimators.two_states import TwoStates
from thermocline.records import BaseDraws, Draws, Estimate

Verdict = Literal["ok", "suspect", "failed"]
PAGE = "docs/diagnosing.md"
P_LIMITS = 1e-3, 1e-6  # of p-values: below the first suspect, below the second failed


@dataclass(frozen=True)
class Check:
    """One thing that can go wrong: what was measured, against which limit, and what to do."""

    name: str
    value: float
    limit: float
    status: Verdict
    advice: str  # what it says against the run and what to do; nothing where it passes
    meaning: str = ""  # in a sentence, of those in the registry
    link: str = PAGE

    @property
    def passed(self) -> bool:
        return self.status == "ok"

    def __repr__(self) -> str:
        return f"<{self.status}: {self.name}, {self.value:.4g} (limit {self.limit:.4g})>"


class Context(NamedTuple):
    """What checks may look at besides the draws."""

    draws: Draws
    parameters: dict[str, np.ndarray]  # unconstrained scalars by name, (chain, draw)
    has_evidence: bool
    log_evidence: Estimate | None
    log_zeta: float
    log_support: Estimate
    log_prior: Callable[[np.ndarray], np.ndarray] | None  # -f, where the law is continuous and known
    base: BaseDraws  # fresh and exact
    modes: tuple[Any, ...] = ()  # the table of modes
    log_known_mass: Estimate | None = None  # of all known modes, by importance sampling
    is_joint: bool = True  # draws are of x and beta together, and so know both ends of the path
    batches: Batches | None = None  # where independent pieces are known beforehand
    share_arrived: float = 1.0  # of ascents, at an optimum; the others ran off
    tail_index: Any = None  # how fast the density falls along the axis where it falls slowest
    states: TwoStates | None = None  # draws of the base and of the chains together, where both count
    biases: tuple[str, ...] = ()  # why the method is not exact, from the method


def at_least(name: str, value: float, suspect: float, failed: float, advice: str) -> Check:
    """Passes when `value` reaches `suspect`; NaN fails."""
    status: Verdict = "ok" if value >= suspect else "suspect" if value >= failed else "failed"
    return Check(name, float(value), suspect, status, "" if status == "ok" else advice)


def at_most(name: str, value: float, suspect: float, failed: float, advice: str) -> Check:
    """Passes when `value` stays within `suspect`; NaN fails."""
    status: Verdict = "ok" if value <= suspect else "suspect" if value <= failed else "failed"
    return Check(name, float(value), suspect, status, "" if status == "ok" else advice)


def corrected(p_values: list[float]) -> float:
    """The smallest of several p-values, by Bonferroni."""
    return min(1.0, min(p_values, default=1.0) * max(len(p_values), 1))


def verdict_of(checks: tuple[Check, ...]) -> Verdict:
    """The worst status of all."""
    statuses = {check.status for check in checks}
    return "failed" if "failed" in statuses else "suspect" if "suspect" in statuses else "ok"
