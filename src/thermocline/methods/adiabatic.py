"""Adiabatic Monte Carlo (Betancourt 2014): a contact Hamiltonian flow that carries x from the base to the target."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from thermocline.methods.pilot import Piloted, curve_of, equidistant_betas
from thermocline.methods.tuning import Tuning, betas_of, leading_axes, spread, step_size_at
from thermocline.movers import HMC, Keys, Mover, Scale
from thermocline.paths import AtTemperature, Path, Point, TemperatureSchedule
from thermocline.paths.reweighting import Curve
from thermocline.records import Draw
from thermocline.support.pytree import field, pytree, static

MOST_STEPS = 20  # of a leg, in units of what it takes on average; a run that needs more is given up


class Flow(NamedTuple):
    """Where a run has come to."""

    point: Point
    momentum: jax.Array  # in units of the metric
    beta: jax.Array
    level: jax.Array  # log density of position and momentum, over the estimated z(beta): what the flow conserves
    squared: jax.Array  # length of the momentum that was drawn last
    log_weight: jax.Array
    num_steps: jax.Array
    num_halts: jax.Array


@pytree
class AdiabaticMonteCarlo(Piloted):
    r"""Experimental. Each draw is one run along the contact flow (eq. contact-hamiltonian-flow), from the base.

    With p the momentum in units of the metric, $\dot x = p$, $\dot\beta = a\,p^\top p$ and
    $\dot p = \nabla\log\pi_\beta(x) + a\,(r - \bar r_\beta)\,p$; $\bar r_\beta = \partial\log z/\partial\beta$ is what
    a pilot has estimated. The flow conserves the normalised density of (x, p) at the beta of the moment. It does not
    conserve volume, so that a draw has the weight of its Jacobian, $\dim x \int a\,(r - \bar r_\beta)\,dt$ less the
    gain of $\log p^\top p$; as first published, draws have none. Momenta are drawn afresh at `num_legs` places of equal
    divergence, each about `num_steps` steps from the last, and wherever the flow halts because no momentum is left (a
    metastability).

    Weights are exact but for the error of the integrator and for these halts, whose share is one less `acceptance`; in
    fewer than five dimensions their variance is infinite. So the verdict is never "ok".
    """

    mover: Mover = field(default_factory=HMC)
    num_legs: int = static(default=8)
    num_steps: int = static(default=16)

    is_sized = True
    first_draws = 64
    biases = (
        "Adiabatic Monte Carlo is not exact: its integrator has no Metropolis test, and where its flow halts momenta "
        "are drawn anew without a correction; compare with another method.",
    )

    def schedule(self, tuning: Tuning) -> TemperatureSchedule:
        return TemperatureSchedule(equidistant_betas(curve_of(tuning), self.num_legs + 1), group=1)

    def tuned(self, tuning: Tuning) -> Tuning:
        if tuning.schedule is not None:
            return tuning
        curve = curve_of(tuning)
        curve = curve._replace(betas=spread(curve.betas, leading_axes(tuning)))
        return super().tuned(tuning)._replace(curve=curve)

    def step(self, keys: Keys, path: Path, tuning: Tuning, state: jax.Array) -> tuple[jax.Array, Draw]:
        key_start, key_legs = jax.random.split(keys.own)
        point = path.draw_base(key_start)
        zero, none, total = jnp.zeros_like(point.log_ratio), jnp.zeros((), int), tuning.curve.log_partition[-1]
        flow = Flow(point, jnp.zeros_like(point.position), zero, zero, zero, total, none, none)

        def leg(k: jax.Array, flow: Flow) -> Flow:
            return self.leg(jax.random.fold_in(key_legs, k), path, tuning, betas_of(tuning)[k + 1], flow)

        flow = jax.lax.fori_loop(0, self.num_legs, leg, flow)
        is_lost, one = flow.beta < 1, jnp.ones_like(zero)
        log_weight = jnp.where(is_lost, -jnp.inf, flow.log_weight)
        passed = 1 - flow.num_halts / (flow.num_halts + self.num_legs)
        move = passed, is_lost, jnp.asarray(False), flow.num_steps + 1
        return state, Draw(flow.point.position, one, flow.point.log_ratio, log_weight, 0 * one, *move, 0 * one)

    def leg(self, key: jax.Array, path: Path, tuning: Tuning, upper: jax.Array, flow: Flow) -> Flow:
        """From where the flow is up to beta = `upper`, from a fresh momentum; the log weight gains what that adds."""
        middle = 0.5 * (flow.beta + upper)
        scale, step_size = tuning.metric.at(middle), step_size_at(tuning, middle)
        rate = (upper - flow.beta) / (flow.momentum.size * step_size * self.num_steps)
        first, curve = flow.num_steps, tuning.curve

        def goes_on(flow: Flow) -> jax.Array:
            return (flow.beta < upper) & (flow.num_steps - first < MOST_STEPS * self.num_steps)

        def advance(flow: Flow) -> Flow:
            after = contact_step(path, curve, rate, scale, step_size, upper, flow)
            halted = self._refreshed(jax.random.fold_in(key, flow.num_steps + 1), path, curve, flow)
            halted = halted._replace(num_steps=flow.num_steps + 1, num_halts=flow.num_halts + 1)
            is_halted = ~jnp.all(jnp.isfinite(after.momentum)) | jnp.isnan(after.log_weight)
            return jax.tree.map(lambda old, new: jnp.where(is_halted, old, new), halted, after)

        flow = self._refreshed(key, path, curve, flow)
        flow = jax.lax.while_loop(goes_on, advance, flow)
        gain = jnp.log(flow.squared) - jnp.log(flow.momentum @ flow.momentum)
        return flow._replace(log_weight=flow.log_weight + gain)

    def _refreshed(self, key: jax.Array, path: Path, curve: Curve, flow: Flow) -> Flow:
        momentum = jax.random.normal(key, flow.momentum.shape, flow.momentum.dtype)
        return with_momentum(path, curve, flow, momentum)


def with_momentum(path: Path, curve: Curve, flow: Flow, momentum: jax.Array) -> Flow:
    """The flow with another momentum, and so on another level."""
    squared = momentum @ momentum
    level = log_normalised(path, curve, flow.point, flow.beta) - 0.5 * squared
    return flow._replace(momentum=momentum, level=level, squared=squared)


def log_partition(curve: Curve, beta: jax.Array) -> jax.Array:
    """Log z(beta), linear between the points of the curve; of JAX, within a step."""
    return jnp.interp(beta, curve.betas, curve.log_partition)


def log_normalised(path: Path, curve: Curve, point: Point, beta: jax.Array) -> jax.Array:
    """Log density of x at beta, with the estimated partition function."""
    return AtTemperature(path, beta).log_density(point) - log_partition(curve, beta)


def contact_step(
    path: Path, curve: Curve, rate: jax.Array, scale: Scale, step_size: jax.Array, upper: jax.Array, flow: Flow
) -> Flow:
    """One leapfrog step, shortened so as not to pass `upper`; the level decides how long the momentum is at its end.

    NaN momenta say that none is left: the flow halts.
    """
    point, momentum, beta = flow[:3]

    def kicked(point: Point, momentum: jax.Array, beta: jax.Array, duration: jax.Array) -> jax.Array:
        return momentum + 0.5 * duration * scale.multiply_transposed(AtTemperature(path, beta).gradient(point))

    duration, half = step_size, kicked(point, momentum, beta, step_size)
    is_last = rate * duration * (half @ half) >= upper - beta
    for _ in range(2):  # beta rises with the square of a momentum that itself depends on how long the step is
        duration = jnp.where(is_last, (upper - beta) / (rate * (half @ half)), step_size)
        half = kicked(point, momentum, beta, duration)
    moved = path.evaluate(point.position + duration * scale.multiply(half))
    following = jnp.where(is_last, upper, jnp.minimum(beta + rate * duration * (half @ half), upper))
    end = kicked(moved, half, following, duration)
    left = 2 * (log_normalised(path, curve, moved, following) - flow.level)
    end = end * jnp.sqrt(jnp.where(left > 0, left, jnp.nan) / (end @ end))
    gained = log_partition(curve, following) - log_partition(curve, beta)
    excess = 0.5 * (point.log_ratio + moved.log_ratio) - gained / (following - beta)
    log_weight = flow.log_weight + momentum.size * (following - beta) / (half @ half) * excess
    return flow._replace(point=moved, momentum=end, beta=following, log_weight=log_weight, num_steps=flow.num_steps + 1)
