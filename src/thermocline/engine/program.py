"""The programs of a run: many steps of many chains and their start, compiled; adaptation, on the host."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from thermocline.engine.batch import Batch, at
from thermocline.engine.streams import RunKeys, keys_of_step, run_keys, within_step
from thermocline.methods import Method
from thermocline.methods.tuning import Tuning, in_precision
from thermocline.movers import Keys, Metric
from thermocline.paths import Path
from thermocline.records import Array, Draws
from thermocline.support.precision import to_numpy
from thermocline.support.programs import jit_by
from thermocline.support.pytree import pytree, static

BEFORE_ALL = -1  # the number of no step: chains begin
SIZES = ("capacity", "mesh")
COMPILED_FAST = {"xla_backend_optimization_level": 2}  # of 3: saves a sixth of the compiling, and chains run as fast


class Stepped(NamedTuple):
    """What steps of a block leave: where the chains stand, draws (row, target, chain), and the seconds it took."""

    states: Any
    draws: Draws
    seconds: float


@pytree
class Steps:
    """Some steps of a block, as a pure function of the block alone, which a runner may compute anywhere and twice."""

    shared: np.ndarray
    method: Method
    first_step: int
    num_steps: int
    capacity: int = static()

    def __call__(self, block: Batch) -> Stepped:
        began = time.monotonic()
        steps = self.first_step, self.num_steps
        keys = run_keys(self.shared, block.streams, block.chains)
        states, buffer = advance(keys, self.method, block, *steps, capacity=self.capacity, mesh=mesh_of(block))
        draws = Draws(*(np.asarray(leaf)[: self.num_steps] for leaf in buffer))
        return Stepped(states, draws, time.monotonic() - began)


def of_all_chains(parts: list[Stepped]) -> Stepped:
    """The same of a block whose chains were shared out, some after others."""
    states, draws, seconds = zip(*parts, strict=True)
    join = lambda axis: lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves], axis)  # noqa: E731
    return Stepped(jax.tree.map(join(1), *states), jax.tree.map(join(2), *draws), max(seconds))


def chain_mesh(num_chains: int, path: Path) -> Mesh:
    """As many devices as divide the chains evenly; one for a host target, whose callbacks hang on several."""
    return _mesh(num_chains, path, "chains")


def mesh_of(block: Batch) -> Mesh:
    """The devices of a block: they share out the targets, or the chains of a single one."""
    if block.paths.is_single:
        return chain_mesh(len(block.chains), block.paths.path)
    return _mesh(len(block), block.paths.path, "targets")


def _mesh(number: int, path: Path, name: str) -> Mesh:
    devices = jax.devices()[: 1 if path.target.host is not None else None]
    count = max(n for n in range(1, len(devices) + 1) if number % n == 0)
    return Mesh(np.array(devices[:count]), (name,))


def placed(states: Any, mesh: Mesh) -> Any:
    """States (target, chain) on the devices where `advance` leaves them."""
    return jax.device_put(states, NamedSharding(mesh, _by_lane(mesh)))


def _by_lane(mesh: Mesh) -> PartitionSpec:
    return PartitionSpec("targets") if mesh.axis_names == ("targets",) else PartitionSpec(None, "chains")


def waiting(method: Method, block: Batch) -> Any:
    """States as chains have them that have not begun: nothing but their shapes, in which `advance` puts the first."""
    data = np.zeros((len(block), len(block.chains), 2), np.uint32)
    shapes = jax.eval_shape(lambda block: _first_states(method, block, data), block)
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)


def _first_states(method: Method, block: Batch, data: Array) -> Any:
    """The states of chains (target, chain) at exact draws of each target's base, by the data of their keys."""

    def of_target(path: Path, data: jax.Array, tuning: Tuning, starts: jax.Array) -> Any:
        keys = within_step(jax.random.wrap_key_data(data, impl="threefry2x32"))
        return jax.vmap(lambda key, position: method.init(key, path, tuning, position))(keys, starts)

    return block.paths.map(of_target, data, block.tuning, block.starts)


