"""One exploration of a path: base draws, first tuning, chains, the run; what pilots and `sample` share."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from thermocline.bases import NormalisedDensity, centres_of, initial_scale
from thermocline.engine.checkpoint import Checkpoint
from thermocline.engine.loop import Outcome, run
from thermocline.engine.plan import RunPlan
from thermocline.engine.prepare import CERTAIN, prepare, starts
from thermocline.engine.program import first_tuning, start, tuned
from thermocline.engine.progress import Reporter
from thermocline.estimators.resampling import systematic_resample
from thermocline.methods import Method
from thermocline.methods.tuning import Tuning, visits_base
from thermocline.movers import metric_of
from thermocline.paths import Path
from thermocline.records import BaseDraws, Draws, Estimate
from thermocline.support.precision import to_numpy
from thermocline.target import Target

MOST_REHEARSALS, REHEARSAL = 4, 0.25  # of a method that sets its size by them, and the length of each in its warm-up
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
    """Run `method` on the path from `base` to `target`; both are already of the precision in force.

    A method with a pilot is warmed up by it first; one whose sizes are not given then rehearses to find them.
    """
    key_base, key_start, key_run = keys_of(seed)
    path, base_draws, log_support = prepare(key_base, target, base, log_zeta)
    known = to_numpy(base)
    metric = metric_of(initial_scale(known, base_draws.position), centres_of(known, base_draws.position))
    tuning = first_tuning(method.pilot or method, metric, base_draws.log_ratio)
    positions, num_kept = starts(base_draws, lengths.num_chains), max(NUM_KEPT // lengths.num_chains, 8)
    store, num_warmup, before = checkpoint(path), lengths.num_warmup, []

    def learn(method: Method, tuning: Tuning, num_warmup: int, name: str) -> Tuning:
        """The tuning after a warm-up whose draws are not used."""
        outcome = run(
            jax.random.fold_in(key_start, 1 + len(before)),
            method,
            path,
            tuning,
            start(key_start, method, path, tuning, positions),
            RunPlan(num_warmup, 1, 1),
            num_kept=num_kept,
            checkpoint=None if store is None else store.aside(name),
            reporter=reporter,
            chunk_size=chunk_size,
        )
        before.append(outcome)
        return outcome.tuning

    if method.pilot is not None:
        learned = learn(method.pilot, tuning, num_warmup, "pilot") if num_warmup > 0 else tuning
        tuning = tuned(method, learned)
    num_warmup = int(method.own_warmup * num_warmup)
    for index in range(0 if method.is_sized or num_warmup == 0 else MOST_REHEARSALS):
        measured = learn(method, tuning, max(int(REHEARSAL * num_warmup), 1), f"rehearsal-{index}")
        tuning = tuned(method, measured)
        if tuning is measured:
            break
    states = start(key_start, method, path, tuning, positions)
    log_support = CERTAIN if visits_base(tuning) else log_support
    is_accurate = lengths.is_accurate
    stop = None if is_accurate is None else lambda draws: is_accurate(float(path.log_zeta), log_support, draws)
    most_draws = lengths.num_draws if stop is None else lengths.most_draws
    outcome = run(
        key_run,
        method,
        path,
        tuning,
        states,
        RunPlan(num_warmup, lengths.num_draws, most_draws, stop),
        num_kept=num_kept,
        checkpoint=store,
        reporter=reporter,
        chunk_size=chunk_size,
    )
    for learning in before:
        outcome = _with_pilot(outcome, learning)
    return Exploration(path, outcome, base_draws, log_support)


def _with_pilot(outcome: Outcome, pilot: Outcome) -> Outcome:
    """The cost of the pilot counts as warm-up."""
    gradients = outcome.warmup_gradients + pilot.warmup_gradients + int(pilot.draws.num_gradients.sum())
    return outcome._replace(seconds=outcome.seconds + pilot.seconds, warmup_gradients=gradients)


def resampled(went: Exploration, seed: int, number: int) -> np.ndarray:
    """So many draws of the chains, equally weighted for the target."""
    draws = went.outcome.draws
    index = systematic_resample(draws.log_weight_target.ravel(), number, seed)
    return draws.position.reshape(-1, draws.position.shape[-1])[index]


def keys_of(seed: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """For the base's draws, for the chains' starts and for their steps."""
    first, second, third = jax.random.split(jax.random.key(seed), 3)
    return first, second, third
