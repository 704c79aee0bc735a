"""One exploration of a path: base draws, first tuning, chains, the run; what pilots and `sample` share."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from thermocline.bases import NormalisedDensity, centres_of, initial_scale
from thermocline.bases.weighted import systematic_resample
from thermocline.checkpoint import Checkpoint
from thermocline.draws import Draws
from thermocline.estimators import Estimate
from thermocline.methods import Method
from thermocline.modes.search import GROUP
from thermocline.movers import metric_of
from thermocline.paths import Path
from thermocline.prepare import CERTAIN, prepare, starts
from thermocline.program import first_tuning, start
from thermocline.progress import Reporter
from thermocline.result import BaseDraws
from thermocline.run import Outcome, run
from thermocline.schedule import Schedule
from thermocline.target import Target

NUM_KEPT = 1024  # draws of a warm-up round that adaptation sees, over all chains


class Lengths(NamedTuple):
    """How many chains, how long, and the rule that may end sampling early."""

    num_chains: int
    num_warmup: int
    num_draws: int
    most_draws: int
    is_accurate: Callable[[float, Estimate, Draws], bool] | None = None


class Exploration(NamedTuple):
    """The path, what its run left, and what is known of its base."""

    path: Path
    outcome: Outcome
    base_draws: BaseDraws
    log_support: Estimate


def explore(
    seed: int,
    target: Target,
    base: NormalisedDensity,
    log_zeta: float,
    method: Method,
    lengths: Lengths,
    reporter: Reporter,
    *,
    checkpoint: Callable[[Path], Checkpoint | None] = lambda path: None,
    chunk_size: int | None = None,
) -> Exploration:
    """Run `method` on the path from `base` to `target`; both are already of the precision in force."""
    key_base, key_start, key_run = keys_of(seed)
    path, base_draws, log_support = prepare(key_base, target, base, log_zeta)
    metric = metric_of(initial_scale(base, base_draws.position), centres_of(base, base_draws.position))
    tuning, visits_base = first_tuning(method, metric, base_draws.log_ratio)
    states = start(key_start, method, path, tuning, starts(base_draws, lengths.num_chains))
    log_support = CERTAIN if visits_base else log_support
    is_accurate = lengths.is_accurate if tuning.law is not None else None
    stop = None if is_accurate is None else lambda draws: is_accurate(float(path.log_zeta), log_support, draws)
    most_draws = lengths.num_draws if stop is None else lengths.most_draws
    outcome = run(
        key_run,
        method,
        path,
        tuning,
        states,
        Schedule(lengths.num_warmup, lengths.num_draws, most_draws, stop),
        num_kept=max(NUM_KEPT // lengths.num_chains, 8),
        checkpoint=checkpoint(path),
        reporter=reporter,
        chunk_size=chunk_size,
    )
    return Exploration(path, outcome, base_draws, log_support)


def resampled(went: Exploration, seed: int) -> np.ndarray:
    """Draws of the chains, equally weighted for the target, as many as climb at once."""
    draws = went.outcome.draws
    index = systematic_resample(draws.log_weight_target.ravel(), GROUP, seed)
    return draws.position.reshape(-1, draws.position.shape[-1])[index]


def keys_of(seed: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """For the base's draws, for the chains' starts and for their steps."""
    first, second, third = jax.random.split(jax.random.key(seed), 3)
    return first, second, third
