"""Continuous tempering in the paper's two ways (section 5), on a ladder (section 3), and the control without any."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.methods.method import SelfTuned, Temperatures
from thermocline.methods.tuning import NUM_NODES, Tuning, betas_of_nodes, move_at
from thermocline.movers import HMC, Keys, Metric, Mover, Scale, metropolis
from thermocline.paths import AtTemperature, Path, Point, sigmoidal_betas
from thermocline.paths.control import ControlMap, Extended, ExtendedPoint, Logistic, control_at, control_given
from thermocline.paths.laws import Continuous, Ladder, Law, Learned, Neighbours, ladder_of, unwrapped
from thermocline.records import Draw
from thermocline.support.errors import ThermoclineError
from thermocline.support.pytree import field, pytree, static

NUM_KNOTS = 33  # of a law whose bias is learned


def learned_bias() -> Learned:
    """A continuous law whose bias warm-up learns, from f = 0."""
    return Learned(Continuous(np.zeros(NUM_KNOTS), np.linspace(0, 1, NUM_KNOTS)))


class GibbsState(NamedTuple):
    point: Point
    inverse_temperature: jax.Array


@pytree
class GibbsTempering(SelfTuned):
    """Alternate moves of x at a fixed beta with an exact draw of beta given x.

    A draw is recorded with the beta it was moved at; the next beta waits in the state. With `jumps`, each move is
    followed by a proposal from the base, collapsed over beta, at the price of one more evaluation.

    `law` is the law of beta; by default a bias that warm-up learns. `Continuous()` is the
    paper's, and a `Ladder` makes it simulated tempering.
    """

    mover: Mover = field(default_factory=HMC)
    law: Law = field(default_factory=learned_bias)
    jumps: bool = static(default=True)

    def init(self, key: jax.Array, path: Path, tuning: Tuning, position: jax.Array) -> GibbsState:
        point = path.evaluate(position)
        return GibbsState(point, tuning.law.sample(key, point.log_ratio))

    def step(self, keys: Keys, path: Path, tuning: Tuning, state: GibbsState) -> tuple[GibbsState, Draw]:
        key_law, key_move, key_jump = jax.random.split(keys.own, 3)
        beta, law = state.inverse_temperature, tuning.law
        point, move = move_at(beta, self.mover, Keys(key_move, keys.shared), path, tuning, state.point)
        draw = record(point, beta, law, move)
        has_jumped = jnp.asarray(False)
        if self.jumps:
            point, has_jumped, probability = jump(key_jump, path, law, point)
            draw = draw._replace(num_gradients=draw.num_gradients + 1, jump_acceptance=probability)
        return GibbsState(point, next_beta(key_law, law, point.log_ratio, beta, has_jumped)), draw


def jump(key: jax.Array, path: Path, law: Law, point: Point) -> tuple[Point, jax.Array, jax.Array]:
    """A base jump: the point after the move, whether it jumped, and the probability that it would.

    The marginal of x is base(x) N(r(x)) up to a constant, so that a fresh draw x' of the base is accepted with
    probability min(1, N(r')/N(r)), whatever beta was; beta is then drawn given x'. With such a move the base may be
    multimodal: chains need not walk between its modes.
    """
    key_draw, key_accept = jax.random.split(key)
    proposal = path.draw_base(key_draw)
    usable = ~(jnp.isnan(proposal.log_ratio) | jnp.isposinf(proposal.log_ratio))
    gain = law.log_mass(jnp.where(usable, proposal.log_ratio, -jnp.inf)) - law.log_mass(point.log_ratio)
    gain = jnp.where(usable & ~jnp.isnan(gain), gain, -jnp.inf)
    return metropolis(key_accept, gain, proposal, point)


def next_beta(key: jax.Array, law: Law, log_ratio: jax.Array, beta: jax.Array, has_jumped: jax.Array) -> jax.Array:
    """Beta given x: drawn independently, or for `Neighbours` moved on from where it is unless x has jumped."""
    ladder = unwrapped(law)
    if not isinstance(ladder, Neighbours):
        return law.sample(key, log_ratio)
    key_sample, key_update = jax.random.split(key)
    return jnp.where(has_jumped, law.sample(key_sample, log_ratio), ladder.update(key_update, log_ratio, beta))


def record(point: Point, beta: jax.Array, law: Law, move: Any) -> Draw:
    """The draw at a point, with its Rao-Blackwellised weights (eq. ct-norm-const-estimator)."""
    log_mass = law.log_mass(point.log_ratio)
    weights = point.log_ratio - log_mass, -log_mass
    return Draw(point.position, beta, point.log_ratio, *weights, **move._asdict(), jump_acceptance=jnp.zeros_like(beta))


def SimulatedTempering(
    mover: Mover | None = None, *, betas: Any = None, log_weights: Any = None, neighbours: bool = False
) -> GibbsTempering:
    """Simulated tempering: Gibbs tempering with a `Ladder`, whose weights warm-up learns unless given.

    The default rungs are 100 in the paper's sigmoidal spacing. Weights are those of iterated pilots (Geyer and
    Thompson 1995): every warm-up round estimates the rungs' marginal, Rao-Blackwellised, and flattens it. With
    `neighbours`, beta moves one rung at a time.
    """
    betas = sigmoidal_betas(100) if betas is None else np.atleast_1d(betas)
    moves: Mover = HMC() if mover is None else mover
    ladder = Neighbours if neighbours else Ladder
    if log_weights is not None:
        return GibbsTempering(moves, ladder(betas, np.asarray(log_weights)))
    return GibbsTempering(moves, Learned(ladder(betas, np.zeros(len(betas)))))


@pytree
class JointTempering(SelfTuned):
    """Move x and u in one Hamiltonian system, with beta = beta(u).

    `mass` is the m of the extended Hamiltonian; left out, it is one over the variance of u under the law.
    Since beta moves with x, one metric and one step size serve the whole path: a base much wider than the
    target suits `GibbsTempering` better.
    """

    mover: Mover = field(default_factory=HMC)
    law: Law = field(default_factory=learned_bias)
    control_map: ControlMap = field(default_factory=Logistic)
    mass: float | None = None
    jumps: bool = static(default=True)

    num_nodes = 1

    def initial_tuning(self, metric: Metric, base_log_ratio: np.ndarray) -> Tuning:
        if ladder_of(self.law) is not None:
            remedy = "use GibbsTempering."
            raise ThermoclineError(f"JointTempering moves beta continuously and cannot use a Ladder; {remedy}")
        return super().initial_tuning(metric, base_log_ratio)

    def init(self, key: jax.Array, path: Path, tuning: Tuning, position: jax.Array) -> ExtendedPoint:
        point = path.evaluate(position)
        return ExtendedPoint(point, control_given(key, tuning.law, self.control_map, point.log_ratio))

    def step(self, keys: Keys, path: Path, tuning: Tuning, state: ExtendedPoint) -> tuple[ExtendedPoint, Draw]:
        law = tuning.law
        density = Extended(path, law, self.control_map)
        key_move, key_jump, key_law = jax.random.split(keys.own, 3)
        keys = Keys(key_move, keys.shared)
        state, move = self.mover.move(keys, density, tuning.step_size[0], self._scale(tuning), state)
        draw = record(state.point, self.control_map(state.control), law, move)
        if self.jumps:
            point, has_jumped, probability = jump(key_jump, path, law, state.point)
            drawn = control_given(key_law, law, self.control_map, point.log_ratio)
            control = jnp.where(has_jumped, drawn, state.control)
            state = ExtendedPoint(point, control)
            draw = draw._replace(num_gradients=draw.num_gradients + 1, jump_acceptance=probability)
        return state, draw

    def _scale(self, tuning: Tuning) -> Scale:
        """The metric averaged along the path, and the spread of u over the law's segments."""
        betas = betas_of_nodes(NUM_NODES).astype(tuning.step_size.dtype)
        widths = jnp.sqrt(jnp.mean(jax.vmap(lambda beta: tuning.metric.at(beta).widths)(betas) ** 2, axis=0))
        inner = Scale(tuning.metric.basis, widths)
        if self.mass is not None:
            return inner.append(jnp.asarray(self.mass, widths.dtype) ** -0.5)
        law = unwrapped(tuning.law)
        left, width, _, _ = (law if isinstance(law, Continuous) else Continuous()).segments()
        within = (jnp.arange(8, dtype=widths.dtype) + 0.5) / 8
        controls = control_at(self.control_map, jnp.ravel(left[:, None] + width[:, None] * within))
        return inner.append(jnp.std(controls))


@pytree
class Untempered(SelfTuned):
    """Move at beta = 1 only: draws of the target from wherever a chain fell in, and no evidence."""

    mover: Mover = field(default_factory=HMC)

    has_evidence = False
    temperatures = Temperatures.NONE
    num_nodes = 1

    def init(self, key: jax.Array, path: Path, tuning: Tuning, position: jax.Array) -> Point:
        return path.evaluate(position)

    def step(self, keys: Keys, path: Path, tuning: Tuning, state: Point) -> tuple[Point, Draw]:
        beta = jnp.ones_like(state.log_ratio)
        density = AtTemperature(path, beta)
        point, move = self.mover.move(keys, density, tuning.step_size[0], tuning.metric.at(beta), state)
        return point, Draw(point.position, beta, point.log_ratio, 0 * beta, -jnp.inf * beta, *move, 0 * beta)
