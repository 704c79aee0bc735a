"""Whether the two states tell the same story, and what more draws of either would buy."""

from typing import NamedTuple

import numpy as np

from thermocline.estimators.convergence import pareto_k
from thermocline.estimators.evidence import log_ratio_of_means
from thermocline.estimators.two_state_answers import ROUNDING, log_evidence
from thermocline.estimators.two_states import TwoStates, combine, pooled
from thermocline.records import Estimate
from thermocline.support import special

NO_CHAINS = np.zeros((1, 0))  # no draw of theirs
FINITE_VARIANCE = 0.5  # of Pareto's k
MOST_ERRORS = 3.0  # joint ones, between base and chains that agree


class Agreement(NamedTuple):
    """Log of Z/zeta from either state alone, and what may be said against the base's draws."""

    base_alone: Estimate  # importance sampling
    chains_alone: Estimate  # the paper's, with the base's log mass where N > 0
    difference: Estimate  # of the two, where N > 0: there they share no draw
    pareto_k: float  # of the weights e^r/d of the base's draws

    @property
    def is_trusted(self) -> bool:
        """Whether the weights of the base's draws have a variance, so that its own error says something."""
        return self.pareto_k < FINITE_VARIANCE

    @property
    def do_agree(self) -> bool:
        return abs(self.difference.value) <= MOST_ERRORS * self.difference.standard_error


def agreement(states: TwoStates) -> Agreement:
    """Both estimates and their difference; a base that misses a region has a small error, and chains know of it."""
    (log_ratio, chain_ratio), (log_mass, chain_mass) = states.log_ratio, states.log_mass
    inside = np.isfinite(log_mass)
    log_support = _log_share(inside)
    chains = log_ratio_of_means(chain_ratio - chain_mass, -chain_mass)
    against = Estimate(-chains.value, np.hypot(chains.standard_error, ROUNDING), chains.dof)
    return Agreement(
        base_alone(log_ratio), chains + log_support, base_alone(log_ratio[inside]) + against, base_tail(states)
    )


def base_alone(log_ratio: np.ndarray) -> Estimate:
    """Log of Z/zeta by importance sampling from the base's draws."""
    if not log_ratio.size:
        return Estimate(-np.inf, np.inf, 0.0)
    return log_evidence(combine(log_ratio, np.zeros(log_ratio.size), NO_CHAINS, NO_CHAINS, 0.0))


def base_tail(states: TwoStates) -> float:
    """Pareto's k of e^r/d at the base's draws, infinite where none has weight."""
    log_weight = states.log_weight_target[0]
    return pareto_k(log_weight) if np.isfinite(log_weight).any() else np.inf


def _log_share(inside: np.ndarray) -> Estimate:
    """Log of the share of independent draws that are inside."""
    share = inside.mean()
    if share == 0:
        return Estimate(-np.inf, np.inf, 0.0)
    return Estimate(float(np.log(share)), float(np.sqrt((1 - share) / (share * inside.size))), np.inf)


def predicted_error(states: TwoStates, num_base: float, num_effective: float) -> float:
    r"""Standard error of log Z that so many draws of the base and effective draws of chains would have.

    Both densities are known by the draws at hand. With q the weights for the base, u = N/C and w = e^r over its mean, a
    draw adds $h = (w - \gamma)/d$, where $\gamma$ is C's part, which spreads by q under the base and by q u under the
    chains. There has to be a draw of the base.
    """
    log_base, log_u = pooled(states.log_weight_base), pooled(states.log_mass) - states.log_constant
    log_w = pooled(states.log_ratio) - special.logsumexp(pooled(states.log_weight_target))
    with np.errstate(divide="ignore"):
        log_d = np.logaddexp(np.log(num_base), np.log(num_effective) + log_u)
    log_pull = special.logsumexp(log_base + log_w + log_u - log_d) - special.logsumexp(log_base + log_u - log_d)
    added = np.exp(log_w - log_d) - np.exp(log_pull - log_d)
    of_base, of_chains = np.exp(log_base), np.exp(log_base + log_u)
    return float(np.sqrt(num_base * _variance(added, of_base) + num_effective * _variance(added, of_chains)))


def _variance(values: np.ndarray, weight: np.ndarray) -> float:
    """Of values with weights that sum to one; what has no weight does not count."""
    values = np.where(weight > 0, values, 0.0)
    return float(weight @ (values - weight @ values) ** 2)
