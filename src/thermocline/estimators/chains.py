"""Numbers from the chains' weighted draws: log Z, expectations, log z(beta), and path sampling over beta.

Equations are the paper's: ct-norm-const-estimator, ct-target-expc-estimator, ct-base-expc-estimator.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from thermocline.estimators.batches import Batches, batches_for, mean_error
from thermocline.estimators.stages import bridge, has_stages, log_ratio_of_ends
from thermocline.records import Draws, Estimate


class Interval(NamedTuple):
    """The ends of an interval, each an estimate."""

    lower: Estimate
    upper: Estimate


class Curve(NamedTuple):
    """A function of beta, with the standard error at each value."""

    betas: np.ndarray
    value: np.ndarray
    standard_error: np.ndarray


class Bounds(NamedTuple):
    """Estimates of the two sides that enclose log z(beta); not certificates."""

    betas: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def relative(log_weight: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights divided by their mean, and the log of that mean."""
    largest = np.max(log_weight)
    if not np.isfinite(largest):
        return np.full_like(log_weight, np.nan), float(largest)
    weight = np.exp(log_weight - largest)
    return weight / weight.mean(), float(largest + np.log(weight.mean()))


def systematic_resample(log_weight: np.ndarray, num_draws: int, seed: int) -> np.ndarray:
    """Indices of equally weighted draws, in random order: each appears within one of its expected count."""
    generator = np.random.default_rng(seed)
    weight = np.exp(log_weight - np.max(log_weight))
    cumulative = np.cumsum(weight) / weight.sum()
    points = (np.arange(num_draws) + generator.uniform()) / num_draws
    return generator.permutation(np.minimum(np.searchsorted(cumulative, points), weight.size - 1))


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
    batches = batches or batches_for(numerator - denominator)
    error, dof = mean_error(numerator - denominator, batches)
    value = log_numerator_scale - log_denominator_scale
    kept = [1 - batches.sums(weight) / weight.size for weight in (numerator, denominator)]
    if batches.number > 1 and not np.min(kept) <= 0:  # else a batch holds all the weight, and weight checks fail
        value -= (batches.number - 1) * (np.log(kept[0]) - np.log(kept[1])).mean()
    return Estimate(float(value), error, dof)


def expectation(values: np.ndarray, log_weight: np.ndarray, batches: Batches | None = None) -> Estimate:
    """Weighted mean of (chain, draw) values: a ratio of sums, with its first-order bias removed."""
    weight, _ = relative(log_weight)
    mean = float(np.mean(weight * values))
    influence = weight * (values - mean)
    batches = batches or batches_for(influence)
    error, dof = mean_error(influence, batches)
    kept = 1 - batches.sums(weight) / weight.size
    if batches.number < 2 or kept.min() <= 0:
        return Estimate(mean, error, dof)
    left_out = (mean - batches.sums(weight * values) / weight.size) / kept
    return Estimate(float(mean - (batches.number - 1) * (left_out.mean() - mean)), error, dof)


def quantile(
    values: np.ndarray, log_weight: np.ndarray, probability: float, batches: Batches | None = None
) -> Estimate:
    """Weighted quantile; its error maps the error of the distribution function back through the quantiles."""
    weight, _ = relative(log_weight)
    at = quantile_function(values, weight / weight.size)
    centre = at(probability)
    error, dof = mean_error(weight * ((values <= centre) - probability), batches)
    return Estimate(centre, mapped_error(at, probability, error), dof)


def mapped_error(at: Callable[[float], float], probability: float, error: float) -> float:
    """Error of a quantile from that of the distribution function there, by the slope over two errors to either side.

    Over one error the slope rests on so few draws that its own noise makes errors a tenth too small.
    """
    low, high = max(probability - 2 * error, 0.0), min(probability + 2 * error, 1.0)
    return (at(high) - at(low)) * error / (high - low) if high > low else 0.0


def quantile_function(values: np.ndarray, weight: np.ndarray) -> Callable[[float], float]:
    """From a probability to the value below which that share of the weight lies; the weights sum to one."""
    order = np.argsort(values, axis=None)
    ordered, cumulative = values.ravel()[order], np.cumsum(weight.ravel()[order])
    return lambda probability: float(ordered[min(np.searchsorted(cumulative, probability), ordered.size - 1)])


def log_partition(draws: Draws, log_zeta: float, log_support: Estimate, betas: np.ndarray) -> Curve:
    """Log z(beta) at any beta: the draws reweighted by exp(beta r)/N (eq. partition-function)."""

    def at(beta: float) -> Estimate:
        log_weight = tempered(beta, draws.log_ratio) + draws.log_weight_base
        return log_ratio_of_means(log_weight, draws.log_weight_base) + beta * log_zeta + log_support

    return curve_of(at, betas)


def curve_of(log_z: Callable[[float], Estimate], betas: np.ndarray) -> Curve:
    """Log z(beta) at each beta; exactly 0 at the base, which is normalised."""
    estimates = [log_z(beta) if beta > 0 else Estimate(0.0, 0.0, np.inf) for beta in betas]
    pairs = [(estimate.value, estimate.standard_error) for estimate in estimates]
    return Curve(np.asarray(betas), *np.reshape(pairs, (-1, 2)).T)


