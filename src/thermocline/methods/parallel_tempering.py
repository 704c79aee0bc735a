"""Parallel tempering: an ensemble of replicas, one at each temperature, that exchange places (Syed et al. 2021)."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.methods import pilot
from thermocline.methods.tuning import Tuning, betas_of, move_at
from thermocline.movers import HMC, Keys, Move, Mover
from thermocline.paths.path import Path, Point, TemperatureSchedule, tempered
from thermocline.paths.reweighting import from_zero
from thermocline.records import Draw, Draws
from thermocline.support.pytree import field, pytree, static

FEWEST, MOST = 4, 256  # replicas
SMALLEST_BARRIER = 1e-3  # between neighbours, so that temperatures that always swap stay apart


class Ensemble(NamedTuple):
    """A replica at every temperature, from base to target, and the journeys of each."""

    points: Point  # leading axis: temperature
    replica: jax.Array  # which one is at each temperature
    is_descending: jax.Array  # by replica: whether it saw the target last, after a visit to the base
    is_odd: jax.Array  # which pairs are next to swap


@pytree
class ParallelTempering(pilot.Piloted):
    r"""All temperatures at once: moves at each, then swaps of neighbours, even and odd pairs in turn.

    A chain is one ensemble, and a draw is that of its replica at the target. Swaps alternate without chance, which
    carries replicas on in their direction: round trips then do not become rarer with more temperatures. The
    replica at the base is drawn afresh at every step. $\log Z$ is bridged over the stages between neighbours.

    Temperatures are placed in warm-up where measured rejections of swaps are equal. `num_replicas`, left out, is
    twice the global barrier, which is where round trips are most frequent: first as the pilot has guessed it, and
    then as the rejections of rehearsals measure it.
    """

    mover: Mover = field(default_factory=HMC)
    betas: Any = None
    num_replicas: int | None = static(default=None)

    first_draws = 500
    own_warmup = 0.25

    @property
    def is_sized(self) -> bool:
        return self.betas is not None or self.num_replicas is not None

    def tuned(self, tuning: Tuning) -> Tuning:
        """As the pilot's curve suggests; after a rehearsal, with as many as the barrier that it has measured asks for.

        Fewer replicas than the barrier cannot measure it, as none is rejected more than always: it takes several goes.
        Enough, and not twice that, are right.
        """
        if tuning.schedule is None or self.is_sized:
            return super().tuned(tuning)
        betas, wanted = tuning.schedule.betas, number_for(float(tuning.schedule.barrier))
        if wanted <= betas.size < 2 * wanted:
            return tuning
        places = np.linspace(0.0, betas.size - 1.0, wanted)
        return tuning._replace(schedule=unmeasured(np.interp(places, np.arange(betas.size), betas)))

    def schedule(self, tuning: Tuning) -> TemperatureSchedule:
        """By default as many as the barrier of a Gaussian r asks for, E|r - r'|/2 integrated over beta."""
        wanted = lambda curve: number_for(curve.travelled()[-1] / np.sqrt(np.pi))  # noqa: E731
        return unmeasured(pilot.placed(tuning, self.betas, self.num_replicas, wanted))

    def init(self, key: jax.Array, path: Path, tuning: Tuning, position: jax.Array) -> Ensemble:
        """A draw of the base carried up from temperature to temperature, and left behind at each."""
        betas = betas_of(tuning)

        def climb(point: Point, rung: tuple[jax.Array, jax.Array]) -> tuple[Point, Point]:
            key, beta = rung
            point, _ = move_at(beta, self.mover, Keys(key, key), path, tuning, point)
            return point, point

        keys = jax.random.split(key, betas.size)
        _, points = jax.lax.scan(climb, path.evaluate(position), (keys, betas))
        return Ensemble(points, jnp.arange(betas.size), jnp.zeros(betas.size, bool), jnp.asarray(False))

    def step(self, keys: Keys, path: Path, tuning: Tuning, state: Ensemble) -> tuple[Ensemble, Draw]:
        betas = betas_of(tuning)
        key_moves, key_base, key_swaps = jax.random.split(keys.own, 3)
        own = jax.random.split(key_moves, betas.size)
        move = lambda key, beta, x: move_at(beta, self.mover, Keys(key, keys.shared), path, tuning, x)  # noqa: E731
        points, moves = jax.vmap(move)(own, betas, state.points)
        acceptance, is_divergent, is_nonfinite, num_gradients = moves
        troubled = jnp.any(is_divergent[1:]), jnp.any(is_nonfinite[1:])  # at any replica above the base
        moved = Move(jnp.mean(acceptance[1:]), *troubled, jnp.sum(num_gradients) + 1)
        points = jax.tree.map(lambda leaf, first: leaf.at[0].set(first), points, path.draw_base(key_base))
        weights = stage_log_weights(betas, points.log_ratio)
        state, trips = swap(key_swaps, state._replace(points=points), jnp.sum(weights, axis=0))
        cold = jax.tree.map(lambda leaf: leaf[-1], points)
        one = jnp.ones_like(cold.log_ratio)
        draw = Draw(cold.position, one, cold.log_ratio, 0 * one, 0 * one, *moved, 0 * one, weights, trips)
        return state, draw

    def adapt(self, tuning: Tuning, draws: Draws, is_last: bool) -> Tuning:
        """As many temperatures, at equal shares of the barrier, the sum of the rejections, as this round measured them.

        The barrier is linear between the old ones.
        """
        if self.betas is not None or tuning.schedule is None:
            return tuning
        log_acceptance = np.sum(draws.stage_log_weights, axis=-2)
        is_used = ~np.isnan(log_acceptance)
        rejection = np.where(is_used, -np.expm1(np.minimum(log_acceptance, 0.0)), 0.0)
        rejections = np.sum(rejection, axis=(-3, -2)) / np.maximum(np.sum(is_used, axis=(-3, -2)), 1)
        betas = pilot.evenly(from_zero(np.maximum(rejections, SMALLEST_BARRIER)), tuning.schedule.betas)
        return tuning._replace(schedule=replace(tuning.schedule, betas=betas, barrier=np.sum(rejections, axis=-1)))


