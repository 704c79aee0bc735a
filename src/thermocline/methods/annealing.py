"""Runs along a schedule: annealed importance sampling (Neal 2001) and tempered transitions (Neal 1996)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.methods.pilot import Piloted, placed, rounded_up
from thermocline.methods.tuning import Tuning, betas_of, initial_tuning, move_at
from thermocline.movers import HMC, Keys, Metric, Move, Mover, metropolis
from thermocline.paths.path import Path, Point, TemperatureSchedule, tempered
from thermocline.records import Draw
from thermocline.support.errors import ThermoclineError
from thermocline.support.pytree import field, pytree, static

STAGES_A_LENGTH = 4.0  # stages for each squared unit of thermodynamic length: log weights then vary by about a half
FEWEST, MOST = 16, 4096  # stages
TROUBLED = 0.01  # share of a run's moves from which it counts as divergent, or as having met a NaN


@pytree
class Annealing(Piloted):
    """Temperatures that are given, or so many at equal divergences, or as many as the length of the path asks for."""

    mover: Mover = field(default_factory=HMC)
    betas: Any = None
    num_temperatures: int | None = static(default=None)

    group = 0

    @property
    def is_sized(self) -> bool:
        return self.betas is not None or self.num_temperatures is not None

    def schedule(self, tuning: Tuning) -> TemperatureSchedule:
        wanted = lambda curve: rounded_up(STAGES_A_LENGTH * curve.travelled()[-1] ** 2, FEWEST, MOST)  # noqa: E731
        return TemperatureSchedule(placed(tuning, self.betas, self.num_temperatures, wanted), self.group)

    def initial_tuning(self, metric: Metric, base_log_ratio: np.ndarray) -> Tuning:
        """Where temperatures are given, without the law that a pilot would place them by."""
        law = None if self.betas is not None else self.pilot.law
        return self.tuned(initial_tuning(self.mover, metric, law, base_log_ratio))


@pytree
class AnnealedImportance(Annealing):
    r"""Each draw is one whole run from an exact draw of the base, with one move at every temperature.

    Its weight $w_1$ belongs to the last position and $w_0 = 1$ to the first, so that $\log Z$ is $\log\zeta$ plus the
    log of the mean of $w_1$, which is unbiased for $Z$ whatever the schedule. Draws are independent of each other.

    `betas` is the schedule, `tc.sigmoidal_betas(n)` of the paper's experiments or any other; left out, a pilot run of
    Gibbs tempering places `num_temperatures` at equal divergences, by default as many as its thermodynamic length asks.
    """

    group = 1
    first_draws = 64

    def step(self, keys: Keys, path: Path, tuning: Tuning, state: jax.Array) -> tuple[jax.Array, Draw]:
        key_start, key_moves = jax.random.split(keys.own)
        betas = betas_of(tuning)
        run = anneal(Keys(key_moves, keys.shared), path, tuning, self.mover, betas, path.draw_base(key_start))
        point, beta = run.point, jnp.ones_like(run.log_weight)
        move = run.move(betas.size - 1)
        move = move._replace(num_gradients=move.num_gradients + 1)
        return state, Draw(point.position, beta, point.log_ratio, run.log_weight, 0 * beta, *move, 0 * beta)


@pytree
class TemperedTransitions(Annealing):
    """Draws of the target, each by a move at beta = 1 and a journey through the base; no evidence.

    Heated from the target to the base, where it is drawn afresh, and cooled again, a state is accepted with the
    probability that the weights of both ways make: modes are left through the base, and a draw is never one at
    another temperature. `jump_acceptance` is that probability. Temperatures as in `AnnealedImportance`.
    """

    has_evidence = False
    first_draws = 1000

    def init(self, key: jax.Array, path: Path, tuning: Tuning, position: jax.Array) -> Point:
        """A first draw of the target: one way up the temperatures, from the base."""
        run, betas = at_start(path.evaluate(position)), betas_of(tuning)
        rise = lambda k, run: moved(Keys(key, key), path, tuning, self.mover, betas[k], run, k)  # noqa: E731
        return jax.lax.fori_loop(1, betas.size, rise, run).point

    def step(self, keys: Keys, path: Path, tuning: Tuning, state: Point) -> tuple[Point, Draw]:
        key_move, key_base, key_stages, key_accept = jax.random.split(keys.own, 4)
        one, betas = jnp.ones_like(state.log_ratio), betas_of(tuning)
        point, move = move_at(one, self.mover, Keys(key_move, keys.shared), path, tuning, state)
        run = through_base(Keys(key_stages, keys.shared), key_base, path, tuning, self.mover, betas, point)
        gain = jnp.where(jnp.isnan(run.log_weight), -jnp.inf, run.log_weight)
        point, _, probability = metropolis(key_accept, gain, run.point, point)
        move = move._replace(num_gradients=move.num_gradients + run.moves.num_gradients + 1)
        return point, Draw(point.position, one, point.log_ratio, 0 * one, -jnp.inf * one, *move, probability)


def check_annealed(method: Any) -> None:
    """Raise where runs of a method cannot be reversed, from the target back to the base."""
    if not isinstance(method, AnnealedImportance):
        raise ThermoclineError(f"method is {type(method).__name__}; only AnnealedImportance can be run both ways.")


class Annealed(NamedTuple):
    """Where a run has come to, the log weight it has gathered, and how its moves went, summed."""

    point: Point
    log_weight: jax.Array
    moves: Move

    def move(self, num_moves: int) -> Move:
        """The moves as one; what a run of weight zero met off the target's support is no trouble."""
        is_alive = jnp.isfinite(self.log_weight)
        return Move(
            self.moves.acceptance / num_moves,
            is_alive & (self.moves.is_divergent > TROUBLED * num_moves),
            is_alive & (self.moves.is_nonfinite > TROUBLED * num_moves),
            self.moves.num_gradients,
        )


