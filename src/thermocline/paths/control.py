"""The temperature control variable u and its smooth monotone map to beta (paper, section 5)."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from thermocline.paths.laws import Law
from thermocline.paths.path import Path, Point, tempered
from thermocline.support.pytree import pytree, static

ControlMap = Callable[[jax.Array], jax.Array]  # u on the real line to beta in [0, 1]; JAX takes its Jacobian
WIDEST = 1e3  # u, either way from 0


@pytree
class Logistic:
    r"""$\beta(u) = 1/(1 + e^{-u/s})$ with scale $s$; the paper's default at $s = 1$."""

    scale: float = 1.0

    def __call__(self, control: jax.Array) -> jax.Array:
        return jax.nn.sigmoid(control / self.scale)


@pytree
class Monotone:
    """Any smooth, strictly increasing function from the real line onto (0, 1)."""

    function: Callable[[jax.Array], jax.Array] = static()

    def __call__(self, control: jax.Array) -> jax.Array:
        return self.function(control)


def control_at(control_map: ControlMap, inverse_temperature: jax.Array) -> jax.Array:
    """The u that maps to a given beta, by bisection: used once a chain, to start it."""
    bounds = jnp.full_like(inverse_temperature, -WIDEST), jnp.full_like(inverse_temperature, WIDEST)

    def halve(_: int, bounds: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = bounds
        middle = (low + high) / 2
        too_low = control_map(middle) < inverse_temperature
        return jnp.where(too_low, middle, low), jnp.where(too_low, high, middle)

    low, high = jax.lax.fori_loop(0, 60, halve, bounds)
    return (low + high) / 2


def control_given(key: jax.Array, law: Law, control_map: ControlMap, log_ratio: jax.Array) -> jax.Array:
    """A draw of u given x, away from the ends, where the control map has no slope left."""
    edge = jnp.finfo(log_ratio.dtype).eps
    return control_at(control_map, jnp.clip(law.sample(key, log_ratio), edge, 1 - edge))


@pytree
class ExtendedPoint:
    """A point of the path together with the control variable."""

    point: Point
    control: jax.Array


class OnExtended:
    """What densities of (x, u) share: u is the last coordinate of a position."""

    path: Path
    log_joint: Callable[..., jax.Array]  # of u, and of the log base and the log ratio at x

    def evaluate(self, position: jax.Array) -> ExtendedPoint:
        return ExtendedPoint(self.path.evaluate(position[:-1]), position[-1])

    def position(self, point: ExtendedPoint) -> jax.Array:
        return jnp.append(point.point.position, point.control)

    def log_density(self, point: ExtendedPoint) -> jax.Array:
        return self.log_joint(point.control, point.point.log_base, point.point.log_ratio)

    def log_density_at(self, position: jax.Array) -> jax.Array:
        """The value alone, for libraries that differentiate it themselves."""
        inner = position[:-1]
        return self.log_joint(position[-1], self.path.log_base(inner), self.path.log_ratio(inner))


@pytree
class Extended(OnExtended):
    r"""The joint log density of $(x, u)$ (eq. x-u-joint-density), with the law's bias:

    $\log\mathrm{base}(x) + \beta(u)\,r(x) - f(\beta(u)) + \log|d\beta/du|$.
    """

    path: Path
    law: Law
    control_map: ControlMap

    def gradient(self, point: ExtendedPoint) -> jax.Array:
        beta, log_ratio = self.control_map(point.control), point.point.log_ratio
        along_position = point.point.gradient_base + tempered(beta, point.point.gradient_ratio)
        on_support = jnp.where(jnp.isneginf(log_ratio), 0.0, log_ratio)  # off it any finite force will do
        return jnp.append(along_position, jax.grad(self.log_joint)(point.control, point.point.log_base, on_support))

    def log_joint(self, control: jax.Array, log_base: jax.Array, log_ratio: jax.Array) -> jax.Array:
        beta, slope = jax.value_and_grad(self.control_map)(control)
        return log_base + (tempered(beta, log_ratio) + self.law.log_weight(beta) + jnp.log(jnp.abs(slope)))
