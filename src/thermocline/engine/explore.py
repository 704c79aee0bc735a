"""One exploration of a path: base draws, first tuning, chains, the run; what pilots and `sample` share."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.bases import NormalisedDensity
from thermocline.engine.batch import Batch, Blocks, Paths, at
from thermocline.engine.checkpoint import Checkpoint
from thermocline.engine.loop import Outcome, Outcomes, run
from thermocline.engine.plan import Lengths, Look, MorePlan, RunPlan, Sizes
from thermocline.engine.prepare import (
    NUM_BASE_DRAWS,
    Prepared,
    bought,
    count_support,
    log_support,
    moments_of,
    prepare,
)
from thermocline.engine.program import first_tuning, tuned
from thermocline.engine.progress import Reporter
from thermocline.estimators.chains import systematic_resample
from thermocline.estimators.two_state_answers import log_evidence_of
from thermocline.estimators.two_states import states_of
from thermocline.methods import Method
from thermocline.methods.tuning import Tuning, visits_base
from thermocline.paths import Path
from thermocline.records import BaseDraws, Draws, Estimate
from thermocline.support.runner import Runner, in_process
from thermocline.target import Target

MOST_REHEARSALS, REHEARSAL = 4, 0.25  # of a method that sets its size by them, and the length of each in its warm-up
RUNS_AN_EXPLORATION = 16  # numbers of random streams: a pilot of the method, rehearsals, and the run itself
NUM_KEPT = 1024  # draws of a warm-up round that adaptation sees, over all chains


class Exploration(NamedTuple):
    """The path, what its run left, and what is known of its base."""

    path: Path
    outcome: Outcome
    base_draws: BaseDraws
    log_support: Estimate


class Explorations(NamedTuple):
    """The same of a batch: leaves have a leading axis over targets."""

    paths: Paths
    seeds: np.ndarray
    outcomes: Outcomes
    num_bad: np.ndarray  # draws of the base where r is NaN or +inf
    support: np.ndarray  # how many draws of the base fell on the target's support, and of how many
    positions: Any = None  # of the base's draws, and r there; kept for a single target
    log_ratio: Any = None

    @property
    def log_zeta(self) -> np.ndarray:
        return np.ravel(self.paths.path.log_zeta)


def explore(
    seed: int,
    target: Target,
    base: NormalisedDensity,
    log_zeta: float,
    method: Method,
    lengths: Lengths,
    reporter: Reporter,
    *,
    runner: Runner = in_process,
    number: int = 0,
    checkpoint: Callable[[Paths], Checkpoint | None] = lambda paths: None,
    chunk_size: int | None = None,
) -> Exploration:
    """Run `method` on the path from `base` to `target`; both are already of the precision in force: a batch of one.

    Runs of one seed that have other numbers, as pilots do, share no random numbers.
    """
    log_zeta_there: Any = np.asarray(log_zeta if np.isfinite(log_zeta) else np.nan, jnp.result_type(float))
    paths = Paths.of_one(Path(replace(target, prior=None), base, log_zeta_there))  # which the search alone needs
    sizes = Sizes(1, max(NUM_KEPT // lengths.num_chains, 8), chunk_size)
    seeds = np.array([seed], np.uint32)
    options: dict[str, Any] = {"runner": runner, "number": number}
    explored = explore_batch(seed, seeds, paths, method, lengths, sizes, reporter, checkpoint, **options)
    base_draws = BaseDraws(explored.positions[0], explored.log_ratio[0], *moments_of(base))
    return Exploration(explored.paths.path, explored.outcomes.one(0), base_draws, log_support(explored.support[0]))


def explore_batch(
    seed: int,
    seeds: np.ndarray,
    paths: Paths,
    method: Method,
    lengths: Lengths,
    sizes: Sizes,
    reporter: Reporter,
    checkpoint: Callable[[Paths], Checkpoint | None],
    *,
    runner: Runner,
    number: int = 0,
) -> Explorations:
    """Run `method` on every path, each with a seed of its own; what all share is made from `seed`.

    A method with a pilot is warmed up by it first; one whose sizes are not given then rehearses to find them.
    """
    blocks = Blocks(len(paths), sizes.block_size)
    streams = streams_of(seeds, number * RUNS_AN_EXPLORATION)
    prepared = prepare(streams, paths, blocks, lengths.num_chains, runner)
    lengths = lengths.suited(prepared.log_ratio if paths.is_single else None)
    assert lengths.num_warmup is not None
    walk = Walk(seed, streams, prepared, lengths, sizes, reporter, checkpoint(prepared.paths), runner)
    num_warmup, before, paths = lengths.num_warmup, [], prepared.paths
    begins = method.pilot if method.pilot is not None and num_warmup > 0 else method
    tuning = first_tuning(begins, prepared.metric, prepared.log_ratio)
    if method.pilot is not None and num_warmup > 0:
        before.append(walk.learn(method.pilot, tuning, num_warmup, len(before), "pilot"))
        tuning = tuned(method, before[-1].tuning)
    num_warmup = int(method.own_warmup * num_warmup)
    for index in range(0 if method.is_sized or num_warmup == 0 else MOST_REHEARSALS):
        length = max(int(REHEARSAL * num_warmup), 1)
        before.append(walk.learn(method, tuning, length, len(before), f"rehearsal-{index}"))
        tuning = tuned(method, before[-1].tuning)
        if tuning is before[-1].tuning:
            break
    support = supported(streams, prepared, tuning, blocks, runner)
    if paths.is_single and lengths.target_error is not None:
        prepared = bought(streams, prepared, lengths.target_error, runner)
        walk = walk._replace(prepared=prepared)
    outcomes = walk.sample(method, tuning, num_warmup, support)
    for learning in before:
        outcomes = _with_pilot(outcomes, learning)
    of_base = (prepared.positions, prepared.log_ratio) if paths.is_single else ()
    return Explorations(paths, seeds, outcomes, prepared.num_bad, support, *of_base)


def supported(
    streams: np.ndarray, prepared: Prepared, tuning: Tuning, blocks: Blocks, runner: Runner = in_process
) -> np.ndarray:
    """How many base draws fell on each target's support and of how many: all, where temperatures include the base."""
    if not visits_base(at(tuning, 0)):
        return count_support(streams, prepared, blocks, runner)
    num_inside = np.where(prepared.is_usable, NUM_BASE_DRAWS, prepared.num_inside)
    return np.stack([num_inside, np.full(len(num_inside), NUM_BASE_DRAWS)], axis=1)


