"""Annealed importance sampling (Neal 2001): independent weighted runs from the base to the target."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.methods import tuning as tune
from thermocline.methods.annealing import anneal
from thermocline.methods.gibbs import GibbsTempering
from thermocline.methods.method import Temperatures
from thermocline.methods.pilot import annealing_schedule, pilot_with
from thermocline.methods.tuning import Tuning, betas_of
from thermocline.movers import HMC, Keys, Metric, Mover
from thermocline.paths import Path
from thermocline.records import Draw, Draws
from thermocline.support.errors import ThermoclineError
from thermocline.support.pytree import field, pytree, static


@pytree
class AnnealedImportance:
    r"""Each draw is one whole run from an exact draw of the base, with one move at every temperature.

    Its weight $w_1$ belongs to the last position and $w_0 = 1$ to the first, so that $\log Z$ is $\log\zeta$ plus the
    log of the mean of $w_1$, which is unbiased for $Z$ whatever the schedule. Draws are independent of each other.

    `betas` is the schedule, `tc.sigmoidal_betas(n)` of the paper's experiments or any other; left out, a pilot run of
    Gibbs tempering places `num_temperatures` at equal divergences, by default as many as its thermodynamic length asks.
    """

    mover: Mover = field(default_factory=HMC)
    betas: Any = None
    num_temperatures: int | None = static(default=None)

    has_evidence = True
    temperatures = Temperatures.SCHEDULE
    first_draws = 64
    own_warmup = 0.0
    biases = ()

    @property
    def is_sized(self) -> bool:
        return self.betas is not None or self.num_temperatures is not None

    @property
    def pilot(self) -> GibbsTempering:
        return pilot_with(self.mover)

    def tuned(self, tuning: Tuning) -> Tuning:
        if tuning.schedule is not None:
            return tuning
        schedule = annealing_schedule(tuning, self.betas, self.num_temperatures, group=1)
        return tuning._replace(law=None, learning=None, schedule=schedule)

    def initial_tuning(self, metric: Metric, base_log_ratio: np.ndarray) -> Tuning:
        """Where temperatures are given, without the law that a pilot would place them by."""
        if self.betas is not None:
            return self.tuned(tune.initial_tuning(self.mover, metric, None, base_log_ratio))
        return self.tuned(self.pilot.initial_tuning(metric, base_log_ratio))

    def init(self, key: jax.Array, path: Path, tuning: Tuning, position: jax.Array) -> jax.Array:
        return jnp.zeros((), position.dtype)  # nothing is carried from run to run

    def step(self, keys: Keys, path: Path, tuning: Tuning, state: jax.Array) -> tuple[jax.Array, Draw]:
        key_start, key_moves = jax.random.split(keys.own)
        betas = betas_of(tuning)
        start = path.evaluate(ravel_pytree(path.base.sample(key_start))[0])
        run = anneal(Keys(key_moves, keys.shared), path, tuning, self.mover, betas, start)
        point, beta = run.point, jnp.ones_like(run.log_weight)
        move = run.move(betas.size - 1)
        move = move._replace(num_gradients=move.num_gradients + 1)
        return state, Draw(point.position, beta, point.log_ratio, run.log_weight, 0 * beta, *move, 0 * beta)

    def adapt(self, tuning: Tuning, draws: Draws, is_last: bool) -> Tuning:
        return tuning


def check_annealed(method: Any) -> None:
    """Raise where runs of a method cannot be reversed, from the target back to the base."""
    if not isinstance(method, AnnealedImportance):
        raise ThermoclineError(f"method is {type(method).__name__}; only AnnealedImportance can be run both ways.")
