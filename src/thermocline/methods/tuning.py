"""What warm-up learns: step sizes, the metric and the law of beta, all of fixed shape."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from thermocline import linear
from thermocline.draws import Draws
from thermocline.movers import Mover
from thermocline.paths import Learned
from thermocline.paths.reweighting import Pool, pool_rounds

NUM_NODES = 13  # of the step size along beta
NUM_ROUNDS = 4  # that the law remembers
EDGE = 1e-4  # resolution of beta near 0 and 1


class History(NamedTuple):
    """Log ratios of exact base draws (row 0) and of the last rounds, with the laws they were drawn under."""

    log_ratio: jax.Array
    laws: Any  # stacked, one for each round after row 0


class Tuning(NamedTuple):
    step_size: jax.Array  # at nodes along beta; a single one where beta moves with x
    scale: jax.Array
    law: Any
    history: Any


def initial_tuning(mover: Mover, scale: jax.Array, law: Any, base_log_ratio: jax.Array, num_kept: int, *,
                   num_nodes: int = NUM_NODES) -> Tuning:
    """Before any round: the base's scale, a cautious step size, nothing remembered but the base."""
    guess = 0.5 / scale.shape[0] ** 0.25 if mover.step_size is None else mover.step_size
    step_size = jnp.broadcast_to(jnp.asarray(guess, scale.dtype), (num_nodes,))
    if not isinstance(law, Learned):
        return Tuning(step_size, scale, law, None)
    log_ratio = jnp.full((NUM_ROUNDS + 1, max(num_kept, base_log_ratio.size)), jnp.nan, scale.dtype)
    log_ratio = log_ratio.at[0, : base_log_ratio.size].set(base_log_ratio)
    laws = jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf)] * NUM_ROUNDS), law)
    return Tuning(step_size, scale, law, History(log_ratio, laws))


def nodes_along(inverse_temperature: jax.Array, num_nodes: int) -> jax.Array:
    """Where beta falls among the nodes, a number in [0, num_nodes - 1].

    Nodes are equally spaced in a clipped logit: a path from a broad prior changes its
    width by orders of magnitude near beta = 0.
    """
    widest = jnp.log((1 + EDGE) / EDGE)
    logit = jnp.log((inverse_temperature + EDGE) / (1 - inverse_temperature + EDGE))
    return (logit / widest + 1) / 2 * (num_nodes - 1)


def step_size_at(tuning: Tuning, inverse_temperature: jax.Array) -> jax.Array:
    """The step size for moves at a fixed beta: log-linear between the nodes."""
    place = nodes_along(inverse_temperature, tuning.step_size.size)
    return jnp.exp(jnp.interp(place, jnp.arange(tuning.step_size.size), jnp.log(tuning.step_size)))


def adapt_step_size(step_size: jax.Array, mover: Mover, draws: Draws, *, prior_draws: float = 8.0,
                    largest: float = 1.5) -> jax.Array:
    r"""Aim at the target acceptance, node by node.

    The energy error of a leapfrog trajectory has a standard deviation that grows as the square of
    the step, and acceptance is $2\Phi(-\sigma/2)$; so $\epsilon^2$ is scaled by the ratio of the wanted
    $\sigma$ to the measured one. A node borrows strength from the mean over all draws.
    """
    if mover.step_size is not None:
        return step_size
    is_used = ~jnp.isnan(draws.log_ratio)
    acceptance = jnp.where(is_used, draws.acceptance, 0.0)
    overall = jnp.sum(acceptance) / jnp.sum(is_used)
    place = nodes_along(draws.inverse_temperature, step_size.size) if step_size.size > 1 else 0 * draws.log_ratio
    nearness = jnp.maximum(0.0, 1 - jnp.abs(place[..., None] - jnp.arange(step_size.size))) * is_used[..., None]
    nearness = jnp.where(is_used[..., None], nearness, 0.0)
    total = jnp.sum(nearness, (0, 1)) + prior_draws
    local = (jnp.sum(nearness * acceptance[..., None], (0, 1)) + prior_draws * overall) / total
    ratio = energy_deviation(jnp.asarray(mover.target_acceptance)) / energy_deviation(local)
    return jnp.minimum(step_size * jnp.clip(jnp.sqrt(ratio), 0.2, 2.0), largest)


def energy_deviation(acceptance: jax.Array) -> jax.Array:
    """Half the standard deviation of the energy error that gives this mean acceptance."""
    return -jax.scipy.stats.norm.ppf(jnp.clip(acceptance, 1e-3, 0.999) / 2)


def adapt_scale(scale: jax.Array, draws: Draws) -> jax.Array:
    """The pooled covariance of x over all chains and temperatures, shrunk towards the present one."""
    is_used = jnp.ravel(~jnp.isnan(draws.log_ratio))
    position = draws.position.reshape(-1, draws.position.shape[-1])
    count = jnp.sum(is_used)
    position = jnp.where(is_used[:, None], position, 0.0)
    centred = jnp.where(is_used[:, None], position - jnp.sum(position, 0) / count, 0.0)
    sums = jnp.sum(centred**2, 0) if scale.ndim == 1 else centred.T @ centred
    prior_draws = 10.0 + (scale.shape[0] if scale.ndim == 2 else 0)
    pooled = (sums + prior_draws * linear.covariance(scale)) / (count + prior_draws)
    updated = linear.factor(pooled)
    return jnp.where(jnp.all(jnp.isfinite(updated)), updated, scale)


def adapt_law(tuning: Tuning, log_ratio: jax.Array) -> tuple[Any, Any]:
    """The law refitted to the remembered rounds and this one, and what is remembered."""
    law, history = tuning.law, tuning.history
    if not isinstance(law, Learned):
        return law, history
    newest = jnp.ravel(log_ratio)
    newest = jnp.pad(newest, (0, history.log_ratio.shape[1] - newest.size), constant_values=jnp.nan)
    rows = jnp.concatenate([history.log_ratio[:1], history.log_ratio[2:], newest[None]])
    laws = jax.tree.map(lambda old, new: jnp.concatenate([old[1:], jnp.asarray(new)[None]]), history.laws, law)
    return law.relearned(pool_history(rows, laws)), History(rows, laws)


def pool_history(log_ratio: jax.Array, laws: Any) -> Pool:
    """All remembered draws as one pool; draws off the target's support know only beta = 0 and are left out."""
    is_used = jnp.isfinite(log_ratio)
    safe = jnp.where(is_used, log_ratio, 0.0)
    masses = jax.vmap(lambda law: jax.vmap(jax.vmap(law.log_mass))(safe))(laws)
    return pool_rounds(safe, is_used, jnp.concatenate([jnp.zeros_like(masses[:1]), masses]))