@jit_by(
    lambda keys, method, block, *steps, **sizes: block.paths.path.target.log_density,
    static_argnames=SIZES,
    compiler_options=COMPILED_FAST,
)
def advance(
    keys: RunKeys,
    method: Method,
    block: Batch,
    first_step: Any,
    num_steps: Any,
    *,
    capacity: int,
    mesh: Mesh,
) -> tuple[Any, Draws]:
    """`num_steps` steps of every chain, recorded in the first rows of a buffer (row, target, chain).

    The number of steps is traced, so that one program serves warm-up, sampling and every chunk size, and from
    `BEFORE_ALL` also puts chains where they start. A step's keys depend on its number, target and chain alone, so that
    chunks and company do not change the draws. Trajectory lengths come from one key that all share: otherwise all
    would wait for the longest.
    """

    def local(keys: RunKeys, method: Method, block: Batch) -> Any:
        @jax.jit  # traced once, for its shapes and in the loop
        def step_all(step: jax.Array, states: Any) -> tuple[Any, Draws]:
            data = jnp.concatenate([keys.shared[None], keys.steps.reshape(-1, 2)])  # hashed at once: compiled once
            now = keys_of_step(data, step)
            shared, own = now[0], now[1:].reshape(keys.steps.shape[:2])

            def of_target(path: Path, tuning: Tuning, own: jax.Array, states: Any) -> tuple[Any, Draws]:
                return jax.vmap(lambda own, state: method.step(Keys(own, shared), path, tuning, state))(own, states)

            return block.paths.map(of_target, block.tuning, own, states)

        def body(i: jax.Array, carry: tuple[Any, Draws]) -> tuple[Any, Draws]:
            states, buffer = carry
            states, draw = step_all(first_step + i, states)
            put = partial(jax.lax.dynamic_update_index_in_dim, index=i, axis=0)
            return states, jax.tree.map(put, buffer, draw)

        begun = lambda: _first_states(method, block, keys.beginning)  # noqa: E731
        states = jax.lax.cond(first_step < 0, begun, lambda: block.states)
        shapes = jax.eval_shape(step_all, first_step, states)[1]
        buffer = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), shapes)
        return jax.lax.fori_loop(0, num_steps, body, (states, buffer))

    everywhere, by_lane = PartitionSpec(), _by_lane(mesh)
    is_single = block.paths.is_single
    by_target = everywhere if is_single else by_lane
    parts = Batch(
        block.paths.like(by_lane, everywhere),
        by_target,  # pyright: ignore[reportArgumentType]
        by_target,  # pyright: ignore[reportArgumentType]
        PartitionSpec("chains") if is_single else everywhere,  # pyright: ignore[reportArgumentType]
        by_lane,  # pyright: ignore[reportArgumentType]
        by_lane,
    )
    spread = jax.shard_map(
        local,
        mesh=mesh,
        in_specs=(RunKeys(by_lane, by_lane, everywhere), everywhere, parts),  # pyright: ignore[reportArgumentType]
        out_specs=(by_lane, PartitionSpec(None, *by_lane)),
        check_vma=False,
    )
    return spread(keys, method, block)


def first_tuning(method: Method, metric: Metric, base_log_ratio: np.ndarray) -> Tuning:
    """What a method knows of each target before the first round."""

    def made(metric: Metric, base_log_ratio: np.ndarray) -> Tuning:
        return in_precision(method.initial_tuning(metric, base_log_ratio), metric.variances.dtype)

    return _on_host(made, to_numpy(metric), np.asarray(base_log_ratio))


def adapt(method: Method, tuning: Tuning, draws: Draws, is_last: bool) -> Tuning:
    """What it knows after a round: on the host, as nothing that runs between rounds is worth compiling."""
    dtype = tuning.step_size.dtype
    return _on_host(lambda tuning, draws: in_precision(method.adapt(tuning, draws, is_last), dtype), tuning, draws)


def tuned(method: Method, learned: Tuning) -> Tuning:
    """What a method makes of what its pilot, or a short run of its own, has learned; the same object if nothing."""
    is_same = False

    def made(given: Tuning) -> Tuning:
        nonlocal is_same
        tuning = method.tuned(given)
        is_same = tuning is given
        return in_precision(tuning, given.step_size.dtype)

    tuning = _on_host(made, learned)
    return learned if is_same else tuning


def _on_host(function: Callable[..., Tuning], *trees: Any) -> Tuning:
    """A method's function of all targets at once; a single one is given without its leading axis."""
    with np.errstate(all="ignore"):  # a target whose density is no number among many
        if len(jax.tree.leaves(trees[0])[0]) > 1:
            return function(*trees)
        return jax.tree.map(lambda leaf: np.asarray(leaf)[None], function(*(at(tree, 0) for tree in trees)))
