"""Expectations and quantiles under the target and the base (eq. ct-target-expc-estimator, ct-base-expc-estimator)."""

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
    order = np.argsort(values, axis=None)
    ordered, cumulative = values.ravel()[order], np.cumsum(weight.ravel()[order]) / weight.size

    def at(probability: float) -> float:
        return float(ordered[min(np.searchsorted(cumulative, probability), ordered.size - 1)])

    centre = at(probability)
    error, dof = mean_error(weight * ((values <= centre) - probability), batches)
    width = at(min(probability + error, 1.0)) - at(max(probability - error, 0.0))
    return Estimate(centre, width / 2, dof)


class Interval(NamedTuple):
    """The ends of an interval, each an estimate."""

    lower: Estimate
    upper: Estimate
