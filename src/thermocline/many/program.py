"""The compiled programs of many targets at once: draws of their bases, starts, and steps of all their chains."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from thermocline.bases import centres_of, fresh_draws, initial_scale
from thermocline.methods import Method
from thermocline.methods.tuning import Tuning
from thermocline.movers import Keys, Metric, metric_of
from thermocline.paths import Path
from thermocline.records import BaseDraws, Draws
from thermocline.support.pytree import pytree, static


@pytree
class Paths:
    """The paths of many targets: leaves have a leading axis over them, all but those of a base that they share."""

    path: Path
    is_shared: bool = static()

    def map(self, function: Callable[..., Any], *stacked: Any) -> Any:
        """`function(path, *one of each)` for every target."""
        axes: Any = self._like(0, None)
        return jax.vmap(function, in_axes=(axes.path, *[0] * len(stacked)))(self.path, *stacked)

    def take(self, index: Any) -> "Paths":
        """The paths of some targets; of one, for an integer."""
        base = self.path.base if self.is_shared else at(self.path.base, index)
        return Paths(Path(at(self.path.target, index), base, at(self.path.log_zeta, index)), self.is_shared)

    def specs(self) -> "Paths":
        """Where the leaves live on a mesh that divides the targets."""
        return self._like(PartitionSpec("targets"), PartitionSpec())

    def _like(self, stacked: Any, shared: Any) -> "Paths":
        """A prefix of this tree."""
        return Paths(Path(stacked, shared if self.is_shared else stacked, stacked), self.is_shared)


class Drawn(NamedTuple):
    """What fresh draws of every target's base say."""

    log_zeta: jax.Array
    base_draws: BaseDraws
    num_bad: jax.Array  # draws of the base where r is NaN or +inf
    metric: Metric


def at(tree: Any, index: Any) -> Any:
    """Some targets, or one, of a tree whose leaves have a leading axis over targets."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


@jax.jit
def keys_of(seeds: jax.Array) -> jax.Array:
    """For the base's draws, the chains' starts and their steps: as `tc.sample` makes them of one seed."""
    return jax.vmap(lambda seed: jax.random.split(jax.random.key(seed), 3))(seeds)


@partial(jax.jit, static_argnames="num_draws")
def draw_group(keys: jax.Array, paths: Paths, *, num_draws: int) -> Drawn:
    """Fresh draws of every base, log zeta where it is NaN, and the base's metric."""

    def of_target(path: Path, keys: jax.Array) -> Drawn:
        positions = fresh_draws(keys[0], path.base, num_draws)
        unscaled = Path(path.target, path.base, jnp.zeros_like(path.log_zeta))
        log_ratio = jax.vmap(unscaled.log_ratio)(positions)
        is_inside = jnp.isfinite(log_ratio)
        num_bad = jnp.sum(jnp.isnan(log_ratio) | jnp.isposinf(log_ratio))
        log_ratio = jnp.where(is_inside, log_ratio, -jnp.inf)
        estimate = jax.nn.logsumexp(log_ratio) - jnp.log(num_draws)
        log_zeta = jnp.where(jnp.isnan(path.log_zeta), estimate, path.log_zeta)
        metric = metric_of(initial_scale(path.base, positions, jnp), centres_of(path.base, positions, jnp))
        moments, own = getattr(path.base, "moments", None), hasattr(path.base, "log_density_of_rows")
        mean, variance = (None, None) if moments is None else moments(*[jnp] if own else [])
        known: Any = positions, log_ratio - log_zeta, mean, variance
        return Drawn(log_zeta, BaseDraws(*known), num_bad, metric)

    return paths.map(of_target, keys)


def first_states(
    key: jax.Array,
    method: Method,
    path: Path,
    tuning: Tuning,
    positions: jax.Array,
    log_ratio: jax.Array,
    num_chains: int,
) -> Any:
    """Chains at draws of the base that lie on the target's support, as far as there are such."""
    is_inside = jnp.isfinite(log_ratio)
    places = jnp.arange(num_chains) % jnp.maximum(jnp.sum(is_inside), 1)
    starts = positions[jnp.argsort(~is_inside, stable=True)[places]]
    keys = jax.random.split(key, num_chains)
    return jax.vmap(lambda key, position: method.init(key, path, tuning, position))(keys, starts)


