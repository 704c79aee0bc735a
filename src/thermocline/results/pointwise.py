"""Log likelihoods of single observations at posterior draws: what leave-one-out needs, where the front end has them."""

from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.results.export import resampled_in_order
from thermocline.results.result import Result
from thermocline.support.precision import to_numpy
from thermocline.target import Target

MOST_NUMBERS = 2**23  # kept, over all draws and observations; longer runs are thinned evenly
AT_ONCE = 2**10  # draws


def pointwise(target: Target, result: Result) -> dict[str, np.ndarray]:
    """By name, (chain, draw, ...), at evenly spaced draws of the equally weighted posterior."""
    if target.log_likelihood is None:
        return {}
    index = resampled_in_order(result)
    positions = result.draws.position.reshape(-1, result.draws.position.shape[-1])
    shapes = jax.eval_shape(_log_likelihoods, target, positions[:1])
    size = sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(shapes))
    index = index[:, :: -(-index.size * size // MOST_NUMBERS)]
    rows = np.resize(index.ravel(), -(-index.size // AT_ONCE) * AT_ONCE)  # one size, one program
    parts = [to_numpy(_log_likelihoods(target, positions[group])) for group in np.split(rows, len(rows) // AT_ONCE)]
    joined = {name: np.concatenate([part[name] for part in parts])[: index.size] for name in parts[0]}
    return {name: values.reshape(*index.shape, *values.shape[1:]) for name, values in joined.items()}


@jax.jit
def _log_likelihoods(target: Target, positions: jax.Array) -> dict[str, Any]:
    log_likelihood, unravel = target.log_likelihood, ravel_pytree(target.initial_position)[1]
    assert log_likelihood is not None
    return jax.vmap(lambda position: log_likelihood(unravel(position), target.data))(positions)
