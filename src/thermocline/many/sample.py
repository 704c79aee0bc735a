"""`sample_many`: hundreds to thousands of targets that differ in their data only."""

import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.api import _check_options
from thermocline.bases import BaseFit, NormalisedDensity
from thermocline.checks import Check
from thermocline.engine.explore import Lengths, keys_of
from thermocline.engine.loop import Timer
from thermocline.engine.progress import Reporter, reporter_for
from thermocline.many.bases import resolve_bases
from thermocline.many.program import Paths, at
from thermocline.many.result import ManyResults, Settings
from thermocline.many.run import NUM_BASE_DRAWS, Plan, Runs, begin_group, finish_group
from thermocline.methods import GibbsTempering, Method, check_method
from thermocline.paths import Path
from thermocline.support.errors import ThermoclineError, ThermoclineWarning
from thermocline.support.precision import cast, computing_in, to_numpy
from thermocline.target import Target, check_position, dimension, named_leaves

GROUP_SIZE = 32  # targets at once, on a CPU; for any number of them the same, because width changes rounding
GROUP_SIZE_ELSEWHERE = 256
MOST_BYTES = 8e9  # of draws of the parameters
UNUSABLE = "log density is a number"  # a check


def sample_many(
    target: Target,
    data: Any,
    *,
    base: NormalisedDensity | BaseFit | Callable[[Any], NormalisedDensity | BaseFit],
    seed: int = 0,
    method: Method | None = None,
    num_chains: int = 4,
    num_warmup: int = 500,
    num_draws: int = 1000,
    positions: bool = True,
    progress: bool = True,
    precision: str = "float64",
    chunk_size: int | None = None,
    group_size: int | None = None,
) -> ManyResults:
    """Sample `target` given each datum of `data`, a PyTree whose leaves have a leading axis over targets.

    `base` is a function of the datum that JAX can trace (an inference network, say) and that returns a base or a
    `BaseFit`; or a base whose leaves have the leading axis too; or one base for all. `target.data` is not used.

    Targets run in groups of `group_size`, one after another, by the same compiled programs. A target's draws do not
    depend on how many others there are; another group size changes rounding. With `positions=False` the draws of
    the parameters are dropped once a target's checks are made, and only their weights kept, for the evidence.
    """
    _check_options(seed, Lengths(num_chains, num_warmup, num_draws, num_draws), None, chunk_size)
    chosen = GibbsTempering() if method is None else method
    _check_method(chosen)
    number, size = num_targets(data), group_size_for(group_size)
    with computing_in(precision), closing(reporter_for(progress)) as reporter:
        chosen = cast(chosen, precision)
        position, data = to_numpy(cast((target.initial_position, data), precision))
        target = replace(target, initial_position=position, prior=None, log_likelihood=None)
        one = replace(target, data=at(data, 0))
        check_signature(one)
        _check_memory(positions, number * num_chains * num_draws * dimension(one) * np.dtype(precision).itemsize)
        everywhere = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (number, *np.shape(leaf))), position)
        targets = replace(target, initial_position=everywhere, data=data)
        groups = [np.arange(first, first + size) % number for first in range(0, number, size)]
        bases, log_zeta, is_shared = resolve_bases(base, data, position, groups, precision)
        paths = Paths(Path(targets, bases, log_zeta), is_shared)
        plan = Plan(chosen, num_chains, num_warmup, num_draws, chunk_size)
        results = run_groups(seed, paths, plan, groups, positions, precision, reporter)
    _warn_of_unusable(results)
    return results


def run_groups(
    seed: int,
    paths: Paths,
    plan: Plan,
    groups: list[np.ndarray],
    positions: bool,
    precision: str,
    reporter: Reporter,
) -> ManyResults:
    """One group after another, gathered; the last is filled up with other targets, whose results are dropped."""
    number = len(paths.path.log_zeta)
    timer, gathered, known_checks = Timer(), None, {}
    settings = Settings(plan.method, precision, plan.num_steps, timer.seconds)
    reporter.phase("compiling", None)
    for group in groups:
        begun = begin_group(keys_of(seed)[2], seeds_of(seed, group), paths.take(group), plan, timer, reporter)
        if group[0] == 0:
            reporter.phase(f"{number} targets", len(groups) * (plan.num_warmup + plan.num_draws))
        own = slice(group[0], min(group[0] + len(group), number))
        runs = at(finish_group(begun), slice(own.stop - own.start))
        results = ManyResults(runs, paths.take(own), settings, np.arange(own.start, own.stop), known_checks)
        note_unusable(results)
        runs = runs if positions else without_positions(results)
        if gathered is None:
            gathered = jax.tree.map(lambda new: np.empty((number, *new.shape[1:]), new.dtype), runs)
        jax.tree.map(lambda rows, new: rows.__setitem__(own, new), gathered, runs)  # noqa: B023
    settings = settings._replace(seconds=timer.seconds)
    assert gathered is not None, "there is at least one target"
    return ManyResults(gathered, paths, settings, np.arange(number), known_checks)


