"""Tempered transitions (Neal 1996): from the target up to the base and down again, accepted or refused as a whole."""

import jax
import jax.numpy as jnp

from thermocline.methods.annealed_importance import Annealed, at_start, moved
from thermocline.methods.pilot import Annealing
from thermocline.methods.tuning import Tuning, betas_of, move_at
from thermocline.movers import Keys, Mover
from thermocline.paths import Path, Point, tempered
from thermocline.records import Draw
from thermocline.support.pytree import pytree


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
        accept = jnp.log(jax.random.uniform(key_accept, (), gain.dtype)) < gain
        point = jax.tree.map(lambda new, old: jnp.where(accept, new, old), run.point, point)
        move = move._replace(num_gradients=move.num_gradients + run.moves.num_gradients + 1)
        probability = jnp.exp(jnp.minimum(gain, 0.0))
        return point, Draw(point.position, one, point.log_ratio, 0 * one, -jnp.inf * one, *move, probability)


def through_base(
    keys: Keys, key_base: jax.Array, path: Path, tuning: Tuning, mover: Mover, betas: jax.Array, point: Point
) -> Annealed:
    r"""A point of the target heated to the base and cooled again; its weight is what Metropolis's test asks for.

    On the way up the weight loses $(\beta_k - \beta_{k-1})\,r(x)$ *before* x moves at $\beta_{k-1}$, on the way down it
    gains the same *after* such a move: each way is the other's reversal. At the base both moves are one exact draw.
    """
    last = betas.size - 1

    def weigh(run: Annealed, k: jax.Array, sign: float) -> Annealed:
        return run._replace(log_weight=run.log_weight + sign * tempered(betas[k] - betas[k - 1], run.point.log_ratio))

    def heat(i: jax.Array, run: Annealed) -> Annealed:
        k = last - i
        return moved(keys, path, tuning, mover, betas[k - 1], weigh(run, k, -1.0), k)

    def cool(k: jax.Array, run: Annealed) -> Annealed:
        return weigh(moved(keys, path, tuning, mover, betas[k - 1], run, last + k), k, 1.0)

    run = weigh(jax.lax.fori_loop(0, last - 1, heat, at_start(point)), jnp.asarray(1), -1.0)
    run = run._replace(point=path.draw_base(key_base))
    return jax.lax.fori_loop(2, last + 1, cool, weigh(run, jnp.asarray(1), 1.0))
