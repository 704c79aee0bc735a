"""Joint continuous tempering: HMC on x and the control variable u together (eq. extended-hamiltonian)."""

import jax
import jax.numpy as jnp

from thermocline.draws import Draw, Draws
from thermocline.errors import ThermoclineError
from thermocline.methods import tuning as tune
from thermocline.methods.gibbs import learned_bias, record
from thermocline.methods.tuning import Tuning
from thermocline.movers import HMC, Keys, Mover, Scale
from thermocline.paths import (
    Continuous,
    ControlMap,
    Extended,
    ExtendedPoint,
    Ladder,
    Law,
    Learned,
    Logistic,
    Path,
    control_at,
)
from thermocline.pytree import field, pytree


@pytree
class JointTempering:
    """Move x and u in one Hamiltonian system, with beta = beta(u).

    `mass` is the m of the extended Hamiltonian; left out, it is one over the variance of u under the law.
    Since beta moves with x, one metric and one step size serve the whole path: a base much wider than the
    target suits `GibbsTempering` better.
    """

    mover: Mover = field(default_factory=HMC)
    law: Law = field(default_factory=learned_bias)
    control_map: ControlMap = field(default_factory=Logistic)
    mass: float | None = None

    def initial_tuning(self, scale: jax.Array, base_log_ratio: jax.Array) -> Tuning:
        if isinstance(self.law.law if isinstance(self.law, Learned) else self.law, Ladder):
            raise ThermoclineError(
                "JointTempering moves beta continuously and cannot use a Ladder; use GibbsTempering."
            )
        return tune.initial_tuning(self.mover, scale, self.law, base_log_ratio, num_nodes=1)

    def init(self, key: jax.Array, path: Path, tuning: Tuning, position: jax.Array) -> ExtendedPoint:
        point = path.evaluate(position)
        edge = jnp.finfo(position.dtype).eps  # where the control map has no slope left
        beta = jnp.clip(tuning.law.sample(key, point.log_ratio), edge, 1 - edge)
        return ExtendedPoint(point, control_at(self.control_map, beta))

    def step(self, keys: Keys, path: Path, tuning: Tuning, state: ExtendedPoint) -> tuple[ExtendedPoint, Draw]:
        density = Extended(path, tuning.law, self.control_map)
        state, move = self.mover.move(keys, density, tuning.step_size[0], self._scale(tuning), state)
        return state, record(state.point, self.control_map(state.control), tuning.law, move)

    def adapt(self, tuning: Tuning, draws: Draws, is_last: jax.Array) -> Tuning:
        law, learning = tune.adapt_law(tuning, draws.log_ratio)
        return tune.adapt_moves(tuning, self.mover, draws, is_last)._replace(law=law, learning=learning)

    def _scale(self, tuning: Tuning) -> Scale:
        """The metric averaged along the path, and the spread of u over the law's segments."""
        betas = tune.betas_of_nodes(tune.NUM_NODES, tuning.step_size.dtype)
        widths = jnp.sqrt(jnp.mean(jax.vmap(lambda beta: tuning.metric.at(beta).widths)(betas) ** 2, axis=0))
        inner = Scale(tuning.metric.basis, widths)
        if self.mass is not None:
            return inner.append(jnp.asarray(self.mass, widths.dtype) ** -0.5)
        law = tuning.law.law if isinstance(tuning.law, Learned) else tuning.law
        left, width, _, _ = (law if isinstance(law, Continuous) else Continuous()).segments()
        within = (jnp.arange(8, dtype=widths.dtype) + 0.5) / 8
        controls = control_at(self.control_map, jnp.ravel(left[:, None] + width[:, None] * within))
        return inner.append(jnp.std(controls))
