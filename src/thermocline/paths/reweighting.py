r"""What warm-up knows of $\log z(\beta)$ along the path, and how rounds of draws add to it.

Within one round, $z(\beta)/\zeta^\beta \propto$ the mean of $e^{\beta r}/N(r)$ at *any* beta, but that is only to be
believed where the round has been. So a round gives the slope of $\log z(\beta) - \beta\log\zeta$, which is the mean of
$r$, and the variance of $r$, which is the slope's own slope, on a grid; they are averaged with the number of
draws that the round spent there, and older rounds soon forgotten. Where nobody has been, slopes are
extrapolated with their variance.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

NUM_GRID = 257
FORGETTING = 0.1  # weight of older rounds where a new one has been
BY_BETA, AT_BASE, AT_TARGET = 0.1, 0.1, 0.2  # shares of the knots
TARGET_END = 1e-3  # of beta, that is as good as the target itself


class Curve(NamedTuple):
    """log z(beta) - beta log zeta on a grid, and the standard deviation of r (the thermodynamic speed) between."""

    betas: jax.Array
    log_partition: jax.Array
    speed: jax.Array

    def log_partition_at(self, betas: jax.Array) -> jax.Array:
        return jnp.interp(betas, self.betas, self.log_partition)

    def speed_at(self, beta: jax.Array) -> jax.Array:
        place = jnp.searchsorted(self.betas, beta, side="right") - 1
        return self.speed[jnp.clip(place, 0, self.speed.size - 1)]

    def knots(self, num_knots: int) -> jax.Array:
        """Knots that divide the path evenly.

        Mostly by thermodynamic length, the integral of the speed; a share of them by beta, and a share at each end,
        so that the draws that the evidence's weights are made of are never few: within unit length of it, and at the
        target so near that weights are bounded. Where r is far above its mean, beta keeps within 1/r of 1, and with
        little mass there chains would hardly ever visit what the base has missed.
        """
        travelled = jnp.append(0.0, jnp.cumsum(self.speed * jnp.diff(self.betas)))
        total = jnp.maximum(travelled[-1], 1e-6)
        at_base = jnp.minimum(travelled / jnp.minimum(total, 1.0), 1.0)
        from_target = jnp.maximum(total - travelled, (1 - self.betas) / TARGET_END)
        at_target = 1 / (1 + from_target)
        by_length = 1 - BY_BETA - AT_BASE - AT_TARGET
        coordinate = by_length * travelled / total + BY_BETA * self.betas + AT_BASE * at_base + AT_TARGET * at_target
        share = coordinate / coordinate[-1]
        return jnp.interp(jnp.linspace(0.0, 1.0, num_knots, dtype=share.dtype), share, self.betas)


class Profile(NamedTuple):
    """Mean and variance of r, and the draws they rest on, for each interval of the grid of beta."""

    mean: jax.Array
    variance: jax.Array
    visits: jax.Array

    def updated(self, newer: "Profile") -> "Profile":
        """With a newer round, which counts fully; what it has revisited is mostly forgotten."""
        kept = jnp.where(newer.visits >= 1, FORGETTING, 1.0) * self.visits
        total = jnp.maximum(kept + newer.visits, 1e-30)
        mean, variance = (
            (kept * old + newer.visits * new) / total for old, new in zip(self[:2], newer[:2], strict=True)
        )
        return Profile(mean, variance, kept + newer.visits)

    def curve(self) -> Curve:
        """Integrated over beta; unvisited intervals interpolated, or extrapolated with the nearest variance."""
        betas = grid_of_betas(self.mean.dtype)
        middle, index = 0.5 * (betas[1:] + betas[:-1]), jnp.arange(self.mean.size)
        is_visited = self.visits >= 0.5
        before = jax.lax.cummax(jnp.where(is_visited, index, -1))
        after = jax.lax.cummin(jnp.where(is_visited, index, index.size), reverse=True)
        left, right = jnp.maximum(before, 0), jnp.minimum(after, index.size - 1)
        from_left = self.mean[left] + self.variance[left] * (middle - middle[left])
        from_right = self.mean[right] - self.variance[right] * (middle[right] - middle)
        gap = jnp.where(right > left, middle[right] - middle[left], 1.0)
        share = (middle - middle[left]) / gap
        between = (1 - share) * self.mean[left] + share * self.mean[right]
        has_left, has_right = before >= 0, after < index.size
        mean = jnp.where(has_left & has_right, between, jnp.where(has_left, from_left, from_right))
        bend = jnp.where(has_left & has_right, (self.mean[right] - self.mean[left]) / gap, 0.0)
        variance = jnp.maximum(jnp.where(has_left, self.variance[left], self.variance[right]), bend)
        mean, variance = jnp.where(is_visited, self.mean, mean), jnp.where(is_visited, self.variance, variance)
        return Curve(betas, jnp.append(0.0, jnp.cumsum(mean * jnp.diff(betas))), jnp.sqrt(jnp.maximum(variance, 0.0)))


def grid_of_betas(dtype: jnp.dtype) -> jax.Array:
    """From 0 to 1, crowded at both ends."""
    inner = jax.nn.sigmoid(jnp.linspace(-14.0, 14.0, NUM_GRID - 2, dtype=dtype))
    return jnp.concatenate([jnp.zeros(1, dtype), inner, jnp.ones(1, dtype)])


def profile_of_base(log_ratio: jax.Array) -> Profile:
    """From exact base draws, which count by their effective number after reweighting to each beta."""
    is_used = jnp.isfinite(log_ratio)
    mean, variance, shares = _reweighted(jnp.where(is_used, log_ratio, 0.0), jnp.where(is_used, 0.0, -jnp.inf))
    size = 1 / jnp.sum(shares**2, axis=1)
    count = jnp.minimum(size[1:], size[:-1])
    return Profile(mean, variance, jnp.where(count > 0.2 * jnp.sum(is_used), count, 0.0))


def profile_of_round(log_ratio: jax.Array, log_mass: jax.Array, log_prior: jax.Array) -> Profile:
    """From a round's draws (NaN where there is none), with log N at the draws and -f on the grid."""
    is_used = jnp.isfinite(log_ratio)
    safe, log_weight = jnp.where(is_used, log_ratio, 0.0), jnp.where(is_used, -log_mass, -jnp.inf)
    mean, variance, _ = _reweighted(safe, log_weight)
    betas = grid_of_betas(log_ratio.dtype)
    log_density = jax.nn.logsumexp(betas[:, None] * safe + log_weight, axis=1) + log_prior
    density = jnp.exp(log_density - jnp.max(log_density))
    share = 0.5 * (density[1:] + density[:-1]) * jnp.diff(betas)
    return Profile(mean, variance, jnp.sum(is_used) * share / jnp.sum(share))


def _reweighted(log_ratio: jax.Array, log_weight: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mean and variance of r in each interval of the grid, and the shares of the draws at its points."""
    betas = grid_of_betas(log_ratio.dtype)
    terms = betas[:, None] * log_ratio + log_weight
    log_partition = jax.nn.logsumexp(terms, axis=1)
    shares = jnp.exp(terms - log_partition[:, None])
    mean = shares @ log_ratio
    variance = jnp.sum(shares * (log_ratio - mean[:, None]) ** 2, axis=1)
    slope = jnp.diff(log_partition) / jnp.diff(betas)
    return jnp.nan_to_num(slope), 0.5 * (variance[1:] + variance[:-1]), shares
