r"""What the draws of several rounds say about $\log z(\beta)$ along the whole path.

Within one round, $z(\beta)/\zeta^\beta \propto$ the mean of $e^{\beta r}/N(r)$ at *any* beta, but that is only to be
believed where the round has been. So each round gives the slope of $\log z(\beta) - \beta\log\zeta$ on a grid,
and the slopes are averaged with the number of draws that the round spent there. Where no round has been, the
newest extrapolates: by convexity that understates $\log z$, so the next round is drawn towards the gap.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

NUM_GRID = 257
BY_BETA, AT_ENDS = 0.1, 0.2  # shares of the knots
FORGETTING = 0.1  # weight of a round relative to the one after it


class Profile(NamedTuple):
    """log z(beta) - beta log zeta and its curvature's square root (the thermodynamic speed), on a grid of beta."""

    betas: jax.Array
    log_partition: jax.Array
    speed: jax.Array

    def log_partition_at(self, betas: jax.Array) -> jax.Array:
        return jnp.interp(betas, self.betas, self.log_partition)

    def knots(self, num_knots: int) -> jax.Array:
        """Knots that divide the path evenly.

        Mostly by thermodynamic length, the integral of the speed; a share of them by beta, and a share within
        unit length of each end, so that the draws that the evidence's weights are made of are never few.
        """
        lengths = 0.5 * (self.speed[1:] + self.speed[:-1]) * jnp.diff(self.betas)
        travelled = jnp.append(0.0, jnp.cumsum(lengths))
        total = jnp.maximum(travelled[-1], 1e-6)
        end = jnp.minimum(total, 1.0)
        at_ends = (jnp.minimum(travelled, end) - jnp.minimum(total - travelled, end) + end) / (2 * end)
        coordinate = (1 - BY_BETA - AT_ENDS) * travelled / total + BY_BETA * self.betas + AT_ENDS * at_ends
        share = coordinate / coordinate[-1]
        return jnp.interp(jnp.linspace(0.0, 1.0, num_knots, dtype=share.dtype), share, self.betas)


def grid_of_betas(dtype: jnp.dtype) -> jax.Array:
    """From 0 to 1, crowded at both ends."""
    inner = jax.nn.sigmoid(jnp.linspace(-14.0, 14.0, NUM_GRID - 2, dtype=dtype))
    return jnp.concatenate([jnp.zeros(1, dtype), inner, jnp.ones(1, dtype)])


def profile_of_base(log_ratio: jax.Array, is_used: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Slopes, variances and counts from exact base draws, which count by their effective number at each beta."""
    betas = grid_of_betas(log_ratio.dtype)
    log_weight = jnp.where(is_used, 0.0, -jnp.inf)
    slope, variance, shares = _reweighted(betas, log_ratio, log_weight)
    size = 1 / jnp.sum(shares**2, axis=1)
    return slope, variance, jnp.maximum(jnp.minimum(size[1:], size[:-1]) - 8.0, 0.0)


def profile_of_round(log_ratio: jax.Array, is_used: jax.Array, log_mass: jax.Array, log_prior: jax.Array
                     ) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The same from a round's draws; `log_mass` is log N at the draws, `log_prior` is -f on the grid."""
    betas = grid_of_betas(log_ratio.dtype)
    slope, variance, _ = _reweighted(betas, log_ratio, jnp.where(is_used, -log_mass, -jnp.inf))
    density = jnp.exp(jnp.where(is_used, betas[:, None] * log_ratio - log_mass + log_prior[:, None], -jnp.inf))
    density = jnp.sum(density, axis=1)
    count = 0.5 * (density[1:] + density[:-1]) * jnp.diff(betas)
    return slope, variance, count * jnp.sum(is_used) / jnp.maximum(jnp.sum(count), 1e-30)


def _reweighted(betas: jax.Array, log_ratio: jax.Array, log_weight: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Slope of log z between grid points, variance of r at them, and the shares of the draws."""
    terms = betas[:, None] * log_ratio + log_weight
    log_partition = jax.nn.logsumexp(terms, axis=1)
    shares = jnp.exp(terms - log_partition[:, None])
    mean = shares @ log_ratio
    variance = jnp.sum(shares * (log_ratio - mean[:, None]) ** 2, axis=1)
    return jnp.diff(log_partition) / jnp.diff(betas), variance, shares


def combine(slopes: jax.Array, variances: jax.Array, counts: jax.Array) -> Profile:
    """One profile from those of base (row 0) and rounds (oldest to newest)."""
    num_rounds = slopes.shape[0] - 1
    ages = jnp.append(num_rounds, jnp.arange(num_rounds - 1, -1, -1))
    weights = counts * FORGETTING ** jnp.where(jnp.arange(num_rounds + 1) == 0, 0, ages)[:, None]
    weights = weights.at[-1].add(1.0)  # the newest extrapolates where nobody has been
    total = jnp.sum(weights, axis=0)
    known = jnp.where(weights > 0, slopes, 0.0)
    slope = jnp.sum(weights * known, axis=0) / total
    at_points = 0.5 * (jnp.append(weights[:, :1], weights, 1) + jnp.append(weights, weights[:, -1:], 1))
    variance = jnp.sum(at_points * jnp.where(at_points > 0, variances, 0.0), 0) / jnp.sum(at_points, 0)
    betas = grid_of_betas(slope.dtype)
    return Profile(betas, jnp.append(0.0, jnp.cumsum(slope * jnp.diff(betas))), jnp.sqrt(variance))