@partial(jax.jit, static_argnames="num_chains")
def init_group(
    keys: jax.Array, method: Method, paths: Paths, tuning: Tuning, base_draws: BaseDraws, num_chains: int
) -> Any:
    """The chains' starts, with what is known before the first round or after the pilot."""

    def of_target(path: Path, keys: jax.Array, tuning: Tuning, position: jax.Array, log_ratio: jax.Array) -> Any:
        return first_states(keys[1], method, path, tuning, position, log_ratio, num_chains)

    return paths.map(of_target, keys, tuning, base_draws.position, base_draws.log_ratio)


@partial(jax.jit, static_argnames="num_draws")
def count_inside(keys: jax.Array, paths: Paths, round_index: jax.Array, *, num_draws: int) -> jax.Array:
    """How many fresh base draws of each target fall on its support."""

    def of_target(path: Path, keys: jax.Array) -> jax.Array:
        positions = fresh_draws(jax.random.fold_in(keys[0], 1 + round_index), path.base, num_draws)
        return jnp.sum(jnp.isfinite(jax.vmap(path.log_ratio)(positions)))

    return paths.map(of_target, keys)


@partial(jax.jit, static_argnames=("capacity", "mesh"))
def advance_group(
    shared_key: jax.Array,
    keys: jax.Array,
    method: Method,
    paths: Paths,
    tuning: Tuning,
    states: Any,
    first_step: jax.Array,
    num_steps: jax.Array,
    *,
    capacity: int,
    mesh: Mesh,
) -> tuple[Any, Draws]:
    """`num_steps` steps of every chain of every target, in the first rows of a buffer (row, target, chain).

    Trajectory lengths come from one key that all targets share: otherwise all would wait for the longest.
    """

    def local(method: Method, paths: Paths, tuning: Tuning, keys: jax.Array, states: Any) -> tuple[Any, Draws]:
        chains = jnp.arange(jax.tree.leaves(states)[0].shape[1], dtype=jnp.uint32)
        chain_keys = jax.vmap(lambda key: jax.vmap(lambda chain: jax.random.fold_in(key, chain))(chains))(keys[:, 2])

        def step_all(step: jax.Array, states: Any) -> tuple[Any, Draws]:
            shared = jax.random.fold_in(jax.random.fold_in(shared_key, step), 2**31)

            def of_target(path: Path, tuning: Tuning, keys: jax.Array, states: Any) -> tuple[Any, Draws]:
                def of_chain(key: jax.Array, state: Any) -> tuple[Any, Draws]:
                    return method.step(Keys(jax.random.fold_in(key, step), shared), path, tuning, state)

                return jax.vmap(of_chain)(keys, states)

            return paths.map(of_target, tuning, chain_keys, states)

        def body(i: jax.Array, carry: tuple[Any, Draws]) -> tuple[Any, Draws]:
            states, buffer = carry
            states, draw = step_all(first_step + i, states)
            return states, jax.tree.map(lambda rows, row: rows.at[i].set(row), buffer, draw)

        shapes = jax.eval_shape(step_all, first_step, states)[1]
        buffer = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), shapes)
        return jax.lax.fori_loop(0, num_steps, body, (states, buffer))

    everywhere, by_target = PartitionSpec(), PartitionSpec("targets")
    spread = jax.shard_map(
        local,
        mesh=mesh,
        in_specs=(everywhere, paths.specs(), by_target, by_target, by_target),
        out_specs=(by_target, PartitionSpec(None, "targets")),
        check_vma=False,
    )
    return spread(method, paths, tuning, keys, states)


def where_active(is_active: np.ndarray, new: Any, old: Any) -> Any:
    """The new leaves of active targets, the old ones of those that rest; in NumPy."""

    def choose(new: Any, old: Any) -> np.ndarray:
        return np.where(is_active.reshape(-1, *[1] * (np.ndim(new) - 1)), new, old)

    return jax.tree.map(choose, new, old)


def target_mesh(num_targets: int, paths: Paths) -> Mesh:
    """As many devices as divide the targets of a group evenly; one where Python is called back."""
    devices = jax.devices()[: 1 if paths.path.target.host is not None else None]
    count = max(n for n in range(1, len(devices) + 1) if num_targets % n == 0)
    return Mesh(np.array(devices[:count]), ("targets",))
