"""What warm-up learns: step sizes, the metric and the law of beta, all of fixed shape."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.movers import Keys, Metric, Move, Mover
from thermocline.paths import AtTemperature, Law, Path, Point
from thermocline.paths.laws import Learned, has_atom_at_base, log_prior_at
from thermocline.paths.reweighting import Curve, Profile, Window, grid_of_betas, profile_of_base, profile_of_round
from thermocline.records import Array, Draws
from thermocline.support import special
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import to_numpy
from thermocline.support.pytree import pytree

NUM_NODES = 13  # of the step size along beta
STRIDE = 1.5  # of the first climb, in thermodynamic length
LARGEST_STEP = 1.5  # in units of the base's scale
EDGE = 1e-4  # resolution of beta near 0 and 1
SHARED_DRAWS = 8.0  # of the mean over all of them, that each node counts as its own
NUM_BINS = 16  # of the bias of metadynamics, between the two plateaus of beta


class Learning(NamedTuple):
    """What is known of the path, and the window in which chains climb it for the first time."""

    profile: Profile
    window: Window


@pytree
class Bias:
    """Metadynamics' potential at equally spaced places between the plateaus, and on them."""

    values: Any

    def at(self, place: jax.Array) -> jax.Array:
        """Linear between the middles of the bins; `place` is 0 on the plateau of the target, 1 on the hottest."""
        centres = jnp.concatenate([jnp.zeros(1), (jnp.arange(NUM_BINS) + 0.5) / NUM_BINS, jnp.ones(1)])
        return jnp.interp(place, centres.astype(self.values.dtype), self.values)


class Tuning(NamedTuple):
    """All that a method has learned; a slot that it has no use for is None."""

    step_size: Array  # at nodes along beta; a single one where beta moves with x
    metric: Metric
    law: Any = None  # of beta, where it is drawn
    learning: Any = None  # a `Learning`: how the law goes on to be learned; None where it is fixed
    schedule: Any = None  # a `TemperatureSchedule`: of temperatures that are not drawn
    curve: Any = None  # log z(beta), for a flow that needs it
    bias: Any = None  # of metadynamics

    @property
    def is_ramping(self) -> np.ndarray:
        """Whether the chains of each target are still on their first way up; asked between rounds, on the host."""
        if self.learning is None:
            return np.zeros(leading_axes(self), bool)
        return ~np.asarray(self.learning.window.is_open)


def betas_of(tuning: Tuning) -> jax.Array:
    """The inverse temperatures, of a method that has a schedule."""
    return jnp.asarray(tuning.schedule.betas)


def visits_base(tuning: Tuning) -> bool:
    """Whether temperatures include beta = 0 itself, so that draws of the base off the target's support count."""
    return tuning.schedule is not None or (tuning.law is not None and has_atom_at_base(tuning.law))


def in_precision(tuning: Tuning, dtype: Any) -> Tuning:
    """NumPy leaves, all floats of one type: then every round of a run finds its program compiled."""
    settled = lambda leaf: leaf.astype(dtype) if np.issubdtype(leaf.dtype, np.floating) else leaf  # noqa: E731
    return jax.tree.map(settled, to_numpy(tuning))


def spread(tree: Any, leading: tuple[int, ...]) -> Any:
    """The same for every target: leaves with leading axes over them, of which a single target has none."""
    return jax.tree.map(lambda leaf: np.broadcast_to(leaf, (*leading, *np.shape(leaf))), tree)


def leading_axes(tuning: Tuning) -> tuple[int, ...]:
    """Over targets; none, where the tuning is that of one."""
    return np.shape(tuning.step_size)[:-1]


def initial_tuning(
    mover: Mover, metric: Metric, law: Law | None, base_log_ratio: np.ndarray, *, num_nodes: int = NUM_NODES
) -> Tuning:
    """Before any round: the base's metric or the mover's own, a cautious step size, and a law that starts to climb.

    Like all of this file but `step_size_at`, NumPy on the host, for one target or for many: base log ratios are
    (..., draw), and then all leaves have the leading axes.
    """
    size, dtype, leading = metric.variances.shape[-1], metric.variances.dtype, np.shape(base_log_ratio)[:-1]
    scale = getattr(mover, "scale", None)  # the metric's standard deviations, where the mover states them
    if scale is not None:
        if np.shape(scale) not in ((), (size,)):
            raise ThermoclineError(f"the mover's scale has shape {np.shape(scale)}; give a number or {size} of them.")
        widths = np.broadcast_to(np.asarray(scale, dtype), metric.variances.shape)
        metric = Metric(widths, widths, np.ones_like(widths), metric.centres)
    guess = 0.5 / size**0.25 if mover.step_size is None else mover.step_size
    step_size = np.broadcast_to(np.asarray(guess, dtype), (*leading, num_nodes))
    law = spread(law, leading)
    if not isinstance(law, Learned):
        return Tuning(step_size, metric, law)
    profile = profile_of_base(np.asarray(base_log_ratio))
    curve = profile.curve()
    window = next_window(curve, np.zeros(leading))
    return Tuning(step_size, metric, law.relearned(curve, window), Learning(profile, window))


def next_window(curve: Curve, centre: np.ndarray) -> Window:
    """The window one stride further up; open when that reaches the target."""
    following = centre + STRIDE / np.maximum(curve.speed_at(centre), 1e-6)
    centre = np.minimum(following, 1.0)
    return Window(centre, 1 / np.maximum(curve.speed_at(centre), 1e-6), following >= 1)


