"""Annealed importance sampling (Neal 2001): independent weighted runs from the base to the target."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from thermocline.methods.pilot import Annealing
from thermocline.methods.tuning import Tuning, betas_of, move_at
from thermocline.movers import Keys, Move, Mover
from thermocline.paths import Path, Point, tempered
from thermocline.records import Draw
from thermocline.support.errors import ThermoclineError
from thermocline.support.pytree import pytree

TROUBLED = 0.01  # share of a run's moves from which it counts as divergent, or as having met a NaN


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


def anneal(keys: Keys, path: Path, tuning: Tuning, mover: Mover, betas: jax.Array, point: Point) -> Annealed:
    r"""From a draw of the base to the target (Neal 2001).

    At every stage the weight gains $(\beta_k - \beta_{k-1})\,r(x)$, and then x moves at $\beta_k$; so the mean of the
    weight is $Z/\zeta$, whatever the number of stages, and weighted by it the last point is a draw of the target.
    """

    def stage(k: jax.Array, run: Annealed) -> Annealed:
        gain = tempered(betas[k] - betas[k - 1], run.point.log_ratio)
        return moved(keys, path, tuning, mover, betas[k], run._replace(log_weight=run.log_weight + gain), k)

    return jax.lax.fori_loop(1, betas.size, stage, at_start(point))


def anneal_back(keys: Keys, path: Path, tuning: Tuning, mover: Mover, betas: jax.Array, point: Point) -> Annealed:
    r"""The reversal of `anneal`, from an exact draw of the target: the mean of the weight is $\zeta/Z$.

    Moves are reversible, so that the same ones serve, in the opposite order and each before its weight.
    """

    def stage(i: jax.Array, run: Annealed) -> Annealed:
        k = betas.size - i
        run = moved(keys, path, tuning, mover, betas[k], run, k)
        return run._replace(log_weight=run.log_weight - tempered(betas[k] - betas[k - 1], run.point.log_ratio))

    return jax.lax.fori_loop(1, betas.size, stage, at_start(point))
