"""The programs of a run: many steps of many chains and their start, compiled; adaptation, on the host."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from thermocline.methods import Method
from thermocline.methods.tuning import Tuning, in_precision
from thermocline.movers import Keys, Metric
from thermocline.paths import Path
from thermocline.records import Draws
from thermocline.support.precision import to_numpy


def chain_mesh(num_chains: int, path: Path) -> Mesh:
    """As many devices as divide the chains evenly; one for a host target, whose callbacks hang on several."""
    devices = jax.devices()[: 1 if path.target.host is not None else None]
    count = max(n for n in range(1, len(devices) + 1) if num_chains % n == 0)
    return Mesh(np.array(devices[:count]), ("chains",))


@partial(jax.jit, static_argnames=("capacity", "mesh"))
def advance(
    key: jax.Array,
    method: Method,
    path: Path,
    tuning: Tuning,
    states: Any,
    first_step: jax.Array,
    num_steps: jax.Array,
    *,
    capacity: int,
    mesh: Mesh,
) -> tuple[Any, Draws]:
    """`num_steps` steps of every chain, recorded in the first rows of a buffer of `capacity` rows.

    The number of steps is traced, so that one program serves warm-up, sampling and every chunk size;
    a step's keys depend on its number and chain alone, so chunks do not change the draws.
    """

    def local(method: Method, path: Path, tuning: Tuning, chains: jax.Array, states: Any) -> tuple[Any, Draws]:
        chain_keys = jax.vmap(lambda chain: jax.random.fold_in(key, chain))(chains)

        def step_all(step: jax.Array, states: Any) -> tuple[Any, Draws]:
            own = jax.vmap(lambda key: jax.random.fold_in(key, step))(chain_keys)
            shared = jax.random.fold_in(jax.random.fold_in(key, step), 2**31)
            return jax.vmap(lambda own, state: method.step(Keys(own, shared), path, tuning, state))(own, states)

        def body(i: jax.Array, carry: tuple[Any, Draws]) -> tuple[Any, Draws]:
            states, buffer = carry
            states, draw = step_all(first_step + i, states)
            return states, jax.tree.map(lambda rows, row: rows.at[i].set(row), buffer, draw)

        shapes = jax.eval_shape(step_all, first_step, states)[1]
        buffer = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), shapes)
        return jax.lax.fori_loop(0, num_steps, body, (states, buffer))

    shared, by_chain = PartitionSpec(), PartitionSpec("chains")
    chains = jnp.arange(jax.tree.leaves(states)[0].shape[0], dtype=jnp.uint32)
    spread = jax.shard_map(
        local,
        mesh=mesh,
        in_specs=(shared, shared, shared, by_chain, by_chain),
        out_specs=(by_chain, PartitionSpec(None, "chains")),
        check_vma=False,
    )
    return spread(method, path, tuning, chains, states)


def first_tuning(method: Method, metric: Metric, base_log_ratio: np.ndarray) -> Tuning:
    """What a method knows before the first round."""
    metric = to_numpy(metric)
    with np.errstate(all="ignore"):  # a target whose density is no number among many
        return in_precision(method.initial_tuning(metric, np.asarray(base_log_ratio)), metric.variances.dtype)


def adapt(method: Method, tuning: Tuning, draws: Draws, is_last: bool) -> Tuning:
    """What it knows after a round: on the host, as nothing that runs between rounds is worth compiling."""
    with np.errstate(all="ignore"):
        return in_precision(method.adapt(tuning, draws, is_last), tuning.step_size.dtype)


def tuned(method: Method, learned: Tuning) -> Tuning:
    """What a method makes of what its pilot, or a short run of its own, has learned; the same object if nothing."""
    with np.errstate(all="ignore"):
        tuning = method.tuned(learned)
    return learned if tuning is learned else in_precision(tuning, learned.step_size.dtype)


@jax.jit
def start(key: jax.Array, method: Method, path: Path, tuning: Tuning, positions: jax.Array) -> Any:
    """The states of chains at exact draws of the base."""
    keys = jax.random.split(key, positions.shape[0])
    return jax.vmap(lambda key, position: method.init(key, path, tuning, position))(keys, positions)