def at_start(point: Point) -> Annealed:
    """Nothing gathered yet."""
    zero = jnp.zeros_like(point.log_ratio)
    return Annealed(point, zero, Move(zero, zero, zero, jnp.zeros((), int)))


def moved(
    keys: Keys, path: Path, tuning: Tuning, mover: Mover, beta: jax.Array, run: Annealed, number: jax.Array
) -> Annealed:
    """One move at `beta`, whose keys are those of its `number`."""
    keys = Keys(*(jax.random.fold_in(key, number) for key in keys))
    point, move = move_at(beta, mover, keys, path, tuning, run.point)
    total = Move(*(old + jnp.asarray(new).astype(old.dtype) for old, new in zip(run.moves, move, strict=True)))
    return Annealed(point, run.log_weight, total)


def weighed(run: Annealed, betas: jax.Array, k: jax.Array, sign: float) -> Annealed:
    """With what the stage between two neighbours adds to the log weight, or takes from it."""
    return run._replace(log_weight=run.log_weight + sign * tempered(betas[k] - betas[k - 1], run.point.log_ratio))


def anneal(keys: Keys, path: Path, tuning: Tuning, mover: Mover, betas: jax.Array, point: Point) -> Annealed:
    r"""From a draw of the base to the target (Neal 2001).

    At every stage the weight gains $(\beta_k - \beta_{k-1})\,r(x)$, and then x moves at $\beta_k$; so the mean of the
    weight is $Z/\zeta$, whatever the number of stages, and weighted by it the last point is a draw of the target.
    """

    def stage(k: jax.Array, run: Annealed) -> Annealed:
        return moved(keys, path, tuning, mover, betas[k], weighed(run, betas, k, 1.0), k)

    return jax.lax.fori_loop(1, betas.size, stage, at_start(point))


def anneal_back(keys: Keys, path: Path, tuning: Tuning, mover: Mover, betas: jax.Array, point: Point) -> Annealed:
    r"""The reversal of `anneal`, from an exact draw of the target: the mean of the weight is $\zeta/Z$.

    Moves are reversible, so that the same ones serve, in the opposite order and each before its weight.
    """

    def stage(i: jax.Array, run: Annealed) -> Annealed:
        k = betas.size - i
        return weighed(moved(keys, path, tuning, mover, betas[k], run, k), betas, k, -1.0)

    return jax.lax.fori_loop(1, betas.size, stage, at_start(point))


def through_base(
    keys: Keys, key_base: jax.Array, path: Path, tuning: Tuning, mover: Mover, betas: jax.Array, point: Point
) -> Annealed:
    r"""A point of the target heated to the base and cooled again; its weight is what Metropolis's test asks for.

    On the way up the weight loses $(\beta_k - \beta_{k-1})\,r(x)$ *before* x moves at $\beta_{k-1}$, on the way down it
    gains the same *after* such a move: each way is the other's reversal. At the base both moves are one exact draw.
    """
    last, first = betas.size - 1, jnp.asarray(1)

    def heat(i: jax.Array, run: Annealed) -> Annealed:
        k = last - i
        return moved(keys, path, tuning, mover, betas[k - 1], weighed(run, betas, k, -1.0), k)

    def cool(k: jax.Array, run: Annealed) -> Annealed:
        return weighed(moved(keys, path, tuning, mover, betas[k - 1], run, last + k), betas, k, 1.0)

    run = weighed(jax.lax.fori_loop(0, last - 1, heat, at_start(point)), betas, first, -1.0)
    run = run._replace(point=path.draw_base(key_base))
    return jax.lax.fori_loop(2, last + 1, cool, weighed(run, betas, first, 1.0))
