"""What warm-up learns: step sizes, the metric and the law of beta, all of fixed shape."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from thermocline.draws import Draws
from thermocline.movers import Metric, Mover, metric_of
from thermocline.paths import Learned
from thermocline.paths.reweighting import Profile, combine, grid_of_betas, profile_of_base, profile_of_round

NUM_NODES = 13  # of the step size along beta
NUM_ROUNDS = 4  # that the law remembers
LARGEST_STEP = 1.5  # in units of the base's scale
EDGE = 1e-4  # resolution of beta near 0 and 1


class History(NamedTuple):
    """Log ratios of exact base draws (row 0) and of the last rounds, with the laws they were drawn under."""

    log_ratio: jax.Array
    laws: Any  # stacked, one for each round after row 0


class Tuning(NamedTuple):
    step_size: jax.Array  # at nodes along beta; a single one where beta moves with x
    metric: Metric
    law: Any
    history: Any


def initial_tuning(mover: Mover, scale: jax.Array, law: Any, base_log_ratio: jax.Array, num_kept: int, *,
                   num_nodes: int = NUM_NODES) -> Tuning:
    """Before any round: the base's metric, a cautious step size, nothing remembered but the base."""
    guess = 0.5 / scale.shape[0] ** 0.25 if mover.step_size is None else mover.step_size
    step_size = jnp.broadcast_to(jnp.asarray(guess, scale.dtype), (num_nodes,))
    if not isinstance(law, Learned):
        return Tuning(step_size, metric_of(scale), law, None)
    log_ratio = jnp.full((NUM_ROUNDS + 1, max(num_kept, base_log_ratio.size)), jnp.nan, scale.dtype)
    log_ratio = log_ratio.at[0, : base_log_ratio.size].set(base_log_ratio)
    laws = jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf)] * NUM_ROUNDS), law)
    return Tuning(step_size, metric_of(scale), law, History(log_ratio, laws))


def nodes_along(inverse_temperature: jax.Array, num_nodes: int) -> jax.Array:
    """Where beta falls among the nodes, a number in [0, num_nodes - 1].

    Nodes are equally spaced in a clipped logit: a path from a broad prior changes its
    width by orders of magnitude near beta = 0.
    """
    widest = jnp.log((1 + EDGE) / EDGE)
    logit = jnp.log((inverse_temperature + EDGE) / (1 - inverse_temperature + EDGE))
    return (logit / widest + 1) / 2 * (num_nodes - 1)


def betas_of_nodes(num_nodes: int, dtype: Any) -> jax.Array:
    """The beta of each node; the middle of the path for a single one."""
    if num_nodes == 1:
        return jnp.full(1, 0.5, dtype)
    odds = jnp.exp(jnp.linspace(-1.0, 1.0, num_nodes, dtype=dtype) * jnp.log((1 + EDGE) / EDGE))
    return jnp.clip((odds * (1 + EDGE) - EDGE) / (1 + odds), 0.0, 1.0)


def step_size_at(tuning: Tuning, inverse_temperature: jax.Array) -> jax.Array:
    """The step size for moves at a fixed beta: log-linear between the nodes."""
    place = nodes_along(inverse_temperature, tuning.step_size.size)
    return jnp.exp(jnp.interp(place, jnp.arange(tuning.step_size.size), jnp.log(tuning.step_size)))


def adapt_step_size(step_size: jax.Array, mover: Mover, draws: Draws, *, prior_draws: float = 8.0) -> jax.Array:
    r"""Aim at the target acceptance, node by node.

    The energy error of a leapfrog trajectory has a standard deviation that grows as the square of
    the step, and acceptance is $2\Phi(-\sigma/2)$; so $\epsilon^2$ is scaled by the ratio of the wanted
    $\sigma$ to the measured one. A node borrows strength from the mean over all draws.
    """
    is_used = ~jnp.isnan(draws.log_ratio)
    acceptance = jnp.where(is_used, draws.acceptance, 0.0)
    overall = jnp.sum(acceptance) / jnp.sum(is_used)
    place = nodes_along(draws.inverse_temperature, step_size.size) if step_size.size > 1 else 0 * draws.log_ratio
    nearness = jnp.maximum(0.0, 1 - jnp.abs(place[..., None] - jnp.arange(step_size.size))) * is_used[..., None]
    nearness = jnp.where(is_used[..., None], nearness, 0.0)
    total = jnp.sum(nearness, (0, 1)) + prior_draws
    local = (jnp.sum(nearness * acceptance[..., None], (0, 1)) + prior_draws * overall) / total
    ratio = energy_deviation(jnp.asarray(mover.target_acceptance)) / energy_deviation(local)
    return step_size * jnp.clip(ratio**0.4, 0.2, 1.6)


