"""Estimators: NumPy functions from draws to numbers with errors."""

from thermocline.estimators.batches import mean_error
from thermocline.estimators.evidence import log_evidence, log_ratio_of_means
from thermocline.estimators.expectation import Interval, expectation, interval, quantile
from thermocline.estimators.log_partition import (
    Bounds,
    Curve,
    beta_marginal,
    kl_base_to_target,
    kl_target_to_base,
    log_partition,
    log_partition_bounds,
    mean_log_ratio,
)
from thermocline.records import Estimate

__all__ = [
    "Bounds",
    "Curve",
    "Estimate",
    "Interval",
    "beta_marginal",
    "expectation",
    "interval",
    "kl_base_to_target",
    "kl_target_to_base",
    "log_evidence",
    "log_partition",
    "log_partition_bounds",
    "log_ratio_of_means",
    "mean_error",
    "mean_log_ratio",
    "quantile",
]
