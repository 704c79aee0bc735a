"""Thermodynamic integration, path sampling's estimator (eq. thermodynamic-integration)."""

import numpy as np

from thermocline.estimators.batches import mean_error
from thermocline.records import Draws, Estimate


def integrate_over_bins(draws: Draws, density: np.ndarray, *, num_bins: int = 64) -> Estimate:
    r"""$\int_0^1 E[r \mid \beta]\,d\beta$ from the drawn pairs $(\beta, r)$ of a continuous law.

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
    share = np.concatenate([gaps, [0.0]]) / 2 + np.concatenate([[0.0], gaps]) / 2
    return _weighted_sum_of_means(draws.log_ratio, index, np.ones_like(draws.log_ratio), share)


def _weighted_sum_of_means(values: np.ndarray, index: np.ndarray, weight: np.ndarray, share: np.ndarray) -> Estimate:
    """Sum over bins of share times the bin's weighted mean, with the error of a sum of ratios."""
    totals = np.bincount(index.ravel(), weight.ravel(), share.size)
    means = np.bincount(index.ravel(), (weight * values).ravel(), share.size) / np.where(totals > 0, totals, np.nan)
    influence = share[index] * weight * (values - means[index]) / totals[index] * values.size
    error, dof = mean_error(influence)
    return Estimate(float(share @ means), error, dof)
