"""Annealed importance sampling (Neal 2001): independent weighted runs from the base to the target."""

from typing import Any

import jax
import jax.numpy as jnp

from thermocline.methods.annealing import anneal
from thermocline.methods.pilot import Annealing
from thermocline.methods.tuning import Tuning, betas_of
from thermocline.movers import Keys
from thermocline.paths import Path
from thermocline.records import Draw
from thermocline.support.errors import ThermoclineError
from thermocline.support.pytree import pytree


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

    def init(self, key: jax.Array, path: Path, tuning: Tuning, position: jax.Array) -> jax.Array:
        return jnp.zeros((), position.dtype)  # nothing is carried from run to run

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
