"""Plain HMC or NUTS on the target: the control that tempering is compared with."""

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.methods import tuning as tune
from thermocline.methods.method import SelfTuned, Temperatures
from thermocline.methods.tuning import Tuning
from thermocline.movers import HMC, Keys, Metric, Mover
from thermocline.paths import AtTemperature, Path, Point
from thermocline.records import Draw, Draws
from thermocline.support.pytree import field, pytree


@pytree
class Untempered(SelfTuned):
    """Move at beta = 1 only: draws of the target from wherever a chain fell in, and no evidence."""

    mover: Mover = field(default_factory=HMC)

    has_evidence = False
    first_draws = 1000
    temperatures = Temperatures.NONE

    def initial_tuning(self, metric: Metric, base_log_ratio: np.ndarray) -> Tuning:
        return tune.initial_tuning(self.mover, metric, None, base_log_ratio, num_nodes=1)

    def init(self, key: jax.Array, path: Path, tuning: Tuning, position: jax.Array) -> Point:
        return path.evaluate(position)

    def step(self, keys: Keys, path: Path, tuning: Tuning, state: Point) -> tuple[Point, Draw]:
        beta = jnp.ones_like(state.log_ratio)
        density = AtTemperature(path, beta)
        point, move = self.mover.move(keys, density, tuning.step_size[0], tuning.metric.at(beta), state)
        return point, Draw(point.position, beta, point.log_ratio, 0 * beta, -jnp.inf * beta, *move, 0 * beta)

    def adapt(self, tuning: Tuning, draws: Draws, is_last: bool) -> Tuning:
        return tune.adapt_moves(tuning, self.mover, draws, is_last)
