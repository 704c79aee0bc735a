"""The geometric path from the base to the target (eq. geometric-bridge), and fixed temperatures along it."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.bases import NormalisedDensity
from thermocline.records import Array
from thermocline.support.errors import ThermoclineError, brief
from thermocline.support.pytree import pytree, static
from thermocline.target import Target


class Point(NamedTuple):
    """Base and target evaluated at one ravelled position; any inverse temperature follows for free."""

    position: jax.Array
    log_base: jax.Array
    log_ratio: jax.Array
    gradient_base: jax.Array
    gradient_ratio: jax.Array


@pytree
class Path:
    r"""$\pi(x \mid \beta) \propto \mathrm{base}(x)\,e^{\beta r(x)}$ from base ($\beta = 0$) to target ($\beta = 1$).

    $r(x) = \log \mathrm{target}(x) - \log\zeta - \log \mathrm{base}(x)$ is minus the paper's $\Delta(x)$.
    Positions are ravelled here; target and base see the PyTree.
    """

    target: Target
    base: NormalisedDensity
    log_zeta: Array

    def unravel(self, position: jax.Array) -> Any:
        return ravel_pytree(self.target.initial_position)[1](position)

    @property
    def dimension(self) -> int:
        return ravel_pytree(self.target.initial_position)[0].size

    def log_ratio(self, position: jax.Array) -> jax.Array:
        """R at one position, without its gradient."""
        log_base, log_target = self.log_base(position), self._log_target(position)
        return log_target - self.log_zeta - log_base

    def log_base(self, position: jax.Array) -> jax.Array:
        return self.base.log_density(self.unravel(position))

    def evaluate(self, position: jax.Array) -> Point:
        """Both densities and both gradients: the unit of work that budgets count."""
        log_base, gradient_base = jax.value_and_grad(self.log_base)(position)
        log_target, gradient_target = jax.value_and_grad(self._log_target)(position)
        log_ratio = log_target - self.log_zeta - log_base
        return Point(position, log_base, log_ratio, gradient_base, gradient_target - gradient_base)

    def draw_base(self, key: jax.Array) -> Point:
        """An exact draw of the base."""
        return self.evaluate(ravel_pytree(self.base.sample(key))[0])

    def _log_target(self, position: jax.Array) -> jax.Array:
        return jnp.asarray(self.target(self.unravel(position)), position.dtype)


@pytree
class AtTemperature:
    """The density of x at a fixed inverse temperature: what Gibbs moves leave invariant."""

    path: Path
    inverse_temperature: jax.Array

    def evaluate(self, position: jax.Array) -> Point:
        return self.path.evaluate(position)

    def position(self, point: Point) -> jax.Array:
        return point.position

    def log_density(self, point: Point) -> jax.Array:
        return point.log_base + tempered(self.inverse_temperature, point.log_ratio)

    def gradient(self, point: Point) -> jax.Array:
        return point.gradient_base + tempered(self.inverse_temperature, point.gradient_ratio)

    def log_density_at(self, position: jax.Array) -> jax.Array:
        """The value alone, for libraries that differentiate it themselves."""
        return self.path.log_base(position) + tempered(self.inverse_temperature, self.path.log_ratio(position))


def tempered(inverse_temperature: Any, log_ratio: Any, namespace: Any = jnp) -> Any:
    """Beta r, with 0 at beta = 0 even outside the target's support (0 times -inf is not NaN here)."""
    product = inverse_temperature * log_ratio
    return namespace.where(inverse_temperature == 0, namespace.zeros_like(product), product)


@pytree
class TemperatureSchedule:
    """Inverse temperatures that a method visits in order, or holds all at once: a schedule, and not a law of beta.

    No single draw knows both ends of the path. Every `group` draws in a row are one piece, independent of all other
    draws; 0 where draws are those of a chain. `barrier` is what warm-up has measured between replicas, where it has.
    """

    betas: Any
    group: int = static(default=0)
    barrier: Any = None


def sigmoidal_betas(num_rungs: int, scale: float = 4.0) -> np.ndarray:
    """Inverse temperatures from 0 to 1, crowded at both ends as the paper's experiments space them."""
    grid = 1 / (1 + np.exp(-scale * np.linspace(-1, 1, num_rungs)))
    return (grid - grid[0]) / (grid[-1] - grid[0])


def checked_betas(betas: Any) -> np.ndarray:
    """A schedule that rises from 0 to 1."""
    try:
        schedule = np.asarray(betas, float)
    except (TypeError, ValueError):
        schedule = np.zeros(0)
    goes_up = schedule.ndim == 1 and schedule.size > 1 and np.all(np.diff(schedule) >= 0)
    if not goes_up or schedule[0] != 0 or schedule[-1] != 1:
        raise ThermoclineError(
            f"betas is {brief(betas)}; give inverse temperatures that rise from 0 to 1, as "
            "tc.sigmoidal_betas(100) does."
        )
    return schedule
