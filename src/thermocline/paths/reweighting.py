r"""What warm-up knows of $\log z(\beta)$ along the path, and how rounds of draws add to it.

Within one round, $z(\beta)/\zeta^\beta \propto$ the mean of $e^{\beta r}/N(r)$ at *any* beta, but that is only to be
believed where the round has been. So a round gives the slope of $\log z(\beta) - \beta\log\zeta$, which is the mean of
$r$, and the variance of $r$, which is the slope's own slope, on a grid; they are averaged with the number of
draws that the round spent there, and older rounds soon forgotten. Where nobody has been, slopes are
extrapolated with their variance.

All of it is NumPy on the host, between rounds; leading axes, over targets, go through everywhere.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from thermocline.records import Array

NUM_GRID = 257
FORGETTING = 0.1  # weight of older rounds where a new one has been
BY_BETA, AT_BASE, AT_TARGET = 0.1, 0.1, 0.2  # shares of the knots
TARGET_END = 1e-3  # of beta, that is as good as the target itself


class Curve(NamedTuple):
    """log z(beta) - beta log zeta on a grid, and the standard deviation of r (the thermodynamic speed) between."""

    betas: Array
    log_partition: Array
    speed: Array

    def log_partition_at(self, betas: np.ndarray) -> np.ndarray:
        return interpolate(betas, self.betas, self.log_partition)

    def speed_at(self, beta: np.ndarray) -> np.ndarray:
        place = np.sum(self.betas <= np.asarray(beta)[..., None], axis=-1, keepdims=True) - 1
        return np.take_along_axis(self.speed, np.clip(place, 0, self.speed.shape[-1] - 1), axis=-1)[..., 0]

    def travelled(self) -> np.ndarray:
        """Thermodynamic length from the base to every point of the grid: the integral of the speed."""
        return from_zero(self.speed * np.diff(self.betas))

    def knots(self, num_knots: int) -> np.ndarray:
        """Knots that divide the path evenly.

        Mostly by thermodynamic length; a share of them by beta, and a share at each end, so that the draws that the
        evidence's weights are made of are never few: within unit length of it, and at the target so near that weights
        are bounded. Where r is far above its mean, beta keeps within 1/r of 1, and with little mass there chains would
        hardly ever visit what the base has missed.
        """
        travelled = self.travelled()
        total = np.maximum(travelled[..., -1:], 1e-6)
        at_base = np.minimum(travelled / np.minimum(total, 1.0), 1.0)
        from_target = np.maximum(total - travelled, (1 - self.betas) / TARGET_END)
        at_target = 1 / (1 + from_target)
        by_length = 1 - BY_BETA - AT_BASE - AT_TARGET
        coordinate = by_length * travelled / total + BY_BETA * self.betas + AT_BASE * at_base + AT_TARGET * at_target
        return interpolate(np.linspace(0.0, 1.0, num_knots), coordinate / coordinate[..., -1:], self.betas)


class Profile(NamedTuple):
    """Mean and variance of r, and the draws they rest on, for each interval of the grid of beta."""

    mean: Array
    variance: Array
    visits: Array

    def updated(self, newer: "Profile") -> "Profile":
        """With a newer round, which counts fully; what it has revisited is mostly forgotten."""
        kept = np.where(newer.visits >= 1, FORGETTING, 1.0) * self.visits
        total = np.maximum(kept + newer.visits, 1e-30)
        mean, variance = (
            (kept * old + newer.visits * new) / total for old, new in zip(self[:2], newer[:2], strict=True)
        )
        return Profile(mean, variance, kept + newer.visits)

    def curve(self) -> Curve:
        """Integrated over beta; unvisited intervals interpolated, or extrapolated with the nearest variance."""
        betas, number = grid_of_betas(), self.mean.shape[-1]
        middle, index = 0.5 * (betas[1:] + betas[:-1]), np.arange(number)
        is_visited = self.visits >= 0.5
        before = np.maximum.accumulate(np.where(is_visited, index, -1), axis=-1)
        after = np.minimum.accumulate(np.where(is_visited, index, number)[..., ::-1], axis=-1)[..., ::-1]
        left, right = np.maximum(before, 0), np.minimum(after, number - 1)
        (low, high), (near, far) = (
            [np.take_along_axis(known, place, axis=-1) for place in (left, right)]
            for known in (self.mean, self.variance)
        )
        from_left = low + near * (middle - middle[left])
        from_right = high - far * (middle[right] - middle)
        gap = np.where(right > left, middle[right] - middle[left], 1.0)
        share = (middle - middle[left]) / gap
        has_left, has_right = before >= 0, after < number
        is_between = has_left & has_right
        mean = np.where(is_between, (1 - share) * low + share * high, np.where(has_left, from_left, from_right))
        bend = np.where(is_between, (high - low) / gap, 0.0)
        variance = np.maximum(np.where(has_left, near, far), bend)
        mean, variance = np.where(is_visited, self.mean, mean), np.where(is_visited, self.variance, variance)
        return Curve(betas, from_zero(mean * np.diff(betas)), np.sqrt(np.maximum(variance, 0.0)))


class Window(NamedTuple):
    """The part of the path that chains are held in while they climb from the base; open once they are up."""

    centre: Array
    width: Array
    is_open: Array

    def penalty(self, betas: np.ndarray) -> np.ndarray:
        """Added to f: quadratic about the centre, then linear; nothing when open."""
        distance = np.abs(betas - np.asarray(self.centre)[..., None]) / np.asarray(self.width)[..., None]
        beyond = np.where(distance < 4, 0.5 * distance**2, 4 * distance - 8)
        return np.where(np.asarray(self.is_open)[..., None], 0.0, beyond)

    def knots(self, num_knots: int) -> np.ndarray:
        """Knots that resolve the window, and the ends of the path."""
        centre, width = (np.asarray(part)[..., None] for part in self[:2])
        inside = np.clip(centre + width * np.linspace(-4.0, 4.0, num_knots), 0.0, 1.0)
        inside[..., 0], inside[..., -1] = 0.0, 1.0
        return inside


def interpolate(places: np.ndarray, grid: np.ndarray, values: np.ndarray) -> np.ndarray:
    """`np.interp(places, grid, values)` along the last axis of each, for many tables at once; leading axes broadcast.

    Where a point of the grid is repeated, the last of its values counts, as it does for `jnp.interp`.
    """
    leading = np.broadcast_shapes(places.shape[:-1], grid.shape[:-1], values.shape[:-1])
    places, grid, values = (np.broadcast_to(array, (*leading, array.shape[-1])) for array in (places, grid, values))
    places = np.clip(places, grid[..., :1], grid[..., -1:])
    right = np.clip(np.sum(grid[..., None, :] <= places[..., None], axis=-1), 1, grid.shape[-1] - 1)
    (start, stop), (low, high) = (
        [np.take_along_axis(table, index, axis=-1) for index in (right - 1, right)] for table in (grid, values)
    )
    width = np.where(stop > start, stop - start, 1.0)
    return low + (places - start) / width * np.where(stop > start, high - low, 0.0)


def from_zero(steps: np.ndarray) -> np.ndarray:
    """Running sums along the last axis, from 0 on."""
    return np.concatenate([np.zeros_like(steps[..., :1]), np.cumsum(steps, axis=-1)], axis=-1)


@cache
def grid_of_betas() -> np.ndarray:
    """From 0 to 1, crowded at both ends."""
    inner = 1 / (1 + np.exp(-np.linspace(-14.0, 14.0, NUM_GRID - 2)))
    grid = np.concatenate([[0.0], inner, [1.0]])
    grid.flags.writeable = False  # one array for all
    return grid


def profile_of_base(log_ratio: np.ndarray) -> Profile:
    """From exact base draws, which count by their effective number after reweighting to each beta."""
    is_used = np.isfinite(log_ratio)
    mean, variance, size, _ = _reweighted(np.where(is_used, log_ratio, 0.0), np.where(is_used, 0.0, -np.inf))
    count = np.minimum(size[..., 1:], size[..., :-1])
    return Profile(mean, variance, np.where(count > 0.2 * np.sum(is_used, axis=-1, keepdims=True), count, 0.0))


def profile_of_round(log_ratio: np.ndarray, log_mass: np.ndarray, log_prior: np.ndarray) -> Profile:
    """From a round's draws (NaN where there is none), with log N at the draws and -f on the grid."""
    is_used = np.isfinite(log_ratio)
    log_weight = np.where(is_used, -np.where(is_used, log_mass, 0.0), -np.inf)
    mean, variance, _, log_partition = _reweighted(np.where(is_used, log_ratio, 0.0), log_weight)
    log_density = log_partition + log_prior
    density = np.exp(log_density - np.max(log_density, axis=-1, keepdims=True))
    share = 0.5 * (density[..., 1:] + density[..., :-1]) * np.diff(grid_of_betas())
    total = np.sum(share, axis=-1, keepdims=True)
    return Profile(mean, variance, np.sum(is_used, axis=-1, keepdims=True) * share / total)


