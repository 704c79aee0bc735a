"""Annealed runs back from the target to the base, and the log means of weights from both sides."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.engine.batch import Paths
from thermocline.estimators.batches import Batches, batches_of_groups, mean_error
from thermocline.estimators.chains import relative
from thermocline.methods.annealing import anneal_back, at_start, moved
from thermocline.methods.tuning import Tuning, betas_of
from thermocline.movers import Keys, Mover
from thermocline.paths import Path
from thermocline.records import Estimate
from thermocline.support.precision import to_numpy

NUM_SPREAD = 8  # moves at the target before a reverse run, so that runs from one exact draw differ from the start
AT_ONCE = 1024  # reverse runs of a target


def reverse_runs(
    seed: int, seeds: Any, paths: Paths, tuning: Tuning, mover: Mover, starts: Any
) -> tuple[np.ndarray, int]:
    """Log weights (target, run) of runs back to the base, one from each start (target, run, ...); and gradients.

    With the schedule of the runs up. Trajectory lengths come from a key that all share.
    """
    shared, number = jax.random.fold_in(jax.random.key(seed), 7), starts.shape[1]
    keys = _keys(np.asarray(seeds, np.uint32), number)
    groups = [slice(first, first + AT_ONCE) for first in range(0, number, AT_ONCE)]
    parts = [to_numpy(_reverse(shared, keys[:, own], paths, tuning, mover, starts[:, own])) for own in groups]
    log_weights, gradients = (np.concatenate(leaves, axis=1) for leaves in zip(*parts, strict=True))
    return log_weights, int(gradients.sum())


@partial(jax.jit, static_argnames="num_runs")
def _keys(seeds: jax.Array, num_runs: int) -> jax.Array:
    return jax.vmap(lambda seed: jax.random.split(jax.random.fold_in(jax.random.key(seed), 7), num_runs))(seeds)


@jax.jit
def _reverse(
    shared: jax.Array, keys: jax.Array, paths: Paths, tuning: Tuning, mover: Mover, starts: jax.Array
) -> tuple[jax.Array, jax.Array]:
    def run(path: Path, tuning: Tuning, key: jax.Array, position: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The log weight of one run from a draw of the target back to the base, and its gradients."""
        spread, back = map(Keys, jax.random.split(key), jax.random.split(shared))
        one = jnp.ones((), position.dtype)
        step = lambda i, state: moved(spread, path, tuning, mover, one, state, i)  # noqa: E731
        start = jax.lax.fori_loop(0, NUM_SPREAD, step, at_start(path.evaluate(position)))
        end = anneal_back(back, path, tuning, mover, betas_of(tuning), start.point)
        return end.log_weight, end.moves.num_gradients + start.moves.num_gradients

    of_target = jax.vmap(run, in_axes=(None, None, 0, 0))
    return paths.map(lambda path, keys, tuning, starts: of_target(path, tuning, keys, starts), keys, tuning, starts)


def runs_by_draw(positions: np.ndarray) -> Batches | None:
    """Runs from one draw, side by side, are no more independent than it is; None for a draw each, or a single one."""
    is_first = np.any(np.diff(positions, axis=0) != 0, axis=1)
    edges = np.concatenate([[0], 1 + np.flatnonzero(is_first), [len(positions)]])
    return Batches(edges, 1) if 2 < len(edges) <= len(positions) else None


def log_mean(log_weight: np.ndarray, batches: Batches | None = None) -> Estimate:
    """The raw log of the mean weight, whose bias is what makes it a bound."""
    weight, value = relative(log_weight)
    return Estimate(value, *mean_error(weight, batches))


def log_mean_of_independent(log_weight: np.ndarray) -> Estimate:
    """The same of runs (chain, run) that are all independent of each other."""
    return log_mean(log_weight, batches_of_groups(log_weight.shape[0], log_weight.shape[1], 1))


def log_mean_back(log_weight: np.ndarray, positions: np.ndarray, is_exact: bool) -> Estimate:
    """Of runs back: given a single draw they are independent; else they are as much so as the draws they start from."""
    if np.all(positions == positions[0]):
        return log_mean_of_independent(log_weight)
    by_draw = runs_by_draw(positions) if is_exact else None
    if by_draw is not None:
        return log_mean(log_weight, by_draw)
    each = log_mean_of_independent(log_weight), log_mean(log_weight)  # draws may follow on one another
    return max(each, key=lambda side: side.standard_error)
