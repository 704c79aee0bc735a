r"""Evidence from replicas at neighbouring temperatures: stepping stones in both directions, and the bridge between.

Replica $k$ gives $u_k = (\beta_{k+1} - \beta_k)\,r(x_k)$, the log weight that would take it up to its neighbour, and
replica $k + 1$ gives $d_k = -(\beta_{k+1} - \beta_k)\,r(x_{k+1})$, which would take it down. The mean of $e^{u_k}$ is
$z(\beta_{k+1})/z(\beta_k)$ (with $\zeta$ to the power of the gap), and so is one over the mean of $e^{d_k}$; a swap of
the two replicas is accepted with probability $\min(1, e^{u_k + d_k})$.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from thermocline.estimators.batches import Batches, batches_for, mean_error
from thermocline.records import Draws, Estimate
from thermocline.support import special

MOST_ITERATIONS = 200  # of which Newton's method needs about six


class Bridge(NamedTuple):
    """Bennett's estimate of each stage's log ratio, and what each step contributes to their sum."""

    log_ratios: np.ndarray  # (stage,)
    influence: np.ndarray  # (chain, draw)
    terms: tuple[np.ndarray, np.ndarray, np.ndarray]  # the equation solved and two derivatives, (chain, draw, stage)


def has_stages(draws: Draws) -> bool:
    """Whether a draw is one of an ensemble of replicas."""
    return draws.stage_log_weights.ndim == 4 and draws.stage_log_weights.shape[-1] > 0


def bridge(stage_log_weights: np.ndarray) -> Bridge:
    r"""Solve mean $\sigma(u - c)$ = mean $\sigma(d + c)$ for the log ratio c of every stage (Bennett 1976).

    Between two densities of which equally many draws are known this has the least variance of all bridges. The left
    side falls with c and the right side rises, so that there is one root.
    """
    up, down = stage_log_weights[:, :, 0], stage_log_weights[:, :, 1]
    finite = np.where(np.isfinite(up), up, np.nan)
    low = np.minimum(np.nanmin(finite, axis=(0, 1)), np.min(-down, axis=(0, 1))) - 1
    high = np.maximum(np.nanmax(finite, axis=(0, 1)), np.max(-down, axis=(0, 1))) + 1

    def equation(centre: np.ndarray) -> list[np.ndarray]:
        return [np.mean(term, axis=(0, 1)) for term in _equation(up, down, centre)[:2]]

    centre = root_between(equation, low, high, (low + high) / 2, 1e-12)
    terms = _equation(up, down, centre)
    influence = np.sum(terms[0] / np.mean(terms[1], axis=(0, 1)), axis=-1)
    return Bridge(centre, influence, terms)


def root_between(equation: Callable[[Any], Sequence[Any]], low: Any, high: Any, start: Any, tolerance: float) -> Any:
    """The root of a falling function, elementwise: by Newton's steps, or half the bracket where one would leave it.

    `equation` gives values, and their derivatives with the sign changed.
    """
    centre = start
    for _ in range(MOST_ITERATIONS):
        value, slope = equation(centre)
        low, high = np.where(value > 0, centre, low), np.where(value > 0, high, centre)
        following = centre + value / np.maximum(slope, 1e-300)
        following = np.where((following > low) & (following < high), following, low + (high - low) / 2)
        moved, centre = np.max(np.abs(following - centre)), following
        if moved <= tolerance * (1 + np.max(np.abs(centre))):
            break
    return centre


def _equation(up: np.ndarray, down: np.ndarray, centre: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each step's part of the bridge's equation, of minus its derivative by c, and of its second derivative."""
    left, right = special.expit(up - centre), special.expit(down + centre)
    slope = left * (1 - left) + right * (1 - right)
    bend = left * (1 - left) * (1 - 2 * left) - right * (1 - right) * (1 - 2 * right)
    return left - right, slope, bend


def log_ratio_of_ends(stage_log_weights: np.ndarray) -> Estimate:
    """The sum of the bridged log ratios, its first-order bias removed by the jackknife over batches of steps."""
    solved = bridge(stage_log_weights)
    batches = batches_for(solved.influence)
    error, dof = mean_error(solved.influence, batches)
    value = float(np.sum(solved.log_ratios)) - _jackknife_bias(solved, batches)
    return Estimate(value, error, dof)


def _jackknife_bias(solved: Bridge, batches: Batches) -> float:
    """From leaving out a batch at a time; each root by the equation's expansion to second order about the full one."""
    if batches.number < 2:
        return 0.0

    def without(term: np.ndarray) -> np.ndarray:
        parts = np.add.reduceat(term, batches.edges[:-1], axis=1).reshape(batches.number, -1)
        return (parts.sum(axis=0) - parts) / (term.shape[0] * term.shape[1])

    value, slope, bend = map(without, solved.terms)
    if slope.min() <= 0:
        return 0.0
    step = value / slope
    shift = np.sum(step + 0.5 * bend / slope * step**2, axis=1)
    return float((batches.number - 1) * shift.mean())


def stepping_stones(draws: Draws, log_zeta: float) -> tuple[Estimate, Estimate]:
    """The log evidence by stepping stones: up from the base, down from the target (Xie et al. 2011).

    They are biased in opposite directions, so that a gap tells of too few replicas.
    """
    log_up, log_down = draws.stage_log_weights[:, :, 0], draws.stage_log_weights[:, :, 1]
    return _sum_of_log_means(log_up) + log_zeta, -_sum_of_log_means(log_down) + log_zeta


def _sum_of_log_means(log_weights: np.ndarray) -> Estimate:
    """Sum over stages of the log of a mean over (chain, draw), with the error of the sum."""
    largest = log_weights.max(axis=(0, 1))
    weights = np.exp(log_weights - largest)
    means = weights.mean(axis=(0, 1))
    return Estimate(float(np.sum(largest + np.log(means))), *mean_error(np.sum(weights / means - 1, axis=-1)))


def swap_rejections(draws: Draws) -> np.ndarray:
    """Mean probability that each pair of neighbours does not swap; their sum is Syed et al.'s (2021) global barrier."""
    log_acceptance = draws.stage_log_weights.sum(axis=2)
    return np.mean(-np.expm1(np.minimum(log_acceptance, 0.0)), axis=(0, 1))