def _reweighted(log_ratio: np.ndarray, log_weight: np.ndarray) -> tuple[np.ndarray, ...]:
    """Mean and variance of r in each interval of the grid; effective size and log partition at its points.

    The variance is the harmonic mean of those at both ends: at beta = 0 it may be infinite, or overflow, where the
    target is next to nothing at some draws of the base.

    One target after another, as a table of all draws at all betas is large.
    """
    if log_ratio.ndim > 1:
        each = [_reweighted(*rows) for rows in zip(log_ratio, log_weight, strict=True)]
        return tuple(np.stack(leaves) for leaves in zip(*each, strict=True))
    betas = grid_of_betas()
    terms = betas[:, None] * log_ratio[..., None, :] + log_weight[..., None, :]
    highest = np.max(terms, axis=-1, keepdims=True)
    shares = np.exp(terms - highest)
    total = np.sum(shares, axis=-1, keepdims=True)
    shares, log_partition = shares / total, (highest + np.log(total))[..., 0]
    slope = np.diff(log_partition) / np.diff(betas)
    mean = np.sum(shares * log_ratio[..., None, :], axis=-1, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        squares = np.where(shares > 0, shares * (log_ratio[..., None, :] - mean) ** 2, 0.0)
        variance = np.sum(squares, axis=-1)
        variance = 2 / (1 / variance[..., 1:] + 1 / variance[..., :-1])
    size = 1 / np.sum(shares**2, axis=-1)
    return np.nan_to_num(slope), variance, size, log_partition
