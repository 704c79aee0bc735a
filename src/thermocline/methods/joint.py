"""Joint continuous tempering: HMC on x and the control variable u together (eq. extended-hamiltonian)."""

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.methods import tuning as tune
from thermocline.methods.gibbs import jump, learned_bias, record
from thermocline.methods.method import SelfTuned
from thermocline.methods.tuning import Tuning
from thermocline.movers import HMC, Keys, Metric, Mover, Scale
from thermocline.paths import Continuous, Law, Path, Point, ladder_of
from thermocline.paths.control import ControlMap, Extended, ExtendedPoint, Logistic, control_at
from thermocline.paths.laws import unwrapped
from thermocline.records import Draw, Draws
from thermocline.support.errors import ThermoclineError
from thermocline.support.pytree import field, pytree, static


@pytree
class JointTempering(SelfTuned):
    """Move x and u in one Hamiltonian system, with beta = beta(u).

    `mass` is the m of the extended Hamiltonian; left out, it is one over the variance of u under the law.
    Since beta moves with x, one metric and one step size serve the whole path: a base much wider than the
    target suits `GibbsTempering` better.
    """

    mover: Mover = field(default_factory=HMC)
    law: Law = field(default_factory=learned_bias)
    control_map: ControlMap = field(default_factory=Logistic)
    mass: float | None = None
    jumps: bool = static(default=True)

    def initial_tuning(self, metric: Metric, base_log_ratio: np.ndarray) -> Tuning:
        if ladder_of(self.law) is not None:
            raise ThermoclineError(
                "JointTempering moves beta continuously and cannot use a Ladder; use GibbsTempering."
            )
        return tune.initial_tuning(self.mover, metric, self.law, base_log_ratio, num_nodes=1)

    def init(self, key: jax.Array, path: Path, tuning: Tuning, position: jax.Array) -> ExtendedPoint:
        point = path.evaluate(position)
        return ExtendedPoint(point, self._draw_control(key, tuning, point))

    def step(self, keys: Keys, path: Path, tuning: Tuning, state: ExtendedPoint) -> tuple[ExtendedPoint, Draw]:
        law = tune.law_of(tuning)
        density = Extended(path, law, self.control_map)
        key_move, key_jump, key_law = jax.random.split(keys.own, 3)
        keys = Keys(key_move, keys.shared)
        state, move = self.mover.move(keys, density, tuning.step_size[0], self._scale(tuning), state)
        draw = record(state.point, self.control_map(state.control), law, move)
        if self.jumps:
            point, has_jumped, probability = jump(key_jump, path, law, state.point)
            control = jnp.where(has_jumped, self._draw_control(key_law, tuning, point), state.control)
            state = ExtendedPoint(point, control)
            draw = draw._replace(num_gradients=draw.num_gradients + 1, jump_acceptance=probability)
        return state, draw

    def adapt(self, tuning: Tuning, draws: Draws, is_last: bool) -> Tuning:
        return tune.adapt_law(tune.adapt_moves(tuning, self.mover, draws, is_last), draws)

    def _draw_control(self, key: jax.Array, tuning: Tuning, point: Point) -> jax.Array:
        """U given x, away from the ends, where the control map has no slope left."""
        edge = jnp.finfo(point.position.dtype).eps
        beta = tune.law_of(tuning).sample(key, point.log_ratio)
        return control_at(self.control_map, jnp.clip(beta, edge, 1 - edge))

    def _scale(self, tuning: Tuning) -> Scale:
        """The metric averaged along the path, and the spread of u over the law's segments."""
        betas = tune.betas_of_nodes(tune.NUM_NODES).astype(tuning.step_size.dtype)
        widths = jnp.sqrt(jnp.mean(jax.vmap(lambda beta: tuning.metric.at(beta).widths)(betas) ** 2, axis=0))
        inner = Scale(tuning.metric.basis, widths)
        if self.mass is not None:
            return inner.append(jnp.asarray(self.mass, widths.dtype) ** -0.5)
        law = unwrapped(tune.law_of(tuning))
        left, width, _, _ = (law if isinstance(law, Continuous) else Continuous()).segments()
        within = (jnp.arange(8, dtype=widths.dtype) + 0.5) / 8
        controls = control_at(self.control_map, jnp.ravel(left[:, None] + width[:, None] * within))
        return inner.append(jnp.std(controls))
