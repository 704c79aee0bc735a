"""Estimates after part of a run, their root mean square errors, and how runs are cut into repeats."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.boltzmann.machine import RelaxedMoments

MOMENTS = ("log Z", "mean", "covariance")


def prefix_estimates(draws: Any, log_zeta: float, ends: Sequence[int]) -> list[RelaxedMoments]:
    """Log Z, mean and covariance from the first `end` draws of all chains, for each end.

    Ratios of sums over chains and draws (eq. ct-norm-const-estimator and ct-target-expc-estimator), gathered piece
    by piece between the ends. For annealed runs w₀ = 1 and w₁ is the run's weight.
    """
    scales = np.max(draws.log_weight_target), np.max(draws.log_weight_base)
    target, base = np.exp(draws.log_weight_target - scales[0]), np.exp(draws.log_weight_base - scales[1])
    dimension = draws.position.shape[-1]
    sum_target, sum_base, first, second = 0.0, 0.0, np.zeros(dimension), np.zeros((dimension, dimension))
    estimates, begin = [], 0
    for end in ends:
        piece = slice(begin, end)
        weight, position = target[:, piece].ravel(), draws.position[:, piece].reshape(-1, dimension)
        sum_target, sum_base = sum_target + weight.sum(), sum_base + base[:, piece].sum()
        weighted = weight[:, None] * position
        first, second = first + weighted.sum(axis=0), second + weighted.T @ position
        mean = first / sum_target
        log_evidence = log_zeta + scales[0] - scales[1] + np.log(sum_target / sum_base)
        estimates.append(RelaxedMoments(float(log_evidence), mean, second / sum_target - np.outer(mean, mean)))
        begin = end
    return estimates


def repeats_of(draws: Any, chains_a_repeat: int) -> list[Any]:
    """The draws of each repeat, when one call ran the chains of several."""
    first = range(0, draws.log_ratio.shape[0], chains_a_repeat)
    return [type(draws)(*(leaf[chain : chain + chains_a_repeat] for leaf in draws)) for chain in first]


def squared_errors(estimate: RelaxedMoments, truth: RelaxedMoments) -> np.ndarray:
    """Mean over entries of the squared error of log Z, the mean and the covariance."""
    pairs = zip(estimate, truth, strict=True)
    return np.array([np.mean((np.asarray(ours) - np.asarray(exact)) ** 2) for ours, exact in pairs])


def ends_of(num_draws: int, *, first: int = 10, number: int = 25) -> list[int]:
    """Numbers of draws at which estimates are made: about evenly spaced on a log scale, up to all."""
    return sorted({int(end) for end in np.geomspace(min(first, num_draws), num_draws, number).round()})
