"""What warm-up learns: step sizes, the metric and the law of beta, all of fixed shape."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from thermocline.methods.metadynamics import Bias
from thermocline.movers import Metric, Mover, metric_of
from thermocline.paths import Law, TemperatureSchedule, has_atom_at_base
from thermocline.paths.laws import Learned, Window
from thermocline.paths.reweighting import Curve, Profile, grid_of_betas, profile_of_base, profile_of_round
from thermocline.records import Draws
from thermocline.support.errors import ThermoclineError

NUM_NODES = 13  # of the step size along beta
STRIDE = 1.5  # of the first climb, in thermodynamic length
LARGEST_STEP = 1.5  # in units of the base's scale
EDGE = 1e-4  # resolution of beta near 0 and 1


class Learning(NamedTuple):
    """What is known of the path, and the window in which chains climb it for the first time."""

    profile: Profile
    window: Window


class Tuning(NamedTuple):
    """All that a method has learned; a slot that it has no use for is None."""

    step_size: jax.Array  # at nodes along beta; a single one where beta moves with x
    metric: Metric
    law: Law | None = None  # of beta, where it is drawn
    learning: Learning | None = None  # how the law goes on to be learned; None where it is fixed
    schedule: TemperatureSchedule | None = None  # of temperatures that are not drawn
    curve: Curve | None = None  # log z(beta), for a flow that needs it
    bias: Bias | None = None  # of metadynamics

    @property
    def is_ramping(self) -> bool:
        """Whether chains are still on their first way up; asked between rounds, on the host."""
        return self.learning is not None and not bool(self.learning.window.is_open)


def law_of(tuning: Tuning) -> Law:
    """The law of beta, of a method that draws from one."""
    assert tuning.law is not None, "this method has a law of beta"
    return tuning.law


def betas_of(tuning: Tuning) -> jax.Array:
    """The inverse temperatures, of a method that has a schedule."""
    assert tuning.schedule is not None, "this method has a schedule of temperatures"
    return jnp.asarray(tuning.schedule.betas)


def visits_base(tuning: Tuning) -> bool:
    """Whether temperatures include beta = 0 itself, so that draws of the base off the target's support count."""
    return tuning.schedule is not None or (tuning.law is not None and has_atom_at_base(tuning.law))


def initial_tuning(
    mover: Mover, metric: Metric, law: Law | None, base_log_ratio: jax.Array, *, num_nodes: int = NUM_NODES
) -> Tuning:
    """Before any round: the base's metric or the mover's own, a cautious step size, and a law that starts to climb."""
    size, dtype = metric.variances.size, metric.variances.dtype
    scale = fixed_scale(mover)
    if scale is not None:
        if jnp.shape(scale) not in ((), (size,)):
            raise ThermoclineError(f"the mover's scale has shape {jnp.shape(scale)}; give a number or {size} of them.")
        metric = metric_of(jnp.broadcast_to(jnp.asarray(scale, dtype), (size,)), metric.centres)
    guess = 0.5 / size**0.25 if mover.step_size is None else mover.step_size
    step_size = jnp.broadcast_to(jnp.asarray(guess, dtype), (num_nodes,))
    if not isinstance(law, Learned):
        return Tuning(step_size, metric, law)
    profile = profile_of_base(base_log_ratio)
    curve = profile.curve()
    window = next_window(curve, jnp.zeros((), dtype))
    return Tuning(step_size, metric, law.relearned(curve, window), Learning(profile, window))


def fixed_scale(mover: Mover) -> Any:
    """The metric's standard deviations where the mover states them; None where they are learned."""
    return getattr(mover, "scale", None)


def next_window(curve: Curve, centre: jax.Array) -> Window:
    """The window one stride further up; open when that reaches the target."""
    following = centre + STRIDE / jnp.maximum(curve.speed_at(centre), 1e-6)
    centre = jnp.minimum(following, 1.0)
    return Window(centre, 1 / jnp.maximum(curve.speed_at(centre), 1e-6), following >= 1)


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
    nearness = jnp.maximum(0.0, 1 - jnp.abs(place[..., None] - jnp.arange(step_size.size)))
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
    metric = tuning.metric
    if fixed_scale(mover) is None:
        adapted = adapt_metric(metric, draws)
        metric = jax.tree.map(lambda old, new: jnp.where(is_last, old, new), metric, adapted)
    if mover.step_size is not None:
        return tuning._replace(metric=metric)
    betas = betas_of_nodes(tuning.step_size.size, tuning.step_size.dtype)
    old, new = (
        jnp.mean(jnp.log(jax.vmap(lambda beta: m.at(beta).widths)(betas)), axis=1)  # noqa: B023
        for m in (tuning.metric, metric)
    )
    step_size = adapt_step_size(tuning.step_size, mover, draws) * jnp.exp(old - new)
    return tuning._replace(step_size=jnp.minimum(step_size, LARGEST_STEP * jnp.exp(-new)), metric=metric)


def adapt_metric(metric: Metric, draws: Draws) -> Metric:
    """The metric with the target's covariance from all chains, weighted for the target."""
    is_used = ~jnp.isnan(draws.log_ratio)
    log_weight = jnp.where(is_used, draws.log_weight_target, -jnp.inf)
    return metric.adapted(jnp.where(is_used[..., None], draws.position, 0.0), jax.nn.softmax(log_weight, axis=(0, 1)))


def adapt_law(tuning: Tuning, log_ratio: jax.Array) -> tuple[Law | None, Learning | None]:
    """The law refitted to what is known after this round, and what that is."""
    law, learning = tuning.law, tuning.learning
    if not isinstance(law, Learned) or learning is None:
        return law, learning
    newest = jnp.ravel(log_ratio)
    log_mass = jax.vmap(law.log_mass)(jnp.where(jnp.isfinite(newest), newest, 0.0))
    log_prior = jax.vmap(law.log_weight)(grid_of_betas(newest.dtype))
    profile = learning.profile.updated(profile_of_round(newest, log_mass, log_prior))
    curve = profile.curve()
    window = next_window(curve, learning.window.centre)
    window = window._replace(is_open=window.is_open | learning.window.is_open)
    return law.relearned(curve, window), Learning(profile, window)