def nodes_along(inverse_temperature: Array, num_nodes: int, *, log: Callable[[Array], Array] = np.log) -> Array:
    """Where beta falls among the nodes, a number in [0, num_nodes - 1]; `log` is JAX's within a step.

    Nodes are equally spaced in a clipped logit: a path from a broad prior changes its
    width by orders of magnitude near beta = 0.
    """
    widest = np.log((1 + EDGE) / EDGE)
    logit = log((inverse_temperature + EDGE) / (1 - inverse_temperature + EDGE))
    return (logit / widest + 1) / 2 * (num_nodes - 1)


def betas_of_nodes(num_nodes: int) -> np.ndarray:
    """The beta of each node; the middle of the path for a single one."""
    if num_nodes == 1:
        return np.full(1, 0.5)
    odds = np.exp(np.linspace(-1.0, 1.0, num_nodes) * np.log((1 + EDGE) / EDGE))
    return np.clip((odds * (1 + EDGE) - EDGE) / (1 + odds), 0.0, 1.0)


def step_size_at(tuning: Tuning, inverse_temperature: jax.Array) -> jax.Array:
    """The step size for moves at a fixed beta: log-linear between the nodes. Of JAX, within a step."""
    number = tuning.step_size.size
    place = nodes_along(inverse_temperature, number, log=jnp.log)
    nearness = jnp.maximum(0.0, 1 - jnp.abs(place - jnp.arange(number)))  # compiles faster than jnp.interp
    return jnp.exp(nearness @ jnp.log(tuning.step_size))


def move_at(
    beta: jax.Array, mover: Mover, keys: Keys, path: Path, tuning: Tuning, point: Point
) -> tuple[Point, Move]:
    """One move at a fixed beta, with the step size and the metric that were learned for it."""
    return mover.move(keys, AtTemperature(path, beta), step_size_at(tuning, beta), tuning.metric.at(beta), point)


def adapt_step_size(step_size: np.ndarray, mover: Mover, draws: Draws) -> np.ndarray:
    r"""Aim at the target acceptance, node by node.

    The energy error of a leapfrog trajectory has a standard deviation that grows as the square of
    the step, and acceptance is $2\Phi(-\sigma/2)$; so $\epsilon^2$ is scaled by the ratio of the wanted
    $\sigma$ to the measured one. A node borrows strength from the mean over all draws.
    """
    is_used, num_nodes = ~np.isnan(draws.log_ratio), step_size.shape[-1]
    acceptance = np.where(is_used, draws.acceptance, 0.0)
    overall = np.sum(acceptance, axis=(-2, -1)) / np.sum(is_used, axis=(-2, -1))
    beta = np.where(is_used, draws.inverse_temperature, 0.5)
    place = nodes_along(beta, num_nodes) if num_nodes > 1 else 0 * beta
    nearness = np.maximum(0.0, 1 - np.abs(place[..., None] - np.arange(num_nodes)))
    nearness = np.where(is_used[..., None], nearness, 0.0)
    total = np.sum(nearness, axis=(-3, -2)) + SHARED_DRAWS
    gathered = np.sum(nearness * acceptance[..., None], axis=(-3, -2)) + SHARED_DRAWS * overall[..., None]
    wanted, measured = (
        -special.ndtri(np.clip(mean, 1e-3, 0.999) / 2) for mean in (mover.target_acceptance, gathered / total)
    )
    return step_size * np.clip((wanted / measured) ** 0.4, 0.2, 1.6)


def adapt_moves(tuning: Tuning, mover: Mover, draws: Draws, is_last: bool) -> Tuning:
    """Step sizes, and the metric from all chains' draws weighted for the target.

    The last round leaves the metric alone, so that the step sizes are right for it. A new
    one keeps the absolute size of the steps: the nodes are rescaled by the change of its widths.
    """
    metric = tuning.metric
    if not is_last and getattr(mover, "scale", None) is None:
        is_used = ~np.isnan(draws.log_ratio)
        log_weight = np.where(is_used, draws.log_weight_target, -np.inf)
        weight = np.exp(log_weight - np.max(log_weight, axis=(-2, -1), keepdims=True))
        weight = weight / np.sum(weight, axis=(-2, -1), keepdims=True)
        metric = metric.adapted(np.where(is_used[..., None], draws.position, 0.0), weight)
    if mover.step_size is not None:
        return tuning._replace(metric=metric)
    betas = betas_of_nodes(tuning.step_size.shape[-1])
    old, new = tuning.metric.mean_log_width(betas), metric.mean_log_width(betas)
    step_size = adapt_step_size(tuning.step_size, mover, draws) * np.exp(old - new)
    return tuning._replace(step_size=np.minimum(step_size, LARGEST_STEP * np.exp(-new)), metric=metric)


def adapt_law(tuning: Tuning, draws: Draws) -> Tuning:
    """With the law refitted to what is known after this round; log N at the draws is what their weights hold."""
    law, learning = tuning.law, tuning.learning
    if learning is None:
        return tuning
    shape = (*np.shape(draws.log_ratio)[:-2], -1)
    newest, log_mass = np.reshape(draws.log_ratio, shape), -np.reshape(draws.log_weight_base, shape)
    log_prior = log_prior_at(law, grid_of_betas(), is_stacked=newest.ndim > 1)
    profile = learning.profile.updated(profile_of_round(newest, log_mass, log_prior))
    curve = profile.curve()
    window = next_window(curve, learning.window.centre)
    window = window._replace(is_open=window.is_open | learning.window.is_open)
    return tuning._replace(law=law.relearned(curve, window), learning=Learning(profile, window))
