"""Data with a leading axis over targets: how many there are, what each is, and what tells them from others."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.support.errors import ThermoclineError
from thermocline.target import Target, check_position, named_leaves


def num_targets(data: Any) -> int:
    """The length of the leading axis that all leaves share."""
    leaves = named_leaves(data)
    if not leaves:
        raise ThermoclineError("the data hold no arrays; give a PyTree whose leaves have a leading axis over targets.")
    for name, leaf in leaves.items():
        if np.ndim(leaf) == 0:
            raise ThermoclineError(
                f"data {name} is a single number, without a leading axis over targets; repeat it for every target, "
                "or let log_density hold what all of them share."
            )
    lengths = {name: np.shape(leaf)[0] for name, leaf in leaves.items()}
    if len(set(lengths.values())) > 1:
        described = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ThermoclineError(
            f"data have leading axes of different lengths ({described}): one datum a target is needed."
        )
    number = next(iter(lengths.values()))
    if number == 0:
        raise ThermoclineError("the data are empty: their leading axis, over targets, has length 0.")
    return number


def check_signature(target: Target) -> None:
    """That the density of a datum is one number; which number, each target has to answer for itself."""
    check_position(target.initial_position)
    try:
        shape = jax.eval_shape(target, target.initial_position)
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise ThermoclineError(f"log_density(position, datum) could not be called for target 0: {reason}") from error
    if getattr(shape, "shape", None) != () or not jnp.issubdtype(shape.dtype, jnp.floating):
        raise ThermoclineError(f"log_density(position, datum) returns {shape} for target 0 where one float is needed.")


def seeds_of(seed: int, index: np.ndarray) -> np.ndarray:
    """A seed for each target: the first has the call's, so that alone it is `tc.sample`'s run; the others follow a
    place that the call's seed decides, so that calls with other seeds share none.
    """
    first = int(np.random.SeedSequence(int(seed)).generate_state(1)[0])
    return np.where(index == 0, seed, (first + index.astype(np.uint64)) % 2**32).astype(np.uint32)


def stacked_target(target: Target, data: Any) -> Target:
    """The target with a leading axis over all data; what a search starts from is not needed any more."""
    number = len(jax.tree.leaves(data)[0])
    everywhere = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (number, *np.shape(leaf))), target.initial_position)
    return replace(target, initial_position=everywhere, data=data, prior=None)
