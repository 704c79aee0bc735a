"""Values at a run's draws, weighted for the target: of both states together, or of the chains where there is one."""

from typing import NamedTuple

import numpy as np

from thermocline.estimators import chains as of_chains
from thermocline.estimators import two_state_answers as together
from thermocline.estimators.batches import Batches
from thermocline.estimators.convergence import effective_size, pseudo_values, r_hat
from thermocline.estimators.two_states import Pair, TwoStates
from thermocline.records import Estimate


class Described(NamedTuple):
    """One number's law under the target."""

    mean: Estimate
    deviation: float
    low: float  # quantiles of 5 % and 95 %
    high: float
    effective_size: float
    r_hat: float  # of the chains


class Weighing(NamedTuple):
    """Estimates under the target from a pair of values: at the base's draws, (1, draw), and at the chains'."""

    states: TwoStates | None
    log_weight: np.ndarray  # of the chains alone
    batches: Batches | None

    def mean(self, values: Pair) -> Estimate:
        if self.states is None:
            return of_chains.expectation(values[1], self.log_weight, self.batches)
        return together.expectation(self.states, values, self.states.log_weight_target)

    def quantile(self, values: Pair, probability: float) -> Estimate:
        if self.states is None:
            return of_chains.quantile(values[1], self.log_weight, probability, self.batches)
        return together.quantile(self.states, values, self.states.log_weight_target, probability)

    def effective_size(self, values: Pair) -> float:
        if self.states is None:
            return effective_size(values[1], self.log_weight, self.batches)
        return together.effective_size(self.states, values, self.states.log_weight_target)

    def describe(self, values: Pair) -> Described:
        base, chains = values[0].astype(float), values[1].astype(float)
        mean = self.mean((base, chains))
        variance = self.mean(((base - mean.value) ** 2, (chains - mean.value) ** 2)).value
        low, high = (self.quantile((base, chains), probability).value for probability in (0.05, 0.95))
        agreement = r_hat(pseudo_values(chains, self.log_weight))
        return Described(
            mean, float(np.sqrt(max(variance, 0.0))), low, high, self.effective_size((base, chains)), agreement
        )
