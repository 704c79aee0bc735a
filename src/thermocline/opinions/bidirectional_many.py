"""Bidirectional Monte Carlo for many targets at once: stochastic bounds on each log Z, and on their sum."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.api_many import sample_many
from thermocline.bases import BaseFit, NormalisedDensity
from thermocline.engine.batch import Paths, at
from thermocline.estimators.batches import batches_of_groups
from thermocline.methods import AnnealedImportance
from thermocline.methods.annealed_importance import check_annealed
from thermocline.methods.tuning import Tuning
from thermocline.movers import Keys, Mover
from thermocline.opinions.bidirectional import log_mean, reverse_run
from thermocline.paths import Path
from thermocline.records import Estimate
from thermocline.results.many import ManyResults
from thermocline.results.runs import Runs, weights
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import cast, computing_in
from thermocline.target import Target

NUM_CHAINS = 4  # that runs up are spread over


@dataclass(frozen=True, eq=False)
class ManySandwiches:
    """Log Z of every target from both sides, raw log means of weights as in `Sandwich`: bounds, since draws are exact.

    A sum of bounds bounds the sum; its gap says how far the joint log evidence can be off.
    """

    lower: np.ndarray
    upper: np.ndarray
    lower_error: np.ndarray
    upper_error: np.ndarray
    forward: ManyResults  # the runs up
    log_weights_reverse: np.ndarray  # (target, run), minus log zeta
    seconds_reverse: float  # of all targets, with compiling

    @property
    def gap(self) -> np.ndarray:
        """Upper less lower of every target, in nats."""
        return self.upper - self.lower

    def __repr__(self) -> str:
        sides = (self.lower, self.lower_error), (self.upper, self.upper_error)
        low, high = (f"{np.sum(side):.3f} ± {np.sqrt(np.sum(error**2)):.3f}" for side, error in sides)
        return (
            f"<ManySandwiches of {len(self.lower)} targets: joint log Z between {low} and {high}, stochastic bounds; "
            f"gap {self.gap.mean():.4f} a target, {self.gap.max():.4f} at most>"
        )


def bidirectional_many(
    target: Target,
    data: Any,
    exact_draws: Any,
    *,
    base: NormalisedDensity | BaseFit | Callable[[Any], NormalisedDensity | BaseFit],
    method: AnnealedImportance,
    seed: int = 0,
    num_runs: int = 16,
    num_warmup: int = 0,
    progress: bool = True,
    precision: str = "float64",
    group_size: int | None = None,
) -> ManySandwiches:
    """Stochastic bounds on the log Z of `target` given each datum, from one exact draw of each.

    `exact_draws` is the target's PyTree with a leading axis over targets. For data simulated from the model it is
    what they were simulated from. `num_runs` go up from each base and as many back; other arguments are those of
    `sample_many`. `method` needs its `betas`, or `num_temperatures` and some warm-up for the pilot that places them.
    """
    if not (isinstance(num_runs, int | np.integer) and num_runs >= 16 and num_runs % NUM_CHAINS == 0):
        raise ThermoclineError(f"num_runs is {num_runs!r}; give a multiple of {NUM_CHAINS} of at least 16.")
    check_annealed(method)
    forward = sample_many(
        target,
        data,
        base=base,
        seed=seed,
        method=method,
        num_chains=NUM_CHAINS,
        num_warmup=num_warmup,
        num_draws=int(num_runs) // NUM_CHAINS,
        progress=progress,
        precision=precision,
        group_size=group_size,
    )
    began = time.monotonic()
    with computing_in(precision):
        positions = _ravelled(target, cast(exact_draws, precision), len(forward))
        mover = cast(method.mover, precision)
        reverse = _reverse_runs(forward, mover, positions, seed, int(num_runs))
    return _sandwiches(forward, reverse, time.monotonic() - began)


def _ravelled(target: Target, draws: Any, number: int) -> np.ndarray:
    """One position for each target."""
    wanted = jax.tree.map(lambda leaf: (number, *np.shape(leaf)), target.initial_position)
    given = jax.tree.map(np.shape, draws)
    if given != wanted:
        raise ThermoclineError(
            f"exact_draws have shapes {given} where {wanted} are needed: the target's PyTree with a leading axis "
            "over targets, one exact draw of each."
        )
    return np.asarray(jax.vmap(lambda draw: ravel_pytree(draw)[0])(draws))


def _reverse_runs(
    forward: ManyResults, mover: Mover, positions: np.ndarray, seed: int, num_runs: int
) -> np.ndarray:
    """Log weights (target, run), a block of targets at a time, as they ran up."""
    shared, found = jax.random.fold_in(jax.random.key(seed), 7), np.empty((len(forward), num_runs))
    assert isinstance(forward.runs, Runs), "of this session"
    for part in forward.runs.parts:
        explored, blocks = part.explored, part.explored.outcomes.drawn.blocks
        paths, tuning = cast((explored.paths, explored.outcomes.tuning), forward.runs.settings.precision)
        starts = positions[np.resize(part.targets, blocks.num_targets)]
        for rows in map(blocks.rows, range(len(blocks))):
            of_rows = paths.take(rows), at(tuning, rows), mover, starts[rows]
            weights = np.asarray(_reverse_group(shared, explored.seeds[rows], *of_rows, num_runs))
            own = part.targets[rows]
            found[own] = weights[: len(own)]
    return found


@partial(jax.jit, static_argnames="num_runs")
def _reverse_group(
    shared: jax.Array,
    seeds: jax.Array,
    paths: Paths,
    tuning: Tuning,
    mover: Mover,
    positions: jax.Array,
    num_runs: int,
) -> jax.Array:
    def of_target(path: Path, seed: jax.Array, tuning: Tuning, position: jax.Array) -> jax.Array:
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), 7), num_runs)
        return jax.vmap(lambda key: reverse_run(Keys(key, shared), path, tuning, mover, position)[0])(keys)

    return paths.map(of_target, seeds, tuning, positions)


def _log_mean(log_weight: np.ndarray) -> Estimate:
    """Of runs that are all independent of each other."""
    return log_mean(log_weight, batches_of_groups(log_weight.shape[0], log_weight.shape[1], 1))


def _sandwiches(forward: ManyResults, reverse: np.ndarray, seconds: float) -> ManySandwiches:
    log_zeta, up = forward.runs.known.log_zeta, weights(forward.runs, forward.index)
    lower = [_log_mean(of_target) for of_target, *_ in up]
    upper = [_log_mean(of_target[None]) for of_target in reverse]
    return ManySandwiches(
        np.array([side.value for side in lower]) + log_zeta,
        log_zeta - np.array([side.value for side in upper]),
        np.array([side.standard_error for side in lower]),
        np.array([side.standard_error for side in upper]),
        forward,
        reverse - log_zeta[:, None],
        seconds,
    )