def energy_deviation(acceptance: jax.Array) -> jax.Array:
    """Half the standard deviation of the energy error that gives this mean acceptance."""
    return -jax.scipy.stats.norm.ppf(jnp.clip(acceptance, 1e-3, 0.999) / 2)


def adapt_moves(tuning: Tuning, mover: Mover, draws: Draws, is_last: jax.Array) -> Tuning:
    """Step sizes and metric; the last round leaves the metric alone, so that the step sizes are right for it.

    A new metric keeps the absolute size of the steps: the nodes are rescaled by the change of its widths.
    """
    metric = adapt_metric(tuning.metric, draws)
    metric = jax.tree.map(lambda old, new: jnp.where(is_last, old, new), tuning.metric, metric)
    if mover.step_size is not None:
        return tuning._replace(metric=metric)
    betas = betas_of_nodes(tuning.step_size.size, tuning.step_size.dtype)
    old, new = (jnp.mean(jnp.log(jax.vmap(lambda beta: m.at(beta).widths)(betas)), axis=1)  # noqa: B023
                for m in (tuning.metric, metric))
    step_size = adapt_step_size(tuning.step_size, mover, draws) * jnp.exp(old - new)
    return tuning._replace(step_size=jnp.minimum(step_size, LARGEST_STEP * jnp.exp(-new)), metric=metric)


def adapt_metric(metric: Metric, draws: Draws) -> Metric:
    """The metric with the target's covariance from all chains, weighted for the target."""
    is_used = ~jnp.isnan(draws.log_ratio)
    log_weight = jnp.where(is_used, draws.log_weight_target, -jnp.inf)
    return metric.adapted(jnp.where(is_used[..., None], draws.position, 0.0), jax.nn.softmax(log_weight, axis=(0, 1)))


def adapt_law(tuning: Tuning, log_ratio: jax.Array) -> tuple[Any, Any]:
    """The law refitted to the remembered rounds and this one, and what is remembered."""
    law, history = tuning.law, tuning.history
    if not isinstance(law, Learned):
        return law, history
    newest = jnp.ravel(log_ratio)
    newest = jnp.pad(newest, (0, history.log_ratio.shape[1] - newest.size), constant_values=jnp.nan)
    rows = jnp.concatenate([history.log_ratio[:1], history.log_ratio[2:], newest[None]])
    laws = jax.tree.map(lambda old, new: jnp.concatenate([old[1:], jnp.asarray(new)[None]]), history.laws, law)
    return law.relearned(profile_of(rows, laws)), History(rows, laws)


def profile_of(log_ratio: jax.Array, laws: Any) -> Profile:
    """All that is remembered as one profile; draws off the target's support know only beta = 0 and are left out."""
    is_used = jnp.isfinite(log_ratio)
    safe = jnp.where(is_used, log_ratio, 0.0)
    betas = grid_of_betas(log_ratio.dtype)

    def of_round(law: Any, log_ratio: jax.Array, is_used: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        return profile_of_round(log_ratio, is_used, jax.vmap(law.log_mass)(log_ratio), jax.vmap(law.log_weight)(betas))

    rounds = jax.vmap(of_round)(laws, safe[1:], is_used[1:])
    base = profile_of_base(safe[0], is_used[0])
    together = (jnp.concatenate([first[None], rest]) for first, rest in zip(base, rounds, strict=True))
    return combine(*(jnp.nan_to_num(part, neginf=0.0) for part in together))
