"""New data drawn from the model at draws of its posterior, beside those that were observed."""

from typing import Any

import jax
import numpy as np

from thermocline.estimators.chains import systematic_resample
from thermocline.results.result import Result
from thermocline.support.flat import unravelled
from thermocline.support.precision import to_numpy
from thermocline.target import Target

NUM_DRAWS = 200
MOST_NUMBERS = 2**20  # of new data, in all; beyond that there are none


def predictive(target: Target, result: Result) -> dict[str, Any]:
    """By name what was observed, and (draw, ...) what the model says in its place; where the front end can say it."""
    if target.predict is None or not np.isfinite(result.log_weight).any():
        return {}
    index = systematic_resample(result.log_weight, NUM_DRAWS, 0)
    positions = unravelled(result.positions[index], target.initial_position)
    keys = jax.random.split(jax.random.key(result.info.seed), NUM_DRAWS)
    shapes = jax.eval_shape(_drawn, target, keys, positions)
    if sum(drawn.size for _, drawn in shapes.values()) > MOST_NUMBERS:
        return {}
    found = to_numpy(_drawn(target, keys, positions))
    return {name: (observed[0], drawn) for name, (observed, drawn) in found.items()}


@jax.jit
def _drawn(target: Target, keys: jax.Array, positions: Any) -> dict[str, tuple[jax.Array, jax.Array]]:
    assert target.predict is not None
    return jax.vmap(lambda key, position: target.predict(key, position, target.data))(keys, positions)  # pyright: ignore
