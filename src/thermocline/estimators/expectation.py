"""Expectations and quantiles under the target and the base (eq. ct-target-expc-estimator, ct-base-expc-estimator)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from thermocline.estimators.batches import Batches, batches_for, mean_error
from thermocline.estimators.evidence import relative
from thermocline.records import Estimate


def expectation(values: np.ndarray, log_weight: np.ndarray, batches: Batches | None = None) -> Estimate:
    """Weighted mean of (chain, draw) values: a ratio of sums, with its first-order bias removed."""
    weight, _ = relative(log_weight)
    mean = float(np.mean(weight * values))
    influence = weight * (values - mean)
    batches = batches_for(influence) if batches is None else batches
    error, dof = mean_error(influence, batches)
    share = 1 - batches.sums(weight) / weight.size
    if batches.number < 2 or share.min() <= 0:
        return Estimate(mean, error, dof)
    left_out = (mean - batches.sums(weight * values) / weight.size) / share
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

    def at(probability: float) -> float:
        return float(ordered[min(np.searchsorted(cumulative, probability), ordered.size - 1)])

    return at


class Interval(NamedTuple):
    """The ends of an interval, each an estimate."""

    lower: Estimate
    upper: Estimate
