"""Does the density fall at all: how fast far out, along every coordinate and the axes of the draws."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.precision import to_numpy
from thermocline.target import Target

NUM_DRAWS, MOST_AXES = 16, 32
FAR, FARTHER = 1e3, 1e6  # deviations
STEEP = 4.0  # power: a density that has fallen so fast by then is taken for proper; rounding may hold it up farther out


class Fall(NamedTuple):
    """The density falls as |x|^-power along this axis, and faster along the others; proper targets have powers > 1."""

    power: float = np.inf
    axis: np.ndarray = np.zeros(0)


def slowest_fall(target: Target, draws: np.ndarray) -> Fall:
    """Along every coordinate and the widest principal axes, both ways, from several draws; the median over these."""
    _, deviations, axes = np.linalg.svd((draws - draws.mean(axis=0)) / np.sqrt(len(draws)), full_matrices=False)
    axes = np.concatenate([np.eye(draws.shape[1]), axes[:MOST_AXES]])
    scales = np.concatenate([draws.std(axis=0), deviations[:MOST_AXES]])
    directions = np.concatenate([axes, -axes]) * np.tile(scales, 2)[:, None]
    starts = draws[:: max(len(draws) // NUM_DRAWS, 1)][:NUM_DRAWS]
    here, near, far = (
        to_numpy(_log_densities(target, starts, directions, distance)) for distance in (0.0, FAR, FARTHER)
    )
    is_steep = here - near > STEEP * np.log(FAR)  # infinite where the density is zero already
    powers = np.where(is_steep, np.inf, np.where(is_steep, 0.0, near) - far) / np.log(FARTHER / FAR)
    powers = np.median(powers, axis=1)
    slowest = int(np.argmin(powers))
    return Fall(float(powers[slowest]), axes[slowest % len(axes)])


@jax.jit
def _log_densities(target: Target, starts: jax.Array, directions: jax.Array, distance: Any) -> jax.Array:
    unravel = ravel_pytree(target.initial_position)[1]
    far = lambda start, direction: target(unravel(start + distance * direction))  # noqa: E731
    values = jax.vmap(lambda direction: jax.vmap(lambda start: far(start, direction))(starts))(directions)
    return jnp.where(jnp.isnan(values), -jnp.inf, values)
