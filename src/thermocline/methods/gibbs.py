"""Gibbs continuous tempering: beta | x exactly, then x | beta by a mover (paper, section 5)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.methods import tuning as tune
from thermocline.methods.method import SelfTuned
from thermocline.methods.tuning import Tuning
from thermocline.movers import HMC, Keys, Metric, Mover
from thermocline.paths import Continuous, Ladder, Law, Learned, Neighbours, Path, Point, sigmoidal_betas
from thermocline.paths.laws import unwrapped
from thermocline.records import Draw, Draws
from thermocline.support.pytree import field, pytree, static


def learned_bias(num_knots: int = 33) -> Learned:
    """A continuous law whose bias warm-up learns, from f = 0."""
    return Learned(Continuous(np.zeros(num_knots), np.linspace(0, 1, num_knots)))


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

    def initial_tuning(self, metric: Metric, base_log_ratio: np.ndarray) -> Tuning:
        return tune.initial_tuning(self.mover, metric, self.law, base_log_ratio)

    def init(self, key: jax.Array, path: Path, tuning: Tuning, position: jax.Array) -> GibbsState:
        point = path.evaluate(position)
        return GibbsState(point, tune.law_of(tuning).sample(key, point.log_ratio))

    def step(self, keys: Keys, path: Path, tuning: Tuning, state: GibbsState) -> tuple[GibbsState, Draw]:
        key_law, key_move, key_jump = jax.random.split(keys.own, 3)
        beta, law = state.inverse_temperature, tune.law_of(tuning)
        point, move = tune.move_at(beta, self.mover, Keys(key_move, keys.shared), path, tuning, state.point)
        draw = record(point, beta, law, move)
        has_jumped = jnp.asarray(False)
        if self.jumps:
            point, has_jumped, probability = jump(key_jump, path, law, point)
            draw = draw._replace(num_gradients=draw.num_gradients + 1, jump_acceptance=probability)
        return GibbsState(point, next_beta(key_law, law, point.log_ratio, beta, has_jumped)), draw

    def adapt(self, tuning: Tuning, draws: Draws, is_last: bool) -> Tuning:
        return tune.adapt_law(tune.adapt_moves(tuning, self.mover, draws, is_last), draws)


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
    accept = jnp.log(jax.random.uniform(key_accept, (), gain.dtype)) < gain
    chosen = jax.tree.map(lambda new, old: jnp.where(accept, new, old), proposal, point)
    return chosen, accept, jnp.exp(jnp.minimum(gain, 0.0))


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
    betas = sigmoidal_betas(100) if betas is None else np.asarray(betas)
    moves: Mover = HMC() if mover is None else mover
    ladder = Neighbours if neighbours else Ladder
    if log_weights is not None:
        return GibbsTempering(moves, ladder(betas, np.asarray(log_weights)))
    return GibbsTempering(moves, Learned(ladder(betas, np.zeros(len(betas)))))