def beta_marginal(draws: Draws, log_prior: np.ndarray, betas: np.ndarray) -> Curve:
    """The density of beta itself, as the mean of its conditionals (eq. ct-beta-marginal); `log_prior` is -f(betas)."""
    each = zip(betas, log_prior, strict=True)
    densities = (np.exp(tempered(beta, draws.log_ratio) + prior + draws.log_weight_base) for beta, prior in each)
    pairs = [(density.mean(), mean_error(density)[0]) for density in densities]
    return Curve(np.asarray(betas), *np.reshape(pairs, (-1, 2)).T)


def kl_base_to_target(draws: Draws, log_support: Estimate) -> Estimate:
    """d(base to target) = log Z - log zeta - E_base[r] (eq. kl-base-to-target); infinite off the support."""
    if log_support.value < 0 or np.isneginf(draws.log_ratio).any():  # a law with an atom at the base goes there
        return Estimate(np.inf, 0.0, np.inf)
    return _evidence_beyond(draws, draws.log_weight_base)


def kl_target_to_base(draws: Draws, log_support: Estimate) -> Estimate:
    """d(target to base) = E_target[r] - (log Z - log zeta)."""
    return -(_evidence_beyond(draws, draws.log_weight_target) + log_support)


def _evidence_beyond(draws: Draws, log_weight: np.ndarray) -> Estimate:
    """Log Z - log zeta - E[r] under one end of the path, with the error of the difference."""
    (target, _), (base, _), (end, _) = map(relative, (draws.log_weight_target, draws.log_weight_base, log_weight))
    finite = np.where(np.isfinite(draws.log_ratio), draws.log_ratio, 0.0)
    mean = float(np.mean(end * finite))
    error, dof = mean_error(target - base - end * (finite - mean))
    evidence = log_ratio_of_means(draws.log_weight_target, draws.log_weight_base).value
    return Estimate(evidence - expectation(finite, log_weight).value, error, dof)


def log_partition_bounds(draws: Draws, log_zeta: float, log_support: Estimate, betas: np.ndarray) -> Bounds:
    """Beta log Z - min(beta d(b to t), (1 - beta) d(t to b)) <= log z(beta) <= beta log Z (Appendix A)."""
    betas = np.asarray(betas)
    evidence = log_ratio_of_means(draws.log_weight_target, draws.log_weight_base).value + log_zeta + log_support.value
    with np.errstate(invalid="ignore"):
        forward = np.where(betas > 0, betas * kl_base_to_target(draws, log_support).value, 0.0)
    slack = np.minimum(forward, (1 - betas) * kl_target_to_base(draws, log_support).value)
    return Bounds(betas, betas * evidence - slack, betas * evidence)


def tempered(beta: float, log_ratio: np.ndarray) -> np.ndarray:
    """Beta r, and 0 at beta = 0 also where r is -inf."""
    return beta * log_ratio if beta > 0 else np.zeros_like(log_ratio)


def integrate_over_bins(draws: Draws, density: np.ndarray, *, num_bins: int = 64) -> Estimate:
    r"""Thermodynamic integration, $\int_0^1 E[r \mid \beta]\,d\beta$, from the drawn pairs of a continuous law.

    The interval is cut where equally many draws fall. Within a bin a draw counts in inverse proportion
    to the `density` of its beta, so that the bin's mean is one over uniform beta.
    """
    beta = draws.inverse_temperature
    cuts = np.unique(np.quantile(beta, np.linspace(0, 1, num_bins + 1)[1:-1]))
    edges = np.concatenate([[0.0], cuts, [1.0]])
    index = np.clip(np.searchsorted(edges, beta, side="right") - 1, 0, edges.size - 2)
    return _weighted_sum_of_means(draws.log_ratio, index, 1 / density, np.diff(edges))


def integrate_over_rungs(draws: Draws, betas: np.ndarray) -> Estimate:
    """The same for a ladder: the trapezoid rule over the mean log ratio of each rung."""
    index = np.argmin(np.abs(draws.inverse_temperature[..., None] - betas), axis=-1)
    gaps = np.diff(betas)
    share = np.append(gaps, 0.0) / 2 + np.append(0.0, gaps) / 2
    return _weighted_sum_of_means(draws.log_ratio, index, np.ones_like(draws.log_ratio), share)


def _weighted_sum_of_means(values: np.ndarray, index: np.ndarray, weight: np.ndarray, share: np.ndarray) -> Estimate:
    """Sum over bins of share times the bin's weighted mean, with the error of a sum of ratios."""
    totals = np.bincount(index.ravel(), weight.ravel(), share.size)
    means = np.bincount(index.ravel(), (weight * values).ravel(), share.size) / np.where(totals > 0, totals, np.nan)
    influence = share[index] * weight * (values - means[index]) / totals[index] * values.size
    return Estimate(float(share @ means), *mean_error(influence))
