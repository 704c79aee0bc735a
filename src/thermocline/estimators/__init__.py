"""Estimators: NumPy functions from draws to numbers with errors."""

from thermocline.estimators.evidence import log_evidence
from thermocline.estimators.expectation import Interval, expectation, quantile
from thermocline.estimators.log_partition import (
    Bounds,
    Curve,
    beta_marginal,
    kl_base_to_target,
    kl_target_to_base,
    log_partition,
    log_partition_bounds,
)

__all__ = [
    "Bounds",
    "Curve",
    "Interval",
    "beta_marginal",
    "expectation",
    "kl_base_to_target",
    "kl_target_to_base",
    "log_evidence",
    "log_partition",
    "log_partition_bounds",
    "quantile",
]