class Walk(NamedTuple):
    """What the runs of one exploration share: a pilot's, rehearsals, and the one whose draws are kept."""

    seed: int
    streams: np.ndarray  # of the run whose draws are kept
    prepared: Prepared
    lengths: Lengths
    sizes: Sizes
    reporter: Reporter
    store: Checkpoint | None
    runner: Runner

    def learn(self, method: Method, tuning: Tuning, num_warmup: int, number: int, name: str) -> Outcomes:
        """A warm-up whose draws are not used, the `number`th."""
        store = None if self.store is None else self.store.aside(name)
        return self._run(method, tuning, 1 + number, self._plan(num_warmup, 1, 1), store)

    def sample(self, method: Method, tuning: Tuning, num_warmup: int, support: np.ndarray) -> Outcomes:
        """The run itself."""
        lengths, log_zeta = self.lengths, np.ravel(self.prepared.paths.path.log_zeta)
        is_accurate = lengths.is_accurate

        def stop(target: int, draws: Draws, tuning: Tuning) -> bool:
            assert is_accurate is not None, "only a rule is asked"
            law, zeta = at(tuning.law, target), float(log_zeta[target])
            states = None if law is None else states_of(law, self.prepared.log_ratio[target], draws)
            inside = log_support(support[target])
            log_evidence = log_evidence_of(states, draws, zeta, inside)
            log_ratio, positions = self.prepared.log_ratio[target], self.prepared.positions
            base = BaseDraws(np.zeros((log_ratio.size, 0)), log_ratio)
            if positions is not None:
                base = BaseDraws(positions[target], log_ratio, *moments_of(self.prepared.paths.path.base))
            return is_accurate(Look(log_evidence, zeta, inside, draws, states, base, law is not None))

        has_rule = is_accurate is not None
        most_draws = lengths.most_draws if has_rule else lengths.num_draws
        plan = self._plan(num_warmup, lengths.num_draws, most_draws, stop if has_rule else None)
        return self._run(method, tuning, 0, plan, self.store)

    def _plan(self, num_warmup: int, num_draws: int, most_draws: int, stop: Any = None) -> RunPlan:
        is_single = self.prepared.paths.is_single
        return RunPlan(num_warmup, num_draws, most_draws, stop, self.prepared.is_usable, not is_single)

    def _run(self, method: Method, tuning: Tuning, number: int, plan: RunPlan, store: Any) -> Outcomes:
        """From the chains' starts, with random numbers of its own."""
        streams = self.streams + np.array([0, number], np.uint32)
        chains = np.arange(self.lengths.num_chains, dtype=np.uint32)
        batch = Batch(self.prepared.paths, tuning, streams, chains, self.prepared.starts)
        shared = np.array([self.seed, streams[0, 1]], np.uint32)
        return run(shared, method, batch, plan, self.sizes, self.runner, store, self.reporter)


