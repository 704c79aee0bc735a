"""Does the density fall at all: how fast far out, along every coordinate, the axes of the draws and between them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.records import TailIndex
from thermocline.support.precision import to_numpy
from thermocline.target import Target

NUM_DRAWS, MOST_AXES, NUM_OBLIQUE = 16, 32, 8
FAR, FARTHER = 1e3, 1e6  # deviations
STEEP = 4.0  # power: a density that has fallen so fast by then is taken for proper; rounding may hold it up farther out


def tail_index(target: Target, draws: np.ndarray) -> TailIndex:
    """Along every coordinate and the widest principal axes, both ways, from several draws; the median over these.

    And in random directions, of which the median counts: a target may fall fast enough along every line and yet, as
    (1 + |x|^2)^-0.75 in the plane, too slowly for its dimension.
    """
    dimension = draws.shape[1]
    _, deviations, axes = np.linalg.svd((draws - draws.mean(axis=0)) / np.sqrt(len(draws)), full_matrices=False)
    axes = np.concatenate([np.eye(dimension), axes[:MOST_AXES]])
    scales = np.concatenate([draws.std(axis=0), deviations[:MOST_AXES]])
    oblique = np.random.default_rng(0).normal(size=(NUM_OBLIQUE, dimension)) * draws.std(axis=0)
    directions = np.concatenate([np.concatenate([axes, -axes]) * np.tile(scales, 2)[:, None], oblique])
    starts = draws[:: max(len(draws) // NUM_DRAWS, 1)][:NUM_DRAWS]
    here, near, far = (
        to_numpy(_log_densities(target, starts, directions, distance)) for distance in (0.0, FAR, FARTHER)
    )
    steep = np.repeat([STEEP, STEEP + dimension - 1], [2 * len(axes), NUM_OBLIQUE])[:, None]
    is_steep = here - near > steep * np.log(FAR)  # infinite where the density is zero already
    powers = np.where(is_steep, np.inf, np.where(is_steep, 0.0, near) - far) / np.log(FARTHER / FAR)
    powers, between = np.split(np.median(powers, axis=1), [2 * len(axes)])
    slowest, in_all = int(np.argmin(powers)), float(np.median(between)) - (dimension - 1)
    if in_all < powers[slowest]:
        return TailIndex(in_all, np.zeros(dimension))
    return TailIndex(float(powers[slowest]), axes[slowest % len(axes)])


@jax.jit
def _log_densities(target: Target, starts: jax.Array, directions: jax.Array, distance: Any) -> jax.Array:
    unravel = ravel_pytree(target.initial_position)[1]
    far = lambda start, direction: target(unravel(start + distance * direction))  # noqa: E731
    values = jax.vmap(lambda direction: jax.vmap(lambda start: far(start, direction))(starts))(directions)
    return jnp.where(jnp.isnan(values), -jnp.inf, values)
