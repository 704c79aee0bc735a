"""Answers from the draws of two states, with errors: log Z, log z(beta), expectations, quantiles; and their agreement.

Each is a smooth function of sums of contributions a g/d, and its error is the delta method's over both states: the
base's draws are independent, the chains' in batches, and both move C.
"""

from typing import Any, NamedTuple

import numpy as np

from thermocline.estimators import chains as of_chains
from thermocline.estimators.batches import Batches, batches_for, batches_of_groups, mean_error
from thermocline.estimators.convergence import pareto_k
from thermocline.estimators.two_states import Pair, TwoStates, combine, pooled
from thermocline.records import Draws, Estimate
from thermocline.support import special

NO_CHAINS = np.zeros((1, 0))  # no draw of theirs
FINITE_VARIANCE = 0.5  # of Pareto's k
ROUNDING = 1e-6  # nats: no error is less, for of a base equal to the target only rounding differs


class Agreement(NamedTuple):
    """Log of Z/zeta from either state alone, and what may be said against the base's draws."""

    base_alone: Estimate  # importance sampling
    chains_alone: Estimate  # the paper's, with the base's log mass where N > 0
    difference: Estimate  # of the two, where N > 0: there they share no draw
    pareto_k: float  # of the weights e^r that `base_alone` sums, infinite where none has weight

    @property
    def is_trusted(self) -> bool:
        """Whether the weights of the base's draws have a variance, so that its own error says something."""
        return self.pareto_k < FINITE_VARIANCE


def log_evidence(states: TwoStates) -> Estimate:
    """Log of Z/zeta: of the sum of the weights for the target."""
    return _log_sum(states, states.log_weight_target)


def log_evidence_of(
    states: TwoStates | None, draws: Draws, log_zeta: float, log_support: Estimate, batches: Batches | None = None
) -> Estimate:
    """Log Z of a run from both states, or from its chains alone where there is only one."""
    if states is None:
        return of_chains.log_evidence(draws, log_zeta, log_support, batches)
    both = log_evidence(states) + log_zeta
    if both.standard_error < ROUNDING:  # the base is the target
        return Estimate(both.value, ROUNDING, np.inf)
    return both


def log_partition(states: TwoStates, log_zeta: float, betas: np.ndarray) -> of_chains.Curve:
    """Log z(beta) at any beta, by the weights a exp(beta r)/d; exactly 0 at the base, which is normalised."""
    (base, chains), (base_ratio, chain_ratio) = states.log_weight_base, states.log_ratio

    def at(beta: float) -> Estimate:
        log_weights = base + of_chains.tempered(beta, base_ratio), chains + of_chains.tempered(beta, chain_ratio)
        return _log_sum(states, log_weights) + beta * log_zeta

    return of_chains.curve_of(at, betas)


def expectation(states: TwoStates, values: Pair, log_weights: Pair) -> Estimate:
    """Mean of values, at the base's draws and at the chains', under what the weights a g/d are for."""
    weights, values = _weighed(log_weights, values)
    mean = _sum(weights, values)
    deviation = weights[0] * (values[0] - mean), weights[1] * (values[1] - mean)
    return Estimate(mean, *error_of(influence(states, deviation)))


def effective_size(states: TwoStates, values: Pair, log_weights: Pair) -> float:
    """Independent draws of the weighted law that would give the mean of `values` with the same error.

    Never more than there are: beyond that it is the error that is known too little.
    """
    weights, values = _weighed(log_weights, values)
    mean, error = _sum(weights, values), expectation(states, values, log_weights).standard_error
    variance = _sum(weights, ((values[0] - mean) ** 2, (values[1] - mean) ** 2))
    return min(variance / error**2 if error > 0 else np.inf, float(pooled(values).size))


def quantile(states: TwoStates, values: Pair, log_weights: Pair, probability: float) -> Estimate:
    """Weighted quantile; its error maps the error of the distribution function back through the quantiles."""
    weights, values = _weighed(log_weights, values)
    at = of_chains.quantile_function(pooled(values), pooled(weights))
    centre = at(probability)
    below = weights[0] * ((values[0] <= centre) - probability), weights[1] * ((values[1] <= centre) - probability)
    error, dof = error_of(influence(states, below))
    return Estimate(centre, of_chains.mapped_error(at, probability, error), dof)


def agreement(states: TwoStates) -> Agreement:
    """Both estimates and their difference; a base that misses a region has a small error, and chains know of it."""
    (log_ratio, chain_ratio), (log_mass, chain_mass) = states.log_ratio, states.log_mass
    inside = np.isfinite(log_mass)
    chains = of_chains.log_ratio_of_means(chain_ratio - chain_mass, -chain_mass)
    against = Estimate(-chains.value, np.hypot(chains.standard_error, ROUNDING), chains.dof)
    tail = pareto_k(log_ratio) if inside.any() else np.inf
    difference = base_alone(log_ratio[inside]) + against
    return Agreement(base_alone(log_ratio), chains + _log_share(inside), difference, tail)


def base_alone(log_ratio: np.ndarray) -> Estimate:
    """Log of Z/zeta by importance sampling from the base's draws."""
    if not log_ratio.size:
        return Estimate(-np.inf, np.inf, 0.0)
    return log_evidence(combine(log_ratio, np.zeros(log_ratio.size), NO_CHAINS, NO_CHAINS, 0.0))


