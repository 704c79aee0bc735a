"""The one loop: rounds and chunks, with progress and checkpoints; every method runs here."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from thermocline.checkpoint import Checkpoint, Progress
from thermocline.draws import Draws
from thermocline.methods import Method
from thermocline.methods.tuning import Tuning
from thermocline.paths import Path
from thermocline.program import adapt, advance, chain_mesh
from thermocline.progress import Reporter
from thermocline.schedule import CLIMB, PHASES, SAMPLING, Schedule

SECONDS_A_CHUNK = 0.5
BUFFER_BYTES = 64e6
MOST_STEPS_A_CHUNK = 256


class Standing(NamedTuple):
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
    seconds: dict[str, float]
    warmup_gradients: int


def run(
    key: jax.Array,
    method: Method,
    path: Path,
    tuning: Tuning,
    states: Any,
    schedule: Schedule,
    *,
    num_kept: int,
    checkpoint: Checkpoint | None,
    reporter: Reporter,
    first_step: int = 0,
    chunk_size: int | None = None,
) -> Outcome:
    """Climb, warm up, freeze, sample; resumes from `checkpoint` when it holds a state of this run."""
    num_chains = jax.tree.leaves(states)[0].shape[0]
    capacity = int(np.clip(BUFFER_BYTES / (8 * num_chains * (path.dimension + 8)), 1, MOST_STEPS_A_CHUNK))
    mesh = chain_mesh(num_chains, path)
    states = jax.device_put(states, NamedSharding(mesh, PartitionSpec("chains")))  # as `advance` returns them
    program = partial(advance, key, method, path, capacity=capacity, mesh=mesh)
    watch, pace = Watch(), Pace(chunk_size, capacity)
    reporter.phase("compiling", None)
    with watch.timing("compile"):
        _, buffer = jax.block_until_ready(program(tuning, states, 0, 0))
    standing = Standing(tuning, states, no_draws(to_chains(buffer, 0), num_kept), np.zeros((), np.int64))
    progress, chunks = Progress(CLIMB, 0, 0, first_step), []
    if checkpoint is not None and checkpoint.exists():
        progress, standing, chunks = checkpoint.load(standing)
    while True:
        phase, index, offset, _ = progress
        length = schedule.length(phase, index, standing.tuning, num_chains)
        if length == 0 and phase != SAMPLING:
            progress = progress._replace(phase=phase + 1, round_index=0)
            continue
        if offset == 0 and (index == 0 or phase == SAMPLING):
            reporter.phase(PHASES[phase], schedule.total(phase, index))
        while progress.offset < length:
            with watch.timing(PHASES[phase]):
                count = min(pace.steps, length - progress.offset)
                progress, standing, chunk = take_steps(program, progress, standing, count, length)
                if phase == SAMPLING:
                    chunks.append(chunk)
                if checkpoint is not None:
                    num_draws = sum(part.log_ratio.shape[1] for part in chunks)
                    checkpoint.store(progress, standing, chunk if phase == SAMPLING else None, num_draws)
            pace.learn(count, watch.last)
            reporter.advance(count, int(chunk.num_gradients.sum()))
            reporter.figures(chunks, float(path.log_zeta))
        progress = progress._replace(round_index=index + 1, offset=0)
        if phase == SAMPLING:
            if schedule.is_over(index, partial(concatenate, chunks)):
                break
        else:
            with watch.timing("adapt"):
                tuning = adapt(method, standing.tuning, standing.kept, schedule.is_last_warmup(phase, index))
                standing = standing._replace(tuning=jax.block_until_ready(tuning))
    gradients = int(standing.warmup_gradients)
    return Outcome(concatenate(chunks), standing.tuning, standing.states, progress.step, watch.seconds, gradients)


def take_steps(
    program: Any, progress: Progress, standing: Standing, count: int, round_length: int
) -> tuple[Progress, Standing, Draws]:
    """`count` steps further; a warm-up round keeps its share of the draws for `adapt`."""
    states, buffer = program(standing.tuning, standing.states, progress.step, count)
    chunk = to_chains(buffer, count)
    standing = standing._replace(states=states)
    if progress.phase != SAMPLING:
        kept = with_chunk(standing.kept, chunk, progress.offset, round_length)
        gradients = standing.warmup_gradients + chunk.num_gradients.sum()
        standing = standing._replace(kept=kept, warmup_gradients=gradients)
    progress = progress._replace(offset=progress.offset + count, step=progress.step + count)
    return progress, standing, chunk


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


class Pace:
    """Chunks of about half a second, so that a bar moves and an interruption loses little."""

    def __init__(self, fixed: int | None, capacity: int) -> None:
        self.fixed, self.capacity = fixed, capacity
        self.steps = min(fixed or 4, capacity)

    def learn(self, steps: int, seconds: float) -> None:
        if self.fixed is None:
            wanted = steps * SECONDS_A_CHUNK / max(seconds, 1e-6)
            self.steps = int(np.clip(wanted, 1, min(4 * steps, self.capacity)))


class Watch:
    """Seconds spent, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(("compile", *PHASES, "adapt"), 0.0)
        self.last = 0.0

    @contextmanager
    def timing(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.last = time.monotonic() - began
        self.seconds[name] += self.last
