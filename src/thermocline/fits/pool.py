"""A pool of all draws ever made, weighted against the mixture of all proposals (Cornuet et al. 2012).

Nothing that was seen is forgotten. The pool only designs: weights with proposals in the denominator that were fitted to
the same draws are low, so that estimates use draws made after a proposal was fixed.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from thermocline.evaluator import Evaluator
from thermocline.support.linear import log_sum_exp

NEGLIGIBLE = 10.0  # nats below the target, of what may be missed: it moves log Z by less than any error asked for
LogDensity = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of positions, and the target's log density there


class Pool(NamedTuple):
    """Draws, the target's log density at each, and the log of the sum of all proposals, each times its number.

    A draw of a chain is less than one: `log_count` is the log of what it counts for.
    """

    position: np.ndarray
    log_target: np.ndarray
    log_proposal: np.ndarray
    log_count: np.ndarray
    proposals: tuple[tuple[float, LogDensity], ...]

    @classmethod
    def empty(cls, dimension: int) -> "Pool":
        return cls(np.zeros((0, dimension)), np.zeros(0), np.zeros(0), np.zeros(0), ())

    def joined_by(self, position: np.ndarray, log_target: np.ndarray, number: float, log_density: LogDensity) -> "Pool":
        """With draws of one more proposal, which counts for so many independent ones."""
        proposals = (*self.proposals, (number, log_density))
        old = np.logaddexp(self.log_proposal, np.log(number) + log_density(self.position, self.log_target))
        terms = [np.log(count) + density(position, log_target) for count, density in proposals]
        return Pool(
            np.concatenate([self.position, position]),
            np.concatenate([self.log_target, log_target]),
            np.concatenate([old, log_sum_exp(np.stack(terms), axis=0)]),
            np.concatenate([self.log_count, np.full(len(position), np.log(number / len(position)))]),
            proposals,
        )

    def drawn(
        self, generator: np.random.Generator, evaluate: Evaluator, base: Any, number: int
    ) -> tuple["Pool", np.ndarray]:
        """With fresh draws of a base; and their log weights against that base alone."""
        rows = base.sample_rows(generator, number)
        log_target = evaluate.values(rows)
        joined = self.joined_by(rows, log_target, number, lambda rows, _: base.log_density_of_rows(rows))
        return joined, log_target - base.log_density_of_rows(rows)

    @property
    def log_weight(self) -> np.ndarray:
        log_weight = self.log_target - self.log_proposal + self.log_count
        return np.where(np.isfinite(self.log_target), log_weight, -np.inf)

    @property
    def weight(self) -> np.ndarray:
        """Weights for the target that sum to one."""
        log_weight = self.log_weight
        weight = np.exp(log_weight - log_weight.max())
        return weight / weight.sum()

    @property
    def log_evidence(self) -> float:
        """What the pool says of log Z: a guess, and low."""
        return float(log_sum_exp(self.log_weight))

    def share_of(self, log_density: np.ndarray) -> float:
        """Effective share that draws of a density would have, by all that the pool has seen: what it misses counts.

        One over the mean of target over density under the target; a density's own draws know nothing of what it misses.
        What it misses most is left out as long as it holds next to nothing of the target.
        """
        log_ratio, weight = self.log_target - self.log_evidence - log_density, self.weight
        order = np.argsort(-log_ratio, kind="stable")
        used = order[np.cumsum(weight[order]) > np.exp(-NEGLIGIBLE)]
        with np.errstate(divide="ignore"):  # of no weight
            return float(np.exp(-log_sum_exp(np.log(weight[used]) + log_ratio[used])))

    @property
    def num_effective(self) -> float:
        return float(1 / np.sum(self.weight**2)) if np.isfinite(self.log_weight).any() else 0.0