def influence(states: TwoStates, contribution: Pair) -> Pair:
    r"""What each draw adds to a sum of contributions a g/d, to first order, up to a constant of either state.

    Through C as well: the weights q = a/d grow with log C at the rate q p, and log C keeps their sum at one, so that a
    draw's part of it is $-q/\sum q p$. For the base's draws q is $(1 - p)/n_0$, of which the constant says nothing and
    might drown the rest.
    """
    (base, chains), (base_share, chain_share) = contribution, states.log_share
    log_slope = special.logsumexp(pooled(states.log_weight_base) + pooled(states.log_share))
    if np.isneginf(log_slope):  # no effective draw of a chain: C plays no part
        return contribution
    pull = _sum(contribution, (np.exp(base_share), np.exp(chain_share)))
    of_base = -np.exp(base_share - log_slope) / max(base.size, 1)
    return base - pull * of_base, chains - pull * np.exp(states.log_weight_base[1] - log_slope)


def error_of(influence: Pair, batches: Batches | None = None) -> tuple[float, float]:
    """Standard error and degrees of freedom of the sum of what the draws of both states add; batches are the chains'.

    How well the spread of independent values is known depends on their tails: of n values with kurtosis k it is as
    uncertain as of 2n/(k - 1) normal ones.
    """
    base, chains = influence
    of_base = _independent(base.ravel()) if base.size else (0.0, np.inf)
    of_rest = mean_error(chains * chains.size, batches) if chains.size else (0.0, np.inf)
    if np.isinf(of_base[0] + of_rest[0]):  # of a single piece, whose spread cannot be known
        return np.inf, 0.0
    total = Estimate(0.0, *of_base) + Estimate(0.0, *of_rest)
    return float(total.standard_error), float(total.dof)


def _independent(values: np.ndarray) -> tuple[float, float]:
    """Standard error of the sum of independent values, and its degrees of freedom."""
    if values.size == 1:
        return np.inf, 0.0
    squared = (values - values.mean()) ** 2
    variance, fourth, dof = squared.mean(), np.mean(squared**2), values.size - 1.0
    if fourth > 3 * variance**2 > 0:
        dof *= 2 / (fourth / variance**2 - 1)
    return values.size * np.sqrt(variance / (values.size - 1)), dof


def _log_sum(states: TwoStates, log_weights: Pair) -> Estimate:
    """Log of the sum of weights a g/d, that is of g's mean under the base; its first-order bias is removed."""
    total = special.logsumexp(pooled(log_weights))
    if not np.isfinite(total):
        return Estimate(float(total), np.inf, 0.0)
    weights = np.exp(log_weights[0] - total), np.exp(log_weights[1] - total)
    added = influence(states, weights)
    batches = batches_for(added[1]) if added[1].size else None
    error, dof = error_of(added, batches)
    return Estimate(float(total - _jackknife_bias(states, weights, batches)), error, dof)


def _jackknife_bias(states: TwoStates, weights: Pair, batches: Batches | None) -> float:
    """Bias of the log of a sum of weights that is one, from leaving out a batch of either state at a time.

    What a batch leaves behind stands for its whole state. The logs of both sums, and with them C, are expanded to
    second order.
    """
    for_base = np.exp(states.log_weight_base[0]), np.exp(states.log_weight_base[1])
    terms = _with_derivatives(states, weights) + _with_derivatives(states, for_base)
    of_base = batches_of_groups(1, weights[0].size, 1) if weights[0].size else None
    full = _log_after(*(term[0].sum() + term[1].sum() for term in terms))
    bias = 0.0
    for state, pieces in enumerate((of_base, batches)):
        if pieces is None or pieces.number < 2:
            continue
        kept = 1 - pieces.sums(np.full_like(weights[state], 1 / weights[state].size))
        sums = [(term[state].sum() - pieces.sums(term[state])) / kept + term[1 - state].sum() for term in terms]
        if min(sums[0].min(), sums[3].min()) <= 0:
            return 0.0  # one batch holds all the weight: no estimate of bias, and the weight checks fail
        bias += (pieces.number - 1) * float(np.mean(_log_after(*sums) - full))
    return bias


def _with_derivatives(states: TwoStates, weights: Pair) -> list[Pair]:
    """Weights a g/d, and their first and second derivatives by log C."""
    base_share, chain_share = np.exp(states.log_share[0]), np.exp(states.log_share[1])
    first = weights[0] * base_share, weights[1] * chain_share
    return [weights, first, (first[0] * (2 * base_share - 1), first[1] * (2 * chain_share - 1))]


def _log_after(total: Any, slope: Any, bend: Any, for_base: Any, base_slope: Any, base_bend: Any) -> Any:
    """Log of sums of weights, with two derivatives, at the log C that brings those for the base back to one."""
    rate, base_rate = slope / total, base_slope / for_base
    if not np.all(base_rate > 0):  # no effective draw of a chain: C plays no part
        return np.log(total)
    shift = -np.log(for_base) / base_rate
    shift = shift - 0.5 * (base_bend / for_base / base_rate - base_rate) * shift**2
    return np.log(total) + rate * shift + 0.5 * (bend / total - rate**2) * shift**2


def _sum(weights: Pair, values: Pair) -> float:
    return float(np.sum(weights[0] * values[0]) + np.sum(weights[1] * values[1]))


def _weighed(log_weights: Pair, values: Pair) -> tuple[Pair, Pair]:
    """Weights that sum to one, and values in their shape; 0 without weight: off the support they may be anything."""
    total = special.logsumexp(pooled(log_weights))
    base, chains = np.exp(log_weights[0] - total), np.exp(log_weights[1] - total)
    shaped = np.reshape(values[0], base.shape), np.reshape(values[1], chains.shape)
    return (base, chains), (np.where(base > 0, shaped[0], 0.0), np.where(chains > 0, shaped[1], 0.0))


def _log_share(inside: np.ndarray) -> Estimate:
    """Log of the share of independent draws that are inside."""
    share = inside.mean()
    if share == 0:
        return Estimate(-np.inf, np.inf, 0.0)
    return Estimate(float(np.log(share)), float(np.sqrt((1 - share) / (share * inside.size))), np.inf)
