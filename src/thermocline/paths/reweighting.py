r"""What the draws of several rounds say together about $\log z(\beta)$.

Round $j$ drew from $p_j(x) = \mathrm{base}(x)\,N_j(r(x))/C_j$, where $N_j$ is the mass of its law of beta.
Since every $p_j$ depends on $x$ through $r$ alone, the rounds pool exactly: a draw from any of them
represents the base with weight $1/\sum_j n_j N_j(r)/C_j$, where the $C_j$ solve their own equations
(Shirts & Chodera 2008). With one round it is the paper's Rao-Blackwellised estimator.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

NUM_ITERATIONS = 100
NUM_CANDIDATES = 129


class Pool(NamedTuple):
    """Log ratios of pooled draws, and the log weight with which each represents the base."""

    log_ratio: jax.Array
    log_weight: jax.Array

    def log_partition(self, betas: jax.Array) -> jax.Array:
        """log of z(beta)/zeta^beta up to one constant, at any beta."""
        return jax.nn.logsumexp(betas[:, None] * self.log_ratio + self.log_weight, axis=1)

    def deviation(self, betas: jax.Array) -> jax.Array:
        """Standard deviation of r at each beta: the thermodynamic speed."""
        weight = jax.nn.softmax(betas[:, None] * self.log_ratio + self.log_weight, axis=1)
        mean = weight @ self.log_ratio
        return jnp.sqrt(jnp.sum(weight * (self.log_ratio - mean[:, None]) ** 2, axis=1))

    def equal_length_knots(self, num_knots: int, *, floor: float = 0.2) -> jax.Array:
        """Knots with equal integrals of the speed between them; a share `floor` of them equally spaced."""
        candidates = jax.nn.sigmoid(jnp.linspace(-14.0, 14.0, NUM_CANDIDATES, dtype=self.log_ratio.dtype))
        candidates = candidates.at[0].set(0.0).at[-1].set(1.0)
        speed = self.deviation(candidates)
        lengths = 0.5 * (speed[1:] + speed[:-1]) * jnp.diff(candidates)
        travelled = jnp.concatenate([jnp.zeros(1, lengths.dtype), jnp.cumsum(lengths)])
        total = travelled[-1]
        share = jnp.where(total > 0, travelled / jnp.where(total > 0, total, 1.0), candidates)
        coordinate = (1 - floor) * share + floor * candidates
        knots = jnp.interp(jnp.linspace(0.0, 1.0, num_knots, dtype=share.dtype), coordinate, candidates)
        return knots.at[0].set(0.0).at[-1].set(1.0)


def pool_rounds(log_ratio: jax.Array, is_used: jax.Array, log_mass: jax.Array) -> Pool:
    """Pool the rounds: row j of `log_ratio` was drawn under law j; `log_mass[j]` holds log N_j at *all* draws.

    The first round is exact draws of the base (N = 1), which anchors the pool at beta = 0.
    """
    flat, used = jnp.ravel(log_ratio), jnp.ravel(is_used)
    flat = jnp.where(used, flat, 0.0)
    masses = jnp.where(used, log_mass.reshape(log_mass.shape[0], -1), 0.0)
    log_count = jnp.log(jnp.sum(is_used, axis=1))[:, None]

    def log_weight(log_constant: jax.Array) -> jax.Array:
        log_mixture = jax.nn.logsumexp(log_count + masses - log_constant[:, None], axis=0)
        return jnp.where(used, -log_mixture, -jnp.inf)

    def iterate(_: int, log_constant: jax.Array) -> jax.Array:
        updated = jax.nn.logsumexp(masses + log_weight(log_constant), axis=1)
        updated = jnp.where(jnp.isneginf(log_count[:, 0]), 0.0, updated)
        return updated - updated[0]

    start = jnp.nan_to_num(jnp.sum(jnp.where(is_used, log_mass_of_own(log_mass), 0.0), axis=1)
                           / jnp.sum(is_used, axis=1))
    return Pool(flat, log_weight(jax.lax.fori_loop(0, NUM_ITERATIONS, iterate, start - start[0])))


def log_mass_of_own(log_mass: jax.Array) -> jax.Array:
    """log N_j at the draws of round j itself: a first guess of log C_j."""
    rounds = jnp.arange(log_mass.shape[0])
    return log_mass[rounds, rounds]
