"""Annealed importance sampling (Neal 2001): independent weighted runs from the base to the target."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.methods import tuning as tune
from thermocline.methods.annealing import anneal
from thermocline.methods.pilot import curve_of, equidistant_betas, pilot_with, rounded_up, thermodynamic_length
from thermocline.methods.tuning import Tuning
from thermocline.movers import HMC, Keys, Metric, Mover
from thermocline.paths import Path, TemperatureSchedule, sigmoidal_betas
from thermocline.records import Draw, Draws
from thermocline.support.errors import ThermoclineError
from thermocline.support.pytree import field, pytree, static

STAGES_A_LENGTH = 4.0  # stages for each squared unit of thermodynamic length: log weights then vary by about a half
FEWEST, MOST = 16, 4096


def checked_betas(betas: Any) -> jax.Array:
    """A schedule that rises from 0 to 1."""
    schedule = np.asarray(betas, float)
    if (
        schedule.ndim != 1
        or schedule.size < 2
        or schedule[0] != 0
        or schedule[-1] != 1
        or np.any(np.diff(schedule) < 0)
    ):
        raise ThermoclineError(
            f"betas is {betas!r}; give inverse temperatures that rise from 0 to 1, as tc.sigmoidal_betas(100) does."
        )
    return jnp.asarray(schedule)


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
    own_warmup = 0.0
    first_draws = 64

    @property
    def pilot(self) -> Any:
        return pilot_with(self.mover)

    def tuned(self, tuning: Tuning) -> "tuple[AnnealedImportance, Tuning]":
        if self.betas is not None:
            betas = checked_betas(self.betas)
        else:
            curve = curve_of(tuning)
            wanted = STAGES_A_LENGTH * thermodynamic_length(curve) ** 2
            betas = equidistant_betas(curve, self.num_temperatures or rounded_up(wanted, FEWEST, MOST))
        return self, tuning._replace(law=TemperatureSchedule(betas, group=1), learning=None)

    def initial_tuning(self, metric: Metric, base_log_ratio: jax.Array) -> Tuning:
        betas = sigmoidal_betas(self.num_temperatures or 100) if self.betas is None else self.betas
        law = TemperatureSchedule(jnp.asarray(betas), group=1)
        return tune.initial_tuning(self.mover, metric, law, base_log_ratio)

    def init(self, key: jax.Array, path: Path, tuning: Tuning, position: jax.Array) -> jax.Array:
        return jnp.zeros((), position.dtype)  # nothing is carried from run to run

    def step(self, keys: Keys, path: Path, tuning: Tuning, state: jax.Array) -> tuple[jax.Array, Draw]:
        key_start, key_moves = jax.random.split(keys.own)
        betas = tuning.law.betas
        start = path.evaluate(ravel_pytree(path.base.sample(key_start))[0])
        run = anneal(Keys(key_moves, keys.shared), path, tuning, self.mover, betas, start)
        point, beta = run.point, jnp.ones_like(run.log_weight)
        move = run.move(betas.size - 1)
        move = move._replace(num_gradients=move.num_gradients + 1)
        return state, Draw(point.position, beta, point.log_ratio, run.log_weight, 0 * beta, *move, 0 * beta)

    def adapt(self, tuning: Tuning, draws: Draws, is_last: jax.Array) -> Tuning:
        return tuning
