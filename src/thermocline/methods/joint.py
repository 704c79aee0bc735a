"""Joint continuous tempering: HMC on x and the control variable u together (eq. extended-hamiltonian)."""

import jax
import jax.numpy as jnp

from thermocline import linear
from thermocline.draws import Draw, Draws
from thermocline.methods import tuning as tune
from thermocline.methods.gibbs import learned_bias, record
from thermocline.methods.tuning import Tuning
from thermocline.movers import HMC, Keys, Mover
from thermocline.paths import ControlMap, Extended, ExtendedPoint, Law, Logistic, Path, control_at
from thermocline.pytree import field, pytree


@pytree
class JointTempering:
    """Move x and u in one Hamiltonian system, with beta = beta(u).

    `mass` is the m of the extended Hamiltonian; left out, it is one over the variance that u has
    when beta is uniform, in units of the metric of x.
    """

    mover: Mover = field(default_factory=HMC)
    law: Law = field(default_factory=learned_bias)
    control_map: ControlMap = field(default_factory=Logistic)
    mass: float | None = None

    def initial_tuning(self, scale: jax.Array, base_log_ratio: jax.Array, num_kept: int) -> Tuning:
        if self.mass is None:
            quantiles = (jnp.arange(64, dtype=scale.dtype) + 0.5) / 64
            deviation = jnp.std(control_at(self.control_map, quantiles))
        else:
            deviation = jnp.asarray(self.mass, scale.dtype) ** -0.5
        extended = linear.append(scale, deviation)
        return tune.initial_tuning(self.mover, extended, self.law, base_log_ratio, num_kept, num_nodes=1)

    def init(self, key: jax.Array, path: Path, tuning: Tuning, position: jax.Array) -> ExtendedPoint:
        point = path.evaluate(position)
        return ExtendedPoint(point, control_at(self.control_map, tuning.law.sample(key, point.log_ratio)))

    def step(self, keys: Keys, path: Path, tuning: Tuning, state: ExtendedPoint) -> tuple[ExtendedPoint, Draw]:
        density = Extended(path, tuning.law, self.control_map)
        state, move = self.mover.move(keys, density, tuning.step_size[0], tuning.scale, state)
        return state, record(state.point, self.control_map(state.control), tuning.law, move)

    def adapt(self, tuning: Tuning, draws: Draws) -> Tuning:
        law, history = tune.adapt_law(tuning, draws.log_ratio)
        step_size = tune.adapt_step_size(tuning.step_size, self.mover, draws)
        inner = tuning.scale[:-1] if tuning.scale.ndim == 1 else tuning.scale[:-1, :-1]
        scale = linear.append(tune.adapt_scale(inner, draws), tuning.scale.reshape(-1)[-1])
        return Tuning(step_size, scale, law, history)