def number_for(barrier: float) -> int:
    """As many replicas as a barrier asks for: round trips are most frequent at about twice that many."""
    return pilot.rounded_up(2 * barrier + 1, FEWEST, MOST)


def unmeasured(betas: np.ndarray) -> TemperatureSchedule:
    """Temperatures with a barrier yet to be measured."""
    return TemperatureSchedule(betas, barrier=np.zeros(betas.shape[:-1]))


def stage_log_weights(betas: jax.Array, log_ratio: jax.Array) -> jax.Array:
    """For each pair of neighbours, what takes the lower up and the upper down; together, a swap's log acceptance."""
    gaps = jnp.diff(betas)
    return jnp.stack([tempered(gaps, log_ratio[:-1]), -tempered(gaps, log_ratio[1:])])


def swap(key: jax.Array, state: Ensemble, log_acceptance: jax.Array) -> tuple[Ensemble, jax.Array]:
    """Exchange the even pairs, or the odd ones, that pass Metropolis's test; and count the round trips that ended."""
    number = state.replica.size
    pair = jnp.arange(number - 1)
    uniforms = jax.random.uniform(key, (number - 1,), log_acceptance.dtype)
    is_swapped = (jnp.log(uniforms) < log_acceptance) & ((pair % 2 == 1) == state.is_odd)
    place = jnp.arange(number)
    place = place + jnp.append(is_swapped, False) - jnp.append(False, is_swapped)
    replica = state.replica[place]
    is_descending = state.is_descending.at[replica[-1]].set(True)
    has_returned = is_descending[replica[0]]
    is_descending = is_descending.at[replica[0]].set(False)
    points = jax.tree.map(lambda leaf: leaf[place], state.points)
    return Ensemble(points, replica, is_descending, ~state.is_odd), has_returned.astype(jnp.int32)
