"""The one loop: rounds and chunks, with progress and checkpoints; every method runs here."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from thermocline.engine.checkpoint import Checkpoint, Progress
from thermocline.engine.plan import PHASES, RAMP, SAMPLING, SHOWN, RunPlan
from thermocline.engine.program import adapt, advance, chain_mesh
from thermocline.engine.progress import Reporter
from thermocline.methods import Method
from thermocline.methods.tuning import Tuning
from thermocline.paths import Path
from thermocline.records import Draws, Phases

SECONDS_A_CHUNK = 0.5
BUFFER_BYTES = 64e6
MOST_STEPS_A_CHUNK = 256


class RunState(NamedTuple):
    """All that a run needs to go on from here, besides its draws: what a checkpoint holds."""

    tuning: Tuning
    states: Any
    kept: Draws  # of the present warm-up round
    warmup_gradients: np.ndarray


class Outcome(NamedTuple):
    """What a finished run leaves: draws (chain, draw), what was learned, and where the chains stand."""

    draws: Draws
    tuning: Tuning
    states: Any
    num_steps: int
    seconds: Phases
    warmup_gradients: int


def run(
    key: jax.Array,
    method: Method,
    path: Path,
    tuning: Tuning,
    states: Any,
    plan: RunPlan,
    *,
    num_kept: int,
    checkpoint: Checkpoint | None,
    reporter: Reporter,
    first_step: int = 0,
    chunk_size: int | None = None,
) -> Outcome:
    """Ramp up, warm up, freeze, sample; resumes from `checkpoint` when it holds a state of this run."""
    num_chains = jax.tree.leaves(states)[0].shape[0]
    capacity = int(np.clip(BUFFER_BYTES / (8 * num_chains * (path.dimension + 8)), 1, MOST_STEPS_A_CHUNK))
    mesh = chain_mesh(num_chains, path)
    states = jax.device_put(states, NamedSharding(mesh, PartitionSpec("chains")))  # as `advance` returns them
    program = partial(advance, key, method, path, capacity=capacity, mesh=mesh)
    timer, pace = Timer(), ChunkSize(chunk_size, capacity)
    reporter.phase("compiling", None)
    with timer.timing("compile"):
        _, buffer = jax.block_until_ready(program(tuning, states, 0, 0))
    state = RunState(tuning, states, no_draws(to_chains(buffer, 0), num_kept), np.zeros((), np.int64))
    progress, chunks = Progress(RAMP, 0, 0, first_step), []
    if checkpoint is not None and checkpoint.exists():
        progress, state, chunks = checkpoint.load(state)
    while True:
        phase, index, offset, _ = progress
        length = plan.length(phase, index, state.tuning, num_chains)
        if length == 0 and phase != SAMPLING:
            progress = progress._replace(phase=phase + 1, round_index=0)
            continue
        if offset == 0 and (index == 0 or phase == SAMPLING):
            reporter.phase(SHOWN[phase], plan.total(phase, index))
        while progress.offset < length:
            with timer.timing(PHASES[phase]):
                count = min(pace.steps, length - progress.offset)
                progress, state, chunk = take_steps(program, progress, state, count, length)
                if phase == SAMPLING:
                    chunks.append(chunk)
                if checkpoint is not None:
                    num_draws = sum(part.log_ratio.shape[1] for part in chunks)
                    checkpoint.store(progress, state, chunk if phase == SAMPLING else None, num_draws)
            pace.learn(count, timer.last)
            reporter.advance(count, int(chunk.num_gradients.sum()))
            reporter.figures(chunks, float(path.log_zeta))
        progress = progress._replace(round_index=index + 1, offset=0)
        if phase == SAMPLING:
            if plan.is_over(index, partial(concatenate, chunks)):
                break
        else:
            with timer.timing("adapt"):
                tuning = adapt(method, state.tuning, state.kept, plan.is_last_warmup(phase, index))
                state = state._replace(tuning=tuning)
    gradients = int(state.warmup_gradients)
    return Outcome(concatenate(chunks), state.tuning, state.states, progress.step, timer.seconds, gradients)


def take_steps(
    program: Any, progress: Progress, state: RunState, count: int, round_length: int
) -> tuple[Progress, RunState, Draws]:
    """`count` steps further; a warm-up round keeps its share of the draws for `adapt`."""
    states, buffer = program(state.tuning, state.states, progress.step, count)
    chunk = to_chains(buffer, count)
    state = state._replace(states=states)
    if progress.phase != SAMPLING:
        kept = with_chunk(state.kept, chunk, progress.offset, round_length)
        gradients = state.warmup_gradients + chunk.num_gradients.sum()
        state = state._replace(kept=kept, warmup_gradients=gradients)
    progress = progress._replace(offset=progress.offset + count, step=progress.step + count)
    return progress, state, chunk


def no_draws(like: Draws, num_kept: int) -> Draws:
    """Room for `num_kept` draws a chain, NaN where there is none."""

    def room(leaf: np.ndarray) -> np.ndarray:
        shape = (leaf.shape[0], num_kept, *leaf.shape[2:])
        return np.full(shape, np.nan if leaf.dtype.kind == "f" else 0, leaf.dtype)

    return Draws(*map(room, like))


def with_chunk(kept: Draws, chunk: Draws, offset: int, round_length: int) -> Draws:
    """Evenly spaced draws of a round, in a room of fixed size whatever its length; the chunk began at `offset`."""
    num_kept = kept.log_ratio.shape[1]
    kept = no_draws(kept, num_kept) if offset == 0 else Draws(*(leaf.copy() for leaf in kept))
    stride = -(-round_length // num_kept)
    places = np.arange(offset, offset + chunk.log_ratio.shape[1])
    chosen = places % stride == stride - 1
    for room, new in zip(kept, chunk, strict=True):
        room[:, places[chosen] // stride] = new[:, chosen]
    return kept


def to_chains(buffer: Draws, count: int) -> Draws:
    """The first `count` rows of a buffer, as NumPy with leading axes (chain, draw)."""
    return Draws(*(np.moveaxis(np.asarray(leaf)[:count], 0, 1) for leaf in buffer))


def concatenate(chunks: list[Draws]) -> Draws:
    return Draws(*(np.concatenate(parts, axis=1) for parts in zip(*chunks, strict=True)))


class ChunkSize:
    """Chunks of about half a second, so that a bar moves and an interruption loses little."""

    def __init__(self, fixed: int | None, capacity: int) -> None:
        self.fixed, self.capacity = fixed, capacity
        self.steps = min(fixed or 4, capacity)

    def learn(self, steps: int, seconds: float) -> None:
        if self.fixed is None:
            wanted = steps * SECONDS_A_CHUNK / max(seconds, 1e-6)
            self.steps = int(np.clip(wanted, 1, min(4 * steps, self.capacity)))


class Timer:
    """Seconds spent, by phase."""

    def __init__(self) -> None:
        self.seconds = Phases()
        self.last = 0.0

    @contextmanager
    def timing(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.last = time.monotonic() - began
        self.seconds += Phases(**{name: self.last})
