"""Sequential Monte Carlo: BlackJAX's adaptive tempered SMC, from our base with our moves, adapted at this one seam."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.bases import fresh_draws
from thermocline.methods.annealing import TROUBLED
from thermocline.methods.pilot import Piloted
from thermocline.methods.tuning import Tuning, leading_axes, move_at, spread
from thermocline.movers import HMC, Keys, Move, Mover
from thermocline.paths import Path, TemperatureSchedule
from thermocline.records import Draw
from thermocline.support.pytree import field, pytree, static

LOWEST = -1e10  # stands for a log ratio of -inf, which BlackJAX would multiply by a temperature of zero
SMALLEST_GAP = 1e-6  # between temperatures; a base that partly misses the support would stop the climb at 0
MOST_STAGES = 2000


class Group(NamedTuple):
    """Particles that climb together, what they say of Z/zeta so far, and how many of them were handed out as draws."""

    positions: jax.Array
    weights: jax.Array
    beta: jax.Array
    log_evidence: jax.Array
    num_stages: jax.Array
    moves: Move  # means over particles, summed over stages
    is_even: jax.Array  # the weights have been evened by a stage at the target: the climb is over
    num_given: jax.Array


@pytree
class SequentialMonteCarlo(Piloted):
    r"""Groups of particles that climb from the base together, and are resampled on the way.

    Each stage goes as far up as leaves an effective share `target_share` of the weights. Draws of a chain are the
    particles of one group after another, which all have the weight $w_1 = \hat Z/\zeta$ of their group and $w_0 = 1$;
    errors come from between groups alone, so that many groups know their error better than one large one.
    """

    mover: Mover = field(default_factory=HMC)
    num_particles: int = static(default=128)
    target_share: float = static(default=0.5)
    num_moves: int = static(default=1)

    is_sized = True

    @property
    def first_draws(self) -> int:
        return 4 * self.num_particles

    def schedule(self, tuning: Tuning) -> TemperatureSchedule:
        """The ends alone: every group chooses its own temperatures between them."""
        return TemperatureSchedule(spread(np.array([0.0, 1.0]), leading_axes(tuning)), group=self.num_particles)

    def init(self, key: jax.Array, path: Path, tuning: Tuning, position: jax.Array) -> Group:
        """As if all particles of a group had been handed out."""
        positions = jnp.broadcast_to(position, (self.num_particles, position.size))
        return self._begun(positions)._replace(is_even=jnp.asarray(True), num_given=jnp.asarray(self.num_particles))

    def step(self, keys: Keys, path: Path, tuning: Tuning, state: Group) -> tuple[Group, Draw]:
        key_base, key_stages = jax.random.split(keys.own)
        is_over = state.num_given >= self.num_particles
        # Loops, which most steps do not enter: under vmap a branch would be computed at every step.
        begin = lambda _: self._begun(fresh_draws(key_base, path.base, self.num_particles))  # noqa: E731
        state = jax.lax.while_loop(lambda state: state.num_given >= self.num_particles, begin, state)
        stage = partial(self._stage, Keys(key_stages, keys.shared), path, tuning)
        state = jax.lax.while_loop(lambda state: ~state.is_even, stage, state)
        position, one = state.positions[state.num_given], jnp.ones_like(state.beta)
        acceptance, divergent, nonfinite = (total / state.num_stages for total in state.moves[:3])
        gradients = jnp.where(is_over, state.moves.num_gradients, 0)  # with the first particle of a group
        move = acceptance, divergent > TROUBLED, nonfinite > TROUBLED, gradients
        draw = Draw(position, one, path.log_ratio(position), state.log_evidence, 0 * one, *move, 0 * one)
        return state._replace(num_given=state.num_given + 1), draw

    def _begun(self, positions: jax.Array) -> Group:
        zero, none = jnp.zeros((), positions.dtype), jnp.zeros((), int)
        even = jnp.full(self.num_particles, 1 / self.num_particles, positions.dtype)
        return Group(positions, even, zero, zero, none, Move(zero, zero, zero, none), jnp.asarray(False), none)

    def _stage(self, keys: Keys, path: Path, tuning: Tuning, state: Group) -> Group:
        """BlackJAX resamples, moves at the present beta, and weighs for the next.

        It leaves the particles weighted when it comes to the target: one more stage there evens them.
        """
        from blackjax.smc import adaptive_tempered, resampling, tempered

        own, shared = (jax.random.fold_in(key, state.num_stages) for key in keys)
        kernel: Any = adaptive_tempered.build_kernel(
            path.log_base,
            lambda position: jnp.maximum(path.log_ratio(position), LOWEST),
            lambda key, point, _: move_at(state.beta, self.mover, Keys(key, shared), path, tuning, point),
            lambda position, log_density: path.evaluate(position),
            resampling.systematic,
            self.target_share,
            root_solver=partial(_next_gap, state.num_stages),
        )
        before: Any = tempered.TemperedSMCState(state.positions, state.weights, state.beta)
        after, info = kernel(own, before, self.num_moves, {})
        moves = info.update_info
        spent = jnp.sum(moves.num_gradients) + 3 * self.num_particles  # a move's start, and the weights' log ratios
        means = [jnp.mean(leaf.astype(state.beta.dtype)) for leaf in moves[:3]]
        increment = info.log_likelihood_increment
        is_lost = increment < 0.5 * LOWEST * (after.tempering_param - state.beta)  # no particle is on the support
        beta = jnp.where(1 - after.tempering_param < SMALLEST_GAP, 1.0, after.tempering_param)
        return Group(
            after.particles,
            after.weights,
            jnp.where(is_lost, 1.0, beta),
            state.log_evidence + jnp.where(is_lost, -jnp.inf, increment),
            state.num_stages + 1,
            Move(*(total + new for total, new in zip(state.moves, [*means, spent], strict=True))),
            is_lost | (state.beta >= 1),
            state.num_given,
        )


def _next_gap(num_stages: jax.Array, too_far: Any, least: Any, most: jax.Array) -> jax.Array:
    """BlackJAX's bisection, which finds no gap at all where the base misses a part of the target's support."""
    from blackjax.smc.solver import dichotomy

    smallest = jnp.where(num_stages < MOST_STAGES, SMALLEST_GAP, 1.0)
    gap = jnp.nan_to_num(dichotomy(too_far, least, most))
    return jnp.minimum(jnp.maximum(gap, smallest), most)
