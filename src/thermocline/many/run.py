"""Groups of targets of one shape, run one after another by the same compiled programs.

A target's draws depend on its own data, base and seed only: its keys are its own, it rests once it has climbed
until its whole group has, and steps are numbered alike whatever the others need.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from thermocline.engine.loop import (
    BUFFER_BYTES,
    MOST_STEPS_A_CHUNK,
    ChunkSize,
    Timer,
    concatenate,
    no_draws,
    to_chains,
    with_chunk,
)
from thermocline.engine.plan import MOST_RAMPS, PHASES, RAMP, SAMPLING, WARMUP, warmup_rounds
from thermocline.engine.program import adapt, first_tuning, tuned
from thermocline.engine.progress import Reporter
from thermocline.many.program import (
    Drawn,
    Paths,
    advance_group,
    at,
    count_inside,
    draw_group,
    init_group,
    keys_of,
    target_mesh,
    where_active,
)
from thermocline.methods import Method
from thermocline.methods.tuning import Tuning, visits_base
from thermocline.paths import Path
from thermocline.records import BaseDraws, Draws
from thermocline.records.draws import Array
from thermocline.support.precision import to_numpy

NUM_BASE_DRAWS = 512  # a target
NUM_KEPT = 256  # draws of a warm-up round that adaptation sees, over all chains of a target
SUPPORT_ROUNDS = 128  # of as many base draws, for targets whose support some of them miss


class Plan(NamedTuple):
    """How every target is run."""

    method: Method
    num_chains: int
    num_warmup: int
    num_draws: int
    chunk_size: int | None

    @property
    def first_method(self) -> Method:
        """What climbs and warms up: the pilot, where the method has one."""
        return self.method.pilot or self.method

    @property
    def num_kept(self) -> int:
        """Draws of a round, a chain, that adaptation sees."""
        return max(NUM_KEPT // self.num_chains, 8)

    @property
    def ramp_steps(self) -> int:
        """Of a round of the first climb."""
        return max(4, 64 // self.num_chains)

    @property
    def first_warmup_step(self) -> int:
        """After the longest climb there can be: keys must not depend on how long it was."""
        return MOST_RAMPS * self.ramp_steps

    @property
    def first_sampling_step(self) -> int:
        return self.first_warmup_step + self.num_warmup

    @property
    def num_steps(self) -> int:
        return self.first_sampling_step + self.num_draws


class Runs(NamedTuple):
    """What targets leave: every leaf has a leading axis over them, in NumPy."""

    seed: np.ndarray
    log_zeta: Array
    base_draws: BaseDraws
    num_bad: Array  # of them, where r is NaN or +inf
    support: np.ndarray  # how many fresh base draws fell on the target's support, and of how many
    tuning: Tuning
    states: Any
    warmup_gradients: np.ndarray
    draws: Draws  # (target, chain, draw)


class RunState(NamedTuple):
    """A group on its way."""

    tuning: Tuning
    states: Any
    warmup_gradients: np.ndarray


class Course(NamedTuple):
    """The compiled steps of one group, how fast they go, and who is told."""

    program: Callable[..., Any]
    plan: Plan
    pace: ChunkSize
    timer: Timer
    reporter: Reporter

    def chunks(self, phase: int, standing: RunState, first_step: int, length: int) -> Iterator[tuple[Any, int, Draws]]:
        """Take `length` steps; yields the states, how many steps there were before this chunk, and its draws.

        The draws' leading axes are (target and chain together, draw), as the functions of one run have them.
        """
        states, offset = standing.states, 0
        while offset < length:
            count = min(self.pace.steps, length - offset)
            with self.timer.timing(PHASES[phase]):
                states, buffer = self.program(standing.tuning, states, first_step + offset, count)
                chunk = to_chains(
                    Draws(
                        *(leaf.reshape(len(leaf), leaf.shape[1] * leaf.shape[2], *leaf.shape[3:]) for leaf in buffer)
                    ),
                    count,
                )
            self.pace.learn(count, self.timer.last)
            self.reporter.advance(0 if phase == RAMP else count, int(chunk.num_gradients.sum()))
            yield states, offset, chunk
            offset += count

    def by_target(self, draws: Draws) -> Draws:
        """From (target and chain, draw) to (target, chain, draw)."""
        return Draws(
            *(leaf.reshape(len(leaf) // self.plan.num_chains, self.plan.num_chains, *leaf.shape[1:]) for leaf in draws)
        )


class Group(NamedTuple):
    """A group of targets, ready to run."""

    seeds: np.ndarray
    keys: jax.Array
    paths: Paths
    drawn: Drawn
    tuning: Tuning
    states: Any
    num_inside: np.ndarray  # fresh base draws on the target's support
    advance: Callable[..., Any]  # steps of any method
    course: Course

    @property
    def is_usable(self) -> np.ndarray:
        """Whose density is a number at every draw of the base, and positive at some."""
        return (np.asarray(self.drawn.num_bad) == 0) & (self.num_inside > 0)


def begin_group(
    shared_key: jax.Array, seeds: np.ndarray, paths: Paths, plan: Plan, timer: Timer, reporter: Reporter
) -> Group:
    """Draw from the bases, place the chains, and compile the first steps: a pilot's only if there is warm-up."""
    with timer.timing("compile"):
        keys = keys_of(seeds)
        drawn = draw_group(keys, paths, num_draws=NUM_BASE_DRAWS)
        paths = Paths(Path(paths.path.target, paths.path.base, drawn.log_zeta), paths.is_shared)
        tuning = first_tuning(plan.first_method, drawn.metric, drawn.base_draws.log_ratio)
    row = drawn.base_draws.position.shape[-1] + 8
    capacity = int(np.clip(BUFFER_BYTES / (8 * len(seeds) * plan.num_chains * row), 1, MOST_STEPS_A_CHUNK))
    advance = partial(advance_group, shared_key, keys, capacity=capacity, mesh=target_mesh(len(seeds), paths))
    num_inside = np.isfinite(drawn.base_draws.log_ratio).sum(axis=1)
    course = Course(advance, plan, ChunkSize(plan.chunk_size, capacity), timer, reporter)
    group = Group(seeds, keys, paths, drawn, tuning, None, num_inside, advance, course)
    if plan.method.pilot is not None and plan.num_warmup == 0:
        return handed_over(group, tuning)
    return compiled(group, plan.first_method, tuning)


