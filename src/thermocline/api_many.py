"""`sample_many`: hundreds to thousands of targets that differ in their data only."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path as FilePath
from typing import Any, NamedTuple

import jax
import numpy as np

from thermocline.auto.black_box import find_base
from thermocline.bases import BaseFit, NormalisedDensity
from thermocline.checks import Check
from thermocline.checks.stopping import is_sound
from thermocline.engine.batch import Paths, alike, at
from thermocline.engine.checkpoint import Checkpoint
from thermocline.engine.explore import explore_batch, go_on
from thermocline.engine.folder import Guarded
from thermocline.engine.given import num_targets, paths_from, seeds_of, stacked_target
from thermocline.engine.memory import RECORDED, USED, free_bytes
from thermocline.engine.plan import TARGET_ERROR, Lengths, Sizes, checked_options, lengths_of
from thermocline.engine.prepare import NUM_BASE_DRAWS
from thermocline.engine.progress import Reporter, Silent, reporter_for, watched
from thermocline.engine.workers import mapped, on_workers
from thermocline.evaluator import Evaluator
from thermocline.methods import GibbsTempering, Method, check_method, describe_method
from thermocline.paths import Path
from thermocline.results.assemble import run_fingerprint
from thermocline.results.kept import Searches
from thermocline.results.many import ManyResults
from thermocline.results.runs import ManyRuns, Part, Runs, Settings, lean
from thermocline.support.errors import ThermoclineError, ThermoclineWarning, brief
from thermocline.support.keywords import suggesting
from thermocline.support.options import is_whole
from thermocline.support.precision import cast, computing_in, to_numpy
from thermocline.support.runner import Runner, in_process
from thermocline.target import Target, check_numbers, check_shapes, check_target, dimension

GROUP_SIZE = 32  # targets a block, on a CPU; for any number of them the same, because width changes rounding
GROUP_SIZE_ELSEWHERE = 256
BLOCKS_AT_ONCE = 8  # go through the phases of a run together
NUM_DRAWS = 1000  # a chain, where neither a number nor an error is asked for
NUM_KEPT = 256  # draws of a warm-up round that adaptation sees, over all chains of a target


@suggesting
def sample_many(
    target: Target,
    data: Any,
    *,
    base: NormalisedDensity | BaseFit | Callable[[Any], NormalisedDensity | BaseFit] | None = None,
    seed: int = 0,
    method: Method | None = None,
    num_chains: int = 4,
    num_warmup: int = 500,
    num_draws: int | None = None,
    target_error: float | None = None,
    positions: bool = True,
    progress: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    search: bool = False,
    precision: str = "float64",
    chunk_size: int | None = None,
    group_size: int | None = None,
    workers: Any = None,
) -> ManyResults:
    """Sample `target` given each datum of `data`, a PyTree whose leaves have a leading axis over targets.

    `base` is a function of the datum that JAX can trace (an inference network, say) and that returns a base or a
    `BaseFit`; or a base whose leaves have the leading axis too; or one base for all. Without it, `fit_auto` looks for
    a base for each target. `target.data` is not used. Other options are those of `tc.sample`, for every target by
    itself: one that has its `target_error` rests while others go on. `search` makes a table of modes for each Result.

    Targets run in blocks of `group_size` by the same compiled program. A target's draws do not depend on how many
    others there are; another block size changes rounding. With `positions=False` the draws of the parameters are
    dropped once a target's checks are made, and only their weights kept, for the evidence. With `checkpoint`, a
    folder, draws go to its files and are read from there when asked for; the same call resumes a run that was cut off.
    `workers`, a number of processes or a client of dask.distributed, share out the blocks (and the searches for bases):
    the same draws for any number of them.
    """
    check_target(target)
    chosen = GibbsTempering() if method is None else method
    check_method(chosen)
    _check_sized(chosen)
    fixed = NUM_DRAWS if num_draws is None and target_error is None else num_draws
    lengths = lengths_of(chosen, num_chains, num_warmup, fixed, target_error, is_sound)
    flags = {"search": search, "progress": progress, "positions": positions}
    seed, lengths, chunk_size = checked_options(seed, lengths, target_error, chunk_size, **flags)
    check_numbers(data, "data")
    number, size = num_targets(data), group_size_for(group_size)
    with (
        Guarded(checkpoint),
        computing_in(precision),
        on_workers(workers) as runner,
        watched(reporter_for(progress)) as reporter,
    ):
        chosen = cast(chosen, precision)
        position, data = to_numpy(cast((target.initial_position, data), precision))
        target = replace(target, initial_position=position)
        check_shapes(replace(target, data=at(data, 0)), "for target 0")
        of_a_draw = (RECORDED + dimension(target)) * np.dtype(precision).itemsize
        num_bytes = number * num_chains * lengths.num_draws * of_a_draw
        if positions and checkpoint is None and num_bytes > (room := USED * free_bytes()):
            raise ThermoclineError(
                f"the draws would take {num_bytes / 1e9:.1f} GB, and {room / 1e9:.1f} GB are free "
                "for them; give a folder as checkpoint=, whose files then hold the draws, pass positions=False to keep "
                "only their weights, or draw less (num_draws)."
            )
        if base is None:
            error = target_error or TARGET_ERROR
            one = replace(target, data=at(data, 0))
            searches = Searches(checkpoint, one, data, **{"seed": seed, "precision": precision, "target error": error})
            families = searched(target, data, seed, error, precision, reporter, runner, searches)
        else:
            families = [Family(np.arange(number), paths_from(base, target, data, size, precision))]
        sizes = Sizes(size, max(NUM_KEPT // num_chains, 8), chunk_size)
        settings = Settings(
            int(seed), chosen, describe_method(chosen), chosen.has_evidence, precision, positions, search
        )
        marks = {"group size": str(size), "run length": f"{num_warmup}, {num_draws}, {target_error}"}
        results = run_families(families, lengths, sizes, settings, checkpoint, marks, reporter, runner)
    _warn_of_unusable(results)
    return results


class Family(NamedTuple):
    """Targets whose bases have the same shape, so that one program serves them: their numbers, and their paths."""

    targets: np.ndarray
    paths: Paths
    fits: tuple[BaseFit, ...] = ()

    def waves(self, block_size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Targets that run together, as rows of this family; and the same with others that fill up the last block."""
        for first in range(0, len(self.targets), BLOCKS_AT_ONCE * block_size):
            own = np.arange(first, min(first + BLOCKS_AT_ONCE * block_size, len(self.targets)))
            yield own, np.resize(own, -(-len(own) // block_size) * block_size)


def searched(
    target: Target,
    data: Any,
    seed: int,
    target_error: float,
    precision: str,
    reporter: Reporter,
    runner: Runner,
    searches: Searches,
) -> list[Family]:
    """A search for each target, and those targets together whose bases came out alike."""
    seeds = seeds_of(seed, np.arange(len(jax.tree.leaves(data)[0])))
    told = reporter if runner is in_process else Silent()

    def find(places: Iterable[int]) -> Iterator[BaseFit]:
        targets = ((cast(replace(target, data=at(data, place)), precision), seeds[place]) for place in places)
        return runner(partial(_base_of_one, target_error, precision, told), targets)

    fits = searches.all(find, len(seeds))
    families: list[Family] = []
    log_zeta: Any = np.array([fit.log_zeta for fit in fits], precision)
    for index, bases in alike([fit.base for fit in fits]):
        path = Path(stacked_target(target, at(data, index)), bases, log_zeta[index])
        families.append(Family(index, Paths(path), tuple(fits[place] for place in index)))
    return families


def _base_of_one(target_error: float, precision: str, reporter: Reporter, one: tuple[Target, int]) -> BaseFit:
    """What the search for the base of a target, with the seed of its own, comes to."""
    fit = find_base(Evaluator(one[0], precision), int(one[1]), target_error, reporter)
    return fit._replace(base=to_numpy(cast(fit.base, precision)))


def run_families(
    families: list[Family],
    lengths: Lengths,
    sizes: Sizes,
    settings: Settings,
    checkpoint: str | os.PathLike[str] | None,
    marks: dict[str, str],
    reporter: Reporter,
    runner: Runner,
) -> ManyResults:
    """Some blocks after others, so that no more than these hold what runs need while they go on."""

    def stored(number: int, paths: Paths) -> Checkpoint | None:
        if checkpoint is None:
            return None
        folder = FilePath(checkpoint) / f"targets-{number:05d}"
        own = run_fingerprint(paths, settings.method, settings.seed, lengths.num_chains, settings.precision).marks()
        return Checkpoint(folder, own | marks, streams=True)

    def walked(wave: tuple[int, Family, np.ndarray, np.ndarray]) -> tuple[Part, dict[int, tuple[Check, ...]]]:
        number, family, own, rows = wave
        seeds, paths = seeds_of(settings.seed, family.targets[rows]), family.paths.take(rows)
        given = settings.method, lengths, sizes, reporter if runner is in_process else Silent(), partial(stored, number)
        explored = explore_batch(settings.seed, seeds, paths, *given, runner=runner)
        part = Part(family.targets[own], explored, tuple(family.fits[row] for row in own) if family.fits else ())
        if settings.has_positions:
            return part, {}
        runs = Runs.of([part], settings._replace(has_positions=True))  # dropped once checks that need them are made
        usable = part.targets[runs.by_target.is_usable[part.targets]].tolist()
        return lean(part), {target: runs.result(target, is_for_checks=True).checks for target in usable}

    waves = [(family, *rows) for family in families for rows in family.waves(sizes.block_size)]
    parts, checks = [], {}
    for part, found in reported(runner, walked, [(i, *wave) for i, wave in enumerate(waves)], reporter):
        parts.append(part)
        checks |= found
    runs = Runs.of(parts, settings)
    return ManyResults(runs, np.arange(len(runs.places)), checks | unusable(runs))


def reported(runner: Runner, walked: Callable[[Any], Any], waves: list[Any], reporter: Reporter) -> Iterator[Any]:
    """Walks of waves; those that workers share are reported as a whole, as several are under way at a time."""
    if runner is not in_process:
        reporter.phase(f"sampling on workers, {BLOCKS_AT_ONCE} blocks each", len(waves))
    for found in mapped(runner, walked, waves, BLOCKS_AT_ONCE):
        yield found
        if runner is not in_process:
            reporter.advance(1, 0)


def extend_many(results: ManyResults, num_draws: int | None, progress: bool, workers: Any) -> ManyResults:
    """Go on with all targets of a call: the same chains, `num_draws` more each (by default as many as most have)."""
    runs = results.runs
    if not isinstance(runs, Runs):
        raise ThermoclineError(
            "loaded results do not hold their targets and cannot go on together; tc.extend(results[i], target) each, "
            "or extend in the session that made them."
        )
    settings = runs.settings
    num_more = int(runs.by_target.num_draws.max()) if num_draws is None else num_draws
    with (
        Guarded(),
        computing_in(settings.precision),
        on_workers(workers) as runner,
        watched(reporter_for(progress)) as reporter,
    ):

        def walked(part: Part) -> Part:
            told = reporter if runner is in_process else Silent()
            explored = go_on(settings.seed, settings.method, part.explored, num_more, told, runner)
            part = part._replace(explored=explored)
            return part if settings.has_positions else lean(part)

        parts = list(reported(runner, walked, runs.parts, reporter))
    runs = Runs.of(parts, settings)
    return ManyResults(runs, results.index, unusable(runs))


def unusable(runs: ManyRuns) -> dict[int, tuple[Check, ...]]:
    """A check that says so for each target whose density is no number: the others go on."""
    found = {}
    for index in np.flatnonzero(~runs.by_target.is_usable).tolist():
        num_bad = runs.by_target.num_bad[index]
        why = (
            f"NaN or +inf, less the base's, at {num_bad} of {NUM_BASE_DRAWS} draws of its base; look at its datum, "
            "return -inf off the support, and check that the base has a density where it draws."
            if num_bad
            else f"-inf at all {NUM_BASE_DRAWS} draws of its base; give a base that covers the target's support."
        )
        advice = f"target {index}: log density is {why}"
        found[index] = (Check("log density is a number", np.nan, 0.0, "failed", advice),)
    return found


def _warn_of_unusable(results: ManyResults) -> None:
    """Warn of targets that could not be sampled; raise when none could."""
    reasons = [check.advice for (check,) in unusable(results.runs).values()]
    if len(reasons) == len(results):
        raise ThermoclineError(f"no target can be sampled; {reasons[0]}")
    if reasons:
        more = "" if len(reasons) == 1 else f" And {len(reasons) - 1} more: see results.verdicts."
        warnings.warn(
            f"{reasons[0]}{more} The joint log evidence is NaN with it; leave it out by results[results.verdicts != "
            '"failed"].',
            ThermoclineWarning,
            stacklevel=3,
        )


def _check_sized(method: Method) -> None:
    """Programs have one shape for all targets."""
    if not method.is_sized:
        raise ThermoclineError(
            f"sample_many cannot run {type(method).__name__} of a size that each target finds for itself: all have "
            f"equally many temperatures. So give {type(method).__name__} its num_temperatures (num_replicas of "
            "ParallelTempering), which a pilot places for each target, or its betas."
        )


def group_size_for(group_size: int | None) -> int:
    if group_size is None:
        return GROUP_SIZE if jax.default_backend() == "cpu" else GROUP_SIZE_ELSEWHERE
    if not (is_whole(group_size) and group_size >= 1):
        raise ThermoclineError(f"group_size is {brief(group_size)}; give a positive number of targets, or None.")
    return int(group_size)
