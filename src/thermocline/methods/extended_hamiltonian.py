"""Continuous tempering as Gobbo and Leimkuhler (2015) had it: beta(u) phi(x) + omega(u), without a base."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.methods.method import SelfTuned, Temperatures
from thermocline.methods.tuning import NUM_BINS, Bias, Tuning
from thermocline.movers import Keys, Langevin, Metric, Mover
from thermocline.paths import ExtendedPoint, Path
from thermocline.paths.control import OnExtended
from thermocline.records import Array, Draw, Draws
from thermocline.support.pytree import field, pytree, static

STIFFNESS = 8.0  # of the wall that confines u, in inverse squared units of u
UNADJUSTED = (
    "Langevin dynamics without a Metropolis test has the bias of its integrator, of the order of the squared step "
    "size, which no number of draws removes; use Langevin(is_adjusted=True)."
)


@pytree
class Control:
    """Beta(u): 1 for |u| below `inner`, `lowest` above `outer`, and a cubic between, smooth at both."""

    lowest: Any
    inner: Any
    outer: Any

    def place(self, control: jax.Array) -> jax.Array:
        return jnp.clip((jnp.abs(control) - self.inner) / (self.outer - self.inner), 0.0, 1.0)

    def beta(self, place: Array) -> Array:
        return 1 - (1 - self.lowest) * place**2 * (3 - 2 * place)

    @property
    def wall(self) -> Any:
        """Where u is confined: as far beyond the outer threshold as the inner one is from 0."""
        return self.outer + self.inner


@pytree
class Hot(OnExtended):
    r"""The log density of $(x, u)$: $\beta(u)\,(\log\mathrm{target}(x) - \log\zeta) - \omega(u) - V(u)$."""

    path: Path
    control: Control
    bias: Bias

    def gradient(self, point: ExtendedPoint) -> jax.Array:
        inner, beta = point.point, self.control.beta(self.control.place(point.control))
        along = beta * (inner.gradient_base + inner.gradient_ratio)
        return jnp.append(along, jax.grad(self.log_joint)(point.control, inner.log_base, inner.log_ratio))

    def log_joint(self, control: jax.Array, log_base: jax.Array, log_ratio: jax.Array) -> jax.Array:
        place = self.control.place(control)
        beyond = jnp.maximum(jnp.abs(control) - self.control.wall, 0.0)
        return self.control.beta(place) * (log_base + log_ratio) - 0.5 * STIFFNESS * beyond**2 - self.bias.at(place)


@pytree
class ExtendedHamiltonian(SelfTuned):
    r"""Experimental. x and u move together; draws with |u| below `inner` are of the target, and no others count.

    There is no base: at its hottest the path is the target to the power `lowest`, which must be integrable, and no
    evidence follows. Metadynamics flattens the law of u in warm-up: after each round the bias gains the log of the
    density of u that was seen; rounds double in length, so that its changes vanish, and then it is frozen. With
    `mover=Langevin(is_adjusted=False)` draws have the bias of the integrator. The base serves for starts and scales.

    With `reweights`, draws at every u within the wall count, with the weight $e^{V(u)}$ that undoes the bias (Bonomi,
    Barducci and Parrinello 2009) times $\mathrm{target}(x)^{1 - \beta(u)}$, which undoes the temperature. Hot draws
    then add what they know of the target, which is little where the path is long.
    """

    mover: Mover = field(default_factory=Langevin)
    lowest: float = 0.1
    inner: float = 1.0
    outer: float = 3.0
    reweights: bool = static(default=False)

    has_evidence = False
    temperatures = Temperatures.NONE
    num_nodes = 1

    @property
    def biases(self) -> tuple[str, ...]:
        """Why draws are off by more than chance, if they are."""
        return () if getattr(self.mover, "is_adjusted", True) else (UNADJUSTED,)

    @property
    def control(self) -> Control:
        return Control(self.lowest, self.inner, self.outer)

    def initial_tuning(self, metric: Metric, base_log_ratio: np.ndarray) -> Tuning:
        tuning = super().initial_tuning(metric, base_log_ratio)
        return tuning._replace(bias=Bias(np.zeros((*tuning.step_size.shape[:-1], NUM_BINS + 2))))

    def init(self, key: jax.Array, path: Path, tuning: Tuning, position: jax.Array) -> ExtendedPoint:
        return ExtendedPoint(path.evaluate(position), jnp.asarray(self.outer, position.dtype))

    def step(self, keys: Keys, path: Path, tuning: Tuning, state: ExtendedPoint) -> tuple[ExtendedPoint, Draw]:
        density = Hot(path, self.control, tuning.bias)
        one = jnp.ones_like(state.control)
        scale = tuning.metric.at(one).append(0.5 * one)
        state, move = self.mover.move(keys, density, tuning.step_size[0], scale, state)
        place, point = self.control.place(state.control), state.point
        beta = self.control.beta(place)
        distance, bias = jnp.abs(state.control), tuning.bias
        log_weight = jnp.where(distance < self.inner, 0.0, -jnp.inf)  # on the plateau of the target
        if self.reweights:  # elsewhere too, with what undoes bias and temperature
            log_target = point.log_base + point.log_ratio
            undone = bias.at(place) - bias.at(jnp.zeros_like(place)) + (1 - beta) * log_target
            log_weight = jnp.where(distance < self.control.wall, undone, -jnp.inf)
        return state, Draw(point.position, beta, point.log_ratio, log_weight, -jnp.inf * one, *move, 0 * one)

    def adapt(self, tuning: Tuning, draws: Draws, is_last: bool) -> Tuning:
        """The bias gains the log density of |u| in each bin, less the mean; an unvisited one counts half a draw."""
        grid, is_used = np.linspace(0.0, 1.0, 513), ~np.isnan(draws.log_ratio)
        beta = np.where(is_used, draws.inverse_temperature, 1.0)
        place = np.interp(-beta, -np.asarray(self.control.beta(grid)), grid)
        index = 1 + np.clip(np.floor(place * NUM_BINS).astype(int), 0, NUM_BINS - 1)
        index = np.where(place <= 0, 0, np.where(place >= 1, NUM_BINS + 1, index))
        is_there = (index[..., None] == np.arange(NUM_BINS + 2)) & is_used[..., None]
        counts = np.sum(is_there, axis=(-3, -2)) + 0.5
        widths = np.full(NUM_BINS + 2, (self.outer - self.inner) / NUM_BINS)
        widths[[0, -1]] = self.inner
        log_density = np.log(counts / widths)
        bias = Bias(tuning.bias.values + (log_density - np.mean(log_density, axis=-1, keepdims=True)))
        return super().adapt(tuning, draws, is_last)._replace(bias=bias)