def compiled(group: Group, method: Method, tuning: Tuning) -> Group:
    """The group with chains placed for a method, and its compiled steps."""
    course = group.course
    with course.timer.timing("compile"):
        mesh = target_mesh(len(group.seeds), group.paths)
        states = init_group(group.keys, method, group.paths, tuning, group.drawn.base_draws, course.plan.num_chains)
        states = jax.device_put(states, NamedSharding(mesh, PartitionSpec("targets")))  # as steps return them
        program = partial(group.advance, method, group.paths)
        jax.block_until_ready(program(tuning, states, 0, 0))
    course = course._replace(program=program, pace=ChunkSize(course.plan.chunk_size, course.pace.capacity))
    return group._replace(tuning=tuning, states=states, course=course)


def handed_over(group: Group, learned: Tuning) -> Group:
    """From the pilot to the method, tuned by what the pilot learned of each target."""
    method = group.course.plan.method
    return compiled(group, method, tuned(method, learned))


def finish_group(group: Group) -> Runs:
    """Climb, warm up, freeze and sample."""
    plan = group.course.plan
    standing = RunState(group.tuning, group.states, np.zeros(len(group.seeds), int))
    if plan.num_warmup > 0:
        standing = ramp(group.course, standing, group.is_usable)
    step, lengths = plan.first_warmup_step, warmup_rounds(plan.num_warmup)
    for index, length in enumerate(lengths):
        standing = take_round(group.course, WARMUP, standing, step, length, is_last=index == len(lengths) - 1)
        step += length
    if plan.method.pilot is not None and plan.num_warmup > 0:
        group = handed_over(group, standing.tuning)
        standing = standing._replace(tuning=group.tuning, states=group.states)
    drawn, course = group.drawn, group.course
    chunks = list(course.chunks(SAMPLING, standing, plan.first_sampling_step, plan.num_draws))
    draws = course.by_target(concatenate([chunk for _, _, chunk in chunks]))
    known = drawn.log_zeta, drawn.base_draws, drawn.num_bad, count_support(group)
    return to_numpy(Runs(group.seeds, *known, standing.tuning, chunks[-1][0], standing.warmup_gradients, draws))


def ramp(course: Course, standing: RunState, is_usable: np.ndarray) -> RunState:
    """Until every target that can be sampled has been up its path; those that have rest meanwhile."""
    steps = course.plan.ramp_steps
    for index in range(MOST_RAMPS):
        learning = standing.tuning.learning
        is_ramping = is_usable & (learning is not None and ~np.asarray(learning.window.is_open))
        if not is_ramping.any():
            break
        after = take_round(course, RAMP, standing, index * steps, steps, is_last=False)
        tuning, states = (where_active(is_ramping, new, old) for new, old in zip(after[:2], standing[:2], strict=True))
        states = jax.tree.map(lambda new, old: jax.device_put(new, old.sharding), states, after.states)
        standing = RunState(tuning, states, np.where(is_ramping, after.warmup_gradients, standing.warmup_gradients))
    return standing


def take_round(
    course: Course, phase: int, standing: RunState, first_step: int, length: int, *, is_last: bool
) -> RunState:
    """A round of warm-up, and what is learned from its share of the draws."""
    kept, gradients, states = None, standing.warmup_gradients, standing.states
    for states, offset, chunk in course.chunks(phase, standing, first_step, length):  # noqa: B007
        kept = with_chunk(no_draws(chunk, course.plan.num_kept) if kept is None else kept, chunk, offset, length)
        gradients = gradients + chunk.num_gradients.reshape(len(gradients), -1).sum(axis=1)
    assert kept is not None, "a round has steps"
    with course.timer.timing("adapt"):
        tuning = adapt(course.plan.first_method, standing.tuning, course.by_target(kept), is_last)
        return RunState(tuning, states, gradients)


def count_support(group: Group) -> np.ndarray:
    """How many base draws fell on each target's support and of how many; many more where some did not.

    All, where temperatures include the base's own and so need no such correction.
    """
    num_drawn = np.full(len(group.seeds), NUM_BASE_DRAWS)
    is_wanted = group.is_usable & (not visits_base(at(group.tuning, 0)))
    num_inside = np.where(is_wanted | ~group.is_usable, group.num_inside, num_drawn)
    is_partial = is_wanted & (num_inside < num_drawn)
    for index in range(SUPPORT_ROUNDS if is_partial.any() else 0):
        more = np.asarray(count_inside(group.keys, group.paths, index, num_draws=NUM_BASE_DRAWS))
        num_inside, num_drawn = num_inside + is_partial * more, num_drawn + is_partial * NUM_BASE_DRAWS
    return np.stack([num_inside, num_drawn], axis=1)