def _with_pilot(outcomes: Outcomes, pilot: Outcomes) -> Outcomes:
    """The cost of the pilot counts as warm-up."""
    drawn = pilot.drawn
    of_draws = [leaf.sum() for b in range(len(drawn.blocks)) for (leaf,) in drawn.fields(b, "num_gradients")]
    gradients = outcomes.warmup_gradients + pilot.warmup_gradients + np.array(of_draws)
    return outcomes._replace(seconds=outcomes.seconds + pilot.seconds, warmup_gradients=gradients)


def resampled(explored: Exploration, seed: int, number: int) -> np.ndarray:
    """So many draws of the chains, equally weighted for the target."""
    draws = explored.outcome.draws
    index = systematic_resample(draws.log_weight_target.ravel(), number, seed)
    return draws.position.reshape(-1, draws.position.shape[-1])[index]


def streams_of(seeds: np.ndarray, number: int = 0) -> np.ndarray:
    """(target, 2): the seed of each target, and a number that is another for every run of it."""
    return np.stack([seeds, np.full(len(seeds), number)], axis=1).astype(np.uint32)


def go_on(
    seed: int, method: Method, explored: Explorations, num_draws: int, reporter: Reporter, runner: Runner
) -> Explorations:
    """The same with so many more draws a chain: those that a longer run would have had."""
    before = explored.outcomes
    number, num_chains = jax.tree.leaves(before.states)[0].shape[:2]
    dimension = explored.paths.one(0).dimension
    chains, nowhere = np.arange(num_chains, dtype=np.uint32), np.zeros((number, num_chains, dimension))
    batch = Batch(explored.paths, before.tuning, streams_of(explored.seeds), chains, nowhere, before.states)
    shared, plan = np.array([seed, 0], np.uint32), MorePlan(before.num_steps, num_draws)
    after = run(shared, method, batch, plan, Sizes(before.drawn.blocks.size), runner, None, reporter)
    outcomes = after._replace(
        drawn=before.drawn.followed_by(after.drawn),
        num_steps=before.num_steps + num_draws,
        seconds=before.seconds + after.seconds,
        warmup_gradients=before.warmup_gradients,
    )
    return explored._replace(outcomes=outcomes)
