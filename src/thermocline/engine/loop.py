"""The one loop: rounds and chunks of one target or of many, with progress and checkpoints; every method runs here."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from thermocline.engine.batch import Batch, Blocks, at, joined, where_active
from thermocline.engine.checkpoint import Checkpoint
from thermocline.engine.drawn import Chunk, Drawn, by_chain, keep, no_draws, running_answer
from thermocline.engine.plan import PHASES, SAMPLING, SHOWN, Plan, Round, Sizes
from thermocline.engine.program import BEFORE_ALL, Steps, adapt, mesh_of, placed, waiting
from thermocline.engine.progress import Reporter
from thermocline.methods import Method
from thermocline.methods.tuning import Tuning
from thermocline.records import Draws, Phases
from thermocline.support.interrupts import check
from thermocline.support.runner import Runner, in_process

SECONDS_A_CHUNK = 0.5
BUFFER_BYTES = 64e6
MOST_STEPS_A_CHUNK = 256


class RunState(NamedTuple):
    """All that a run needs to go on from here, besides its draws: what a checkpoint holds."""

    tuning: Tuning
    states: list[Any]  # by block
    kept: Draws  # of the present warm-up round
    warmup_gradients: np.ndarray  # by target
    is_active: np.ndarray


class Outcome(NamedTuple):
    """What a finished run of one target leaves: draws (chain, draw), what was learned, where the chains stand."""

    draws: Draws
    tuning: Tuning
    states: Any
    num_steps: int
    seconds: Phases
    warmup_gradients: int

    @property
    def num_gradients(self) -> int:
        return self.warmup_gradients + int(self.draws.num_gradients.sum())


class Outcomes(NamedTuple):
    """The same of a batch: leaves have a leading axis over targets."""

    drawn: Drawn
    tuning: Tuning
    states: Any
    num_steps: np.ndarray
    seconds: Phases  # of all of them together
    warmup_gradients: np.ndarray

    def one(self, target: int) -> Outcome:
        """That of one target."""
        tuning, states = at((self.tuning, self.states), target)
        spent = int(self.num_steps[target]), self.seconds, int(self.warmup_gradients[target])
        return Outcome(self.drawn.of_target(target), tuning, states, *spent)


def run(
    shared: np.ndarray,
    method: Method,
    batch: Batch,
    plan: Plan,
    sizes: Sizes,
    runner: Runner,
    store: Checkpoint | None,
    reporter: Reporter,
) -> Outcomes:
    """Ramp up, warm up, freeze, sample, as the plan says; resumes from `store` when it holds a state of this run."""
    work = Work(shared, method, batch, sizes, runner, reporter)
    state, drawn, coming, offset = work.first, Drawn(work.blocks), None, 0
    if store is not None and store.exists():
        coming, offset, state, chunks = store.load(work.first, len(work.blocks))
        drawn = Drawn(work.blocks, chunks)
    if coming is None:
        coming = plan.next(None, state.tuning, drawn.of_target, len(batch.chains))
    last = coming
    while coming is not None:
        state, last = state._replace(is_active=coming.is_active), coming
        if coming.number == 0 or coming.phase == SAMPLING:
            reporter.phase(work.named(coming), plan.total(coming))
        while offset < coming.length:
            state, offset = work.take_chunk(coming, offset, state, drawn, store)
            reporter.figures(partial(running_answer, drawn, np.ravel(batch.paths.path.log_zeta)))
        if coming.phase != SAMPLING:
            with work.timer.timing("adapt"):
                learned = adapt(method, state.tuning, state.kept, coming.is_last_warmup)
                state = state._replace(tuning=where_active(coming.is_active, learned, state.tuning))
        coming, offset = plan.next(coming, state.tuning, drawn.of_target, len(batch.chains)), 0
    assert last is not None, "a run has a round"
    num_steps = last.end - drawn.num_draws.max() + drawn.num_draws  # those that rest ended earlier
    return Outcomes(drawn, state.tuning, joined(state.states), num_steps, work.timer.seconds, state.warmup_gradients)


class Work:
    """The compiled steps of a batch, block by block, how fast they go, and how the chains began."""

    blocks: Blocks
    runner: Runner
    reporter: Reporter
    parts: list[Batch]
    capacity: int
    chunk_size: int | None
    steps: int
    mesh: Mesh
    timer: "Timer"
    program: Callable[[int, int], Steps]
    first: RunState

    def __init__(
        self, shared: np.ndarray, method: Method, batch: Batch, sizes: Sizes, runner: Runner, reporter: Reporter
    ) -> None:
        self.blocks, self.runner, self.reporter = Blocks(len(batch), sizes.block_size), runner, reporter
        parts = [batch.block(rows) for rows in self.blocks.all_rows()]
        self.parts = [replace(part, paths=jax.device_put(part.paths)) for part in parts]
        row = self.parts[0].paths.one(0).dimension + 8
        lanes = len(self.parts[0]) * len(batch.chains)
        self.capacity = int(np.clip(BUFFER_BYTES / (8 * lanes * row), 1, MOST_STEPS_A_CHUNK))
        self.chunk_size, self.steps = sizes.chunk_size, min(sizes.chunk_size or 4, self.capacity)
        self.mesh, self.timer = mesh_of(self.parts[0]), Timer()
        self.program = partial(Steps, shared, method, capacity=self.capacity)
        has_begun = batch.states is not None
        states = [part.states if has_begun else waiting(method, part) for part in self.parts]
        states = [placed(some, self.mesh) for some in states]
        reporter.phase("compiling", None)
        with self.timer.timing("compile"):
            begin = self.program(0 if has_begun else BEFORE_ALL, 0)
            tasks = [self._block(block, batch.tuning, states) for block in range(len(self.blocks))]
            begun = list(runner(begin, tasks[:1] if has_begun else tasks))
            states = states if has_begun else [stepped.states for stepped in begun]
        kept = no_draws(by_chain(begun[0].draws), len(batch), sizes.num_kept)
        none = np.zeros(len(batch), np.int64)
        self.first = RunState(batch.tuning, states, kept, none, none == 0)

    def _block(self, block: int, tuning: Tuning, states: list[Any]) -> Batch:
        """A block as far as it has come."""
        return replace(self.parts[block], tuning=at(tuning, self.blocks.rows(block)), states=states[block])

    def take_chunk(
        self, coming: Round, offset: int, state: RunState, drawn: Drawn, store: Checkpoint | None
    ) -> tuple[RunState, int]:
        """About half a second's steps of a round, so that a bar moves and an interruption loses little.

        Draws go to memory or to files, and then the state is stored.
        """
        with self.timer.timing(PHASES[coming.phase]):
            count = min(self.steps, coming.length - offset)
            state, chunks, gradients, seconds = self.take_steps(coming, offset, count, state)
            for block, chunk in chunks.items():
                kept = chunk if store is None else store.kept(coming.first_step + offset, block, chunk)
                drawn.chunks[block].append(kept)
            if store is not None:
                store.store(coming, offset + count, state, drawn.num_chunked)
        if self.chunk_size is None:
            wanted = count * SECONDS_A_CHUNK / max(seconds, 1e-6)
            self.steps = int(np.clip(wanted, 1, min(4 * count, self.capacity)))
        self.reporter.advance(count, gradients)
        return state, offset + count

    def named(self, coming: Round) -> str:
        """A round for people: its phase, and of how many targets where there are many."""
        if self.blocks.num_targets == 1:
            return SHOWN[coming.phase]
        return f"{SHOWN[coming.phase]}, {coming.is_active.sum()} of {self.blocks.num_targets} targets"

    def take_steps(
        self, coming: Round, offset: int, count: int, state: RunState
    ) -> tuple[RunState, dict[int, Chunk], int, float]:
        """`count` steps further, of blocks that do not rest; a warm-up round keeps a share of its draws for `adapt`.

        The seconds are of all blocks, one after another; of the slowest where they are computed side by side.
        """
        active, chunks, total, seconds = self.blocks.active(coming.is_active), {}, 0, []
        states, gradients = list(state.states), state.warmup_gradients.copy()
        tasks = [self._block(block, state.tuning, state.states) for block in active]
        steps = self.program(coming.first_step + offset, count)
        for block, (after, drawn, spent_here) in zip(active, self.runner(steps, tasks), strict=True):
            rows = self.blocks.rows(block)
            is_active, draws = coming.is_active[rows], by_chain(drawn)
            seconds.append(spent_here)
            chosen = where_active(is_active, after, states[block])
            states[block] = after if chosen is after else placed(chosen, self.mesh)
            spent = draws.num_gradients.sum(axis=(1, 2))
            total += int(spent.sum())
            if coming.phase == SAMPLING:
                chunks[block] = Chunk.of(draws, is_active)
            else:
                keep(state.kept, rows, draws, offset, coming.length)
                gradients[rows] += is_active * spent
        state = state._replace(states=states, warmup_gradients=gradients)
        return state, chunks, total, sum(seconds) if self.runner is in_process else max(seconds)


class Timer:
    """Seconds spent, by phase."""

    seconds: Phases
    began: float
    last: float

    def __init__(self) -> None:
        self.seconds, self.began = Phases(), time.monotonic()
        self.last = 0.0

    @contextmanager
    def timing(self, name: str) -> Iterator[None]:
        check()
        began = time.monotonic()
        yield
        self.last = time.monotonic() - began
        self.seconds += Phases(**{name: self.last})