def num_targets(data: Any) -> int:
    """The length of the leading axis that all leaves share."""
    leaves = named_leaves(data)
    if not leaves:
        raise ThermoclineError("the data hold no arrays; give a PyTree whose leaves have a leading axis over targets.")
    for name, leaf in leaves.items():
        if np.ndim(leaf) == 0:
            raise ThermoclineError(
                f"data {name} is a single number, without a leading axis over targets; repeat it for every target, "
                "or let log_density hold what all of them share."
            )
    lengths = {name: np.shape(leaf)[0] for name, leaf in leaves.items()}
    if len(set(lengths.values())) > 1:
        described = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ThermoclineError(
            f"data have leading axes of different lengths ({described}): one datum a target is needed."
        )
    number = next(iter(lengths.values()))
    if number == 0:
        raise ThermoclineError("the data are empty: their leading axis, over targets, has length 0.")
    return number


def check_signature(target: Target) -> None:
    """That the density of a datum is one number; which number, each target has to answer for itself."""
    check_position(target.initial_position)
    try:
        shape = jax.eval_shape(target, target.initial_position)
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise ThermoclineError(f"log_density(position, datum) could not be called for target 0: {reason}") from error
    if getattr(shape, "shape", None) != () or not jnp.issubdtype(shape.dtype, jnp.floating):
        raise ThermoclineError(f"log_density(position, datum) returns {shape} for target 0 where one float is needed.")


def seeds_of(seed: int, index: np.ndarray) -> np.ndarray:
    """A seed for each target: consecutive ones, from a place that the call's seed decides."""
    first = int(np.random.SeedSequence(int(seed)).generate_state(1)[0])
    return ((first + index.astype(np.uint64)) % 2**32).astype(np.uint32)


def note_unusable(results: ManyResults) -> None:
    """Targets whose density is no number get a check that says so, and NaN for weights: the others go on."""
    runs = results.runs
    for place, (num_bad, (num_inside, _)) in enumerate(zip(runs.num_bad, runs.support, strict=True)):
        if num_bad == 0 and num_inside > 0:
            continue
        index = int(results.index[place])
        why = (
            f"NaN or +inf, less the base's, at {num_bad} of {NUM_BASE_DRAWS} draws of its base; look at its datum, "
            "return -inf off the support, and check that the base has a density where it draws."
            if num_bad
            else f"-inf at all {NUM_BASE_DRAWS} draws of its base; give a base that covers the target's support."
        )
        results.known_checks[index] = (Check(UNUSABLE, np.nan, 0.0, "failed", f"target {index}: log density is {why}"),)
        for log_weight in (runs.draws.log_weight_target, runs.draws.log_weight_base):
            log_weight[place] = np.nan


def without_positions(results: ManyResults) -> Runs:
    """The runs without draws of the parameters, once the checks that need them are made."""
    for place in range(len(results)):
        results.checks_of(place)
    runs = results.runs
    base_draws = runs.base_draws._replace(position=runs.base_draws.position[..., :0])
    return runs._replace(draws=runs.draws._replace(position=runs.draws.position[..., :0]), base_draws=base_draws)


def _warn_of_unusable(results: ManyResults) -> None:
    """Warn of targets that could not be sampled; raise when none could."""
    reasons = [check.advice for checks in results.known_checks.values() for check in checks if check.name == UNUSABLE]
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


def _check_method(method: Method) -> None:
    """Programs have one shape for all targets, and rounds of warm-up are those of one method."""
    check_method(method)
    if method.pilot is not None and method.own_warmup > 0:
        raise ThermoclineError(
            f"sample_many cannot run {type(method).__name__}, which has rounds of its own after its pilot's; "
            "use GibbsTempering, JointTempering or AnnealedImportance, or tc.sample target by target."
        )
    if not method.is_sized:
        raise ThermoclineError(
            f"sample_many runs all targets with equally many temperatures; give {type(method).__name__} its "
            "num_temperatures, which a pilot places for each target, or its betas."
        )


def group_size_for(group_size: int | None) -> int:
    if group_size is None:
        return GROUP_SIZE if jax.default_backend() == "cpu" else GROUP_SIZE_ELSEWHERE
    if not (isinstance(group_size, int | np.integer) and group_size >= 1):
        raise ThermoclineError(f"group_size is {group_size!r}; give a positive number of targets, or None.")
    return int(group_size)


def _check_memory(positions: bool, num_bytes: int) -> None:
    if positions and num_bytes > MOST_BYTES:
        raise ThermoclineError(
            f"the draws of the parameters would take {num_bytes / 1e9:.0f} GB; pass positions=False to keep only their "
            "weights, draw less, or call sample_many on a part of the data at a time."
        )
