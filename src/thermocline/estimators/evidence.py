"""The log evidence: the ratio of the mean weights at the two ends (eq. ct-norm-const-estimator)."""

import numpy as np

from thermocline.estimators.batches import Batches, batches_for, mean_error
from thermocline.estimators.stages import bridge, has_stages, log_ratio_of_ends
from thermocline.records import Draws, Estimate


def log_evidence(draws: Draws, log_zeta: float, log_support: Estimate, batches: Batches | None = None) -> Estimate:
    """Log Z = log zeta + log mean w1 - log mean w0, plus the base's log mass on the target's support."""
    return log_ratio(draws, batches) + log_zeta + log_support


def log_ratio(draws: Draws, batches: Batches | None = None) -> Estimate:
    """Log of Z/zeta: of the mean weights at the two ends, or over the stages between replicas where there are some."""
    if has_stages(draws):
        return log_ratio_of_ends(draws.stage_log_weights)
    return log_ratio_of_means(draws.log_weight_target, draws.log_weight_base, batches)


def influence_on_log_ratio(draws: Draws) -> np.ndarray:
    """What each (chain, draw) contributes to it, to first order, less the mean."""
    if has_stages(draws):
        return bridge(draws.stage_log_weights).influence
    return relative(draws.log_weight_target)[0] - relative(draws.log_weight_base)[0]


def log_ratio_of_means(
    log_numerator: np.ndarray, log_denominator: np.ndarray, batches: Batches | None = None
) -> Estimate:
    r"""Log of mean(a)/mean(b) over correlated pairs, chains pooled as a ratio of sums.

    The error is the delta method's on the pair, $V_{11}/m_1^2 + V_{00}/m_0^2 - 2V_{10}/(m_1 m_0)$: the
    variance of the mean of $a/m_1 - b/m_0$. The bias of order 1/n is removed by the jackknife over batches.
    """
    numerator, log_numerator_scale = relative(log_numerator)
    denominator, log_denominator_scale = relative(log_denominator)
    influence = numerator - denominator
    batches = batches_for(influence) if batches is None else batches
    error, dof = mean_error(influence, batches)
    value = log_numerator_scale - log_denominator_scale - jackknife_bias(numerator, denominator, batches)
    return Estimate(float(value), error, dof)


def relative(log_weight: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights divided by their mean, and the log of that mean."""
    largest = np.max(log_weight)
    if not np.isfinite(largest):
        return np.full_like(log_weight, np.nan), float(largest)
    weight = np.exp(log_weight - largest)
    return weight / weight.mean(), float(largest + np.log(weight.mean()))


def jackknife_bias(numerator: np.ndarray, denominator: np.ndarray, batches: Batches) -> float:
    """Bias of log(mean a / mean b), for weights relative to their means, from leaving out a batch at a time."""
    if batches.number < 2:
        return 0.0
    shares = [1 - batches.sums(weight) / weight.size for weight in (numerator, denominator)]
    if min(share.min() for share in shares) <= 0:
        return 0.0  # one batch holds all the weight: no estimate of bias, and the weight checks fail
    left_out = np.log(shares[0]) - np.log(shares[1])
    return float((batches.number - 1) * left_out.mean())
