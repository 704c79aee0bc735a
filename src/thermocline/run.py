"""The one loop: rounds, chunks, keys, devices; every method runs here."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from thermocline.checkpoint import Checkpoint, Progress
from thermocline.draws import Draws
from thermocline.methods import Method
from thermocline.methods.tuning import Tuning
from thermocline.movers import Keys
from thermocline.paths import Path
from thermocline.progress import Reporter

FIRST_ROUND = 16  # steps of the first warm-up round
CLIMB, WARMUP, SAMPLING = range(3)
PHASES = ("climb", "warm-up", "sampling")
MOST_CLIMBS = 400  # rounds
SECONDS_A_CHUNK = 0.5
BUFFER_BYTES = 64e6


class Schedule(NamedTuple):
    """How long to run: warm-up steps, draws, and the rule that may end sampling early.

    With a `stop` rule, sampling goes on in rounds that double the draws, from `num_draws` up to `most_draws`,
    and the rule is asked at their ends only.
    """

    num_warmup: int
    num_draws: int
    most_draws: int
    stop: Callable[[Draws], bool] | None = None

    def length(self, phase: int, index: int, tuning: Tuning, num_chains: int) -> int:
        """Steps of a round; 0 when its phase is over."""
        if phase == CLIMB:
            goes_on = self.num_warmup > 0 and index < MOST_CLIMBS and tuning.is_climbing
            return max(4, 64 // num_chains) if goes_on else 0
        if phase == WARMUP:
            lengths = warmup_rounds(self.num_warmup)
            return lengths[index] if index < len(lengths) else 0
        if index == 0:
            return self.num_draws
        drawn = self.num_draws * 2 ** (index - 1)
        return min(drawn, max(self.most_draws - drawn, 0))

    def is_last_warmup(self, phase: int, index: int) -> bool:
        return phase == WARMUP and index == len(warmup_rounds(self.num_warmup)) - 1


class Outcome(NamedTuple):
    """What a finished run leaves: draws (chain, draw), what was learned, and where the chains stand."""

    draws: Draws
    tuning: Tuning
    states: Any
    num_steps: int
    seconds: dict[str, float]
    warmup_gradients: int


def warmup_rounds(num_warmup: int) -> list[int]:
    """Lengths that double from the first; the last takes what is left."""
    lengths, length = [], FIRST_ROUND
    while num_warmup > 0:
        length = length if num_warmup >= 3 * length else num_warmup
        lengths.append(length)
        num_warmup -= length
        length *= 2
    return lengths


def chain_mesh(num_chains: int, num_devices: int | None = None) -> Mesh:
    """As many devices as divide the chains evenly."""
    devices = jax.devices()[:num_devices]
    count = max(n for n in range(1, len(devices) + 1) if num_chains % n == 0)
    return Mesh(np.array(devices[:count]), ("chains",))


@partial(jax.jit, static_argnames=("capacity", "mesh"))
def advance(key: jax.Array, method: Method, path: Path, tuning: Tuning, states: Any, first_step: jax.Array,
            num_steps: jax.Array, *, capacity: int, mesh: Mesh) -> tuple[Any, Draws]:
    """`num_steps` steps of every chain, recorded in the first rows of a buffer of `capacity` rows.

    The number of steps is traced, so that one program serves warm-up, sampling and every chunk size;
    a step's keys depend on its number and chain alone, so chunks do not change the draws.
    """

    def local(method: Method, path: Path, tuning: Tuning, chains: jax.Array, states: Any) -> tuple[Any, Draws]:
        chain_keys = jax.vmap(lambda chain: jax.random.fold_in(key, chain))(chains)

        def step_all(step: jax.Array, states: Any) -> tuple[Any, Draws]:
            own = jax.vmap(lambda key: jax.random.fold_in(key, step))(chain_keys)
            shared = jax.random.fold_in(jax.random.fold_in(key, step), 2**31)
            return jax.vmap(lambda own, state: method.step(Keys(own, shared), path, tuning, state))(own, states)

        def body(i: jax.Array, carry: tuple[Any, Draws]) -> tuple[Any, Draws]:
            states, buffer = carry
            states, draw = step_all(first_step + i, states)
            return states, jax.tree.map(lambda rows, row: rows.at[i].set(row), buffer, draw)

        shapes = jax.eval_shape(step_all, first_step, states)[1]
        buffer = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), shapes)
        return jax.lax.fori_loop(0, num_steps, body, (states, buffer))

    shared, by_chain = PartitionSpec(), PartitionSpec("chains")
    chains = jnp.arange(jax.tree.leaves(states)[0].shape[0], dtype=jnp.uint32)
    spread = jax.shard_map(local, mesh=mesh, in_specs=(shared, shared, shared, by_chain, by_chain),
                           out_specs=(by_chain, PartitionSpec(None, "chains")), check_vma=False)
    return spread(method, path, tuning, chains, states)


@jax.jit
def adapt(method: Method, tuning: Tuning, draws: Draws, is_last: jax.Array) -> Tuning:
    return method.adapt(tuning, draws, is_last)


@jax.jit
def start(key: jax.Array, method: Method, path: Path, tuning: Tuning, positions: jax.Array) -> Any:
    """The states of chains at exact draws of the base."""
    keys = jax.random.split(key, positions.shape[0])
    return jax.vmap(lambda key, position: method.init(key, path, tuning, position))(keys, positions)


class Kept:
    """The draws of a warm-up round that `adapt` will see: a fixed number, evenly spaced, whatever the length."""

    def __init__(self, num_kept: int) -> None:
        self.num_kept = num_kept
        self.draws: Draws | None = None

    def empty(self, like: Draws) -> Draws:
        return Draws(*(np.full((leaf.shape[0], self.num_kept, *leaf.shape[2:]), np.nan if leaf.dtype.kind == "f" else 0,
                               leaf.dtype) for leaf in like))

    def add(self, chunk: Draws, offset: int, round_length: int) -> None:
        """Keep the chunk's share; `offset` is where in the round it began."""
        if self.draws is None or offset == 0:
            self.draws = self.empty(chunk)
        stride = -(-round_length // self.num_kept)
        places = np.arange(offset, offset + chunk.log_ratio.shape[1])
        chosen = places % stride == stride - 1
        slots = places[chosen] // stride
        for kept, new in zip(self.draws, chunk, strict=True):
            kept[:, slots] = new[:, chosen]


def run(key: jax.Array, method: Method, path: Path, tuning: Tuning, states: Any, schedule: Schedule, *,
        first_step: int = 0, num_kept: int, checkpoint: Checkpoint | None, reporter: Reporter,
        chunk_size: int | None = None) -> Outcome:
    """Warm up, freeze, sample; resumes from `checkpoint` when it holds a state of this run."""
    num_chains, dimension = jax.tree.leaves(states)[0].shape[0], path.dimension
    mesh = chain_mesh(num_chains)
    capacity = int(np.clip(BUFFER_BYTES / (8 * num_chains * (dimension + 8)), 1, 256))
    step_program = partial(advance, key, method, path, capacity=capacity, mesh=mesh)
    began = time.monotonic()
    reporter.phase("compiling", None)
    _, empty = jax.block_until_ready(step_program(tuning, states, 0, 0))
    seconds = {"compile": time.monotonic() - began, "warm-up": 0.0, "adapt": 0.0, "sampling": 0.0}
    kept, chunks, progress = Kept(num_kept), [], Progress(CLIMB, 0, 0, first_step)
    kept.draws = kept.empty(to_chains(empty, 0))
    warmup_gradients = np.zeros((), np.int64)
    if checkpoint is not None and checkpoint.exists():
        saved = (tuning, states, kept.draws, warmup_gradients)
        progress, (tuning, states, kept.draws, warmup_gradients), chunks = checkpoint.load(saved)
    pace = Pace(chunk_size, capacity)
    while True:
        phase, index, offset, step = progress
        length, is_warmup = schedule.length(phase, index, tuning, num_chains), phase != SAMPLING
        if length == 0 and is_warmup:
            progress = Progress(phase + 1, 0, 0, step)
            continue
        reporter.phase(PHASES[phase], length)
        reporter.advance(offset, 0)
        while offset < length:
            began = time.monotonic()
            count = min(pace.steps, length - offset)
            states, buffer = step_program(tuning, states, step, count)
            chunk = to_chains(buffer, count)
            if is_warmup:
                kept.add(chunk, offset, length)
                warmup_gradients = warmup_gradients + chunk.num_gradients.sum()
            else:
                chunks.append(chunk)
            offset, step = offset + count, step + count
            if checkpoint is not None:
                if not is_warmup:
                    checkpoint.append(step - count, chunk)
                checkpoint.save(Progress(phase, index, offset, step), (tuning, states, kept.draws, warmup_gradients))
            elapsed = time.monotonic() - began
            seconds["warm-up" if is_warmup else "sampling"] += elapsed
            pace.learn(count, elapsed)
            reporter.advance(count, int(chunk.num_gradients.sum()))
            if not is_warmup:
                reporter.figures(chunks, float(path.log_zeta))
        progress = Progress(phase, index + 1, 0, step)
        if is_warmup:
            began = time.monotonic()
            tuning = jax.block_until_ready(adapt(method, tuning, kept.draws, schedule.is_last_warmup(phase, index)))
            seconds["adapt"] += time.monotonic() - began
        elif schedule.stop is None or schedule.length(phase, index + 1, tuning, num_chains) == 0:
            break
        elif schedule.stop(concatenate(chunks)):
            break
    return Outcome(concatenate(chunks), tuning, states, progress.step, seconds, int(warmup_gradients))


class Pace:
    """Chunks of about half a second, so that a bar moves and an interruption loses little."""

    def __init__(self, fixed: int | None, capacity: int) -> None:
        self.fixed, self.capacity = fixed, capacity
        self.steps = min(fixed or 4, capacity)

    def learn(self, steps: int, seconds: float) -> None:
        if self.fixed is None:
            wanted = steps * SECONDS_A_CHUNK / max(seconds, 1e-6)
            self.steps = int(np.clip(wanted, 1, min(4 * steps, self.capacity)))


def to_chains(buffer: Draws, count: int) -> Draws:
    """The first `count` rows of a buffer, as NumPy with leading axes (chain, draw)."""
    return Draws(*(np.moveaxis(np.asarray(leaf)[:count], 0, 1) for leaf in buffer))


def concatenate(chunks: list[Draws]) -> Draws:
    return Draws(*(np.concatenate(parts, axis=1) for parts in zip(*chunks, strict=True)))
