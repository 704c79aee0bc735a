"""`sample`: from a target to a Result in one call; and `extend`, more of the same."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, overload

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.api_many import extend_many
from thermocline.auto.black_box import find_base, prior_rows
from thermocline.auto.many_dimensions import NOT_LOOKED_FOR
from thermocline.auto.mode_masses import table_of_modes, table_of_modes_again
from thermocline.bases import BaseFit, NormalisedDensity, check_base
from thermocline.checks.stopping import is_sound
from thermocline.engine.batch import Blocks, Paths
from thermocline.engine.checkpoint import Checkpoint
from thermocline.engine.drawn import Chunk, Drawn
from thermocline.engine.explore import Exploration, Explorations, explore, go_on
from thermocline.engine.folder import Guarded
from thermocline.engine.given import prepared, resolve_base
from thermocline.engine.loop import Outcomes, Timer
from thermocline.engine.memory import Needs, streams, within_memory
from thermocline.engine.plan import MOST_DRAWS, TARGET_ERROR, Lengths, checked_options, lengths_of
from thermocline.engine.progress import Reporter, reporter_for, watched
from thermocline.engine.workers import on_workers
from thermocline.evaluator import Evaluator, checked_evaluator
from thermocline.methods import GibbsTempering, Method, check_method
from thermocline.paths import Path
from thermocline.records import Cost, Draws, Phases
from thermocline.results import storage
from thermocline.results.assemble import assemble, check_same_run, run_fingerprint
from thermocline.results.kept import Searches
from thermocline.results.many import ManyResults
from thermocline.results.predictive import predictive
from thermocline.results.result import Result
from thermocline.support.budget import Budget, BudgetSpentError
from thermocline.support.errors import ThermoclineError, brief
from thermocline.support.keywords import suggesting
from thermocline.support.options import is_whole
from thermocline.support.precision import cast, computing_in, to_numpy
from thermocline.target import Target, check_target

NUM_SHOWN = 1000  # draws of the prior beside those of the posterior


@suggesting
def sample(
    target: Target,
    *,
    seed: int = 0,
    base: NormalisedDensity | BaseFit | Callable[..., BaseFit] | None = None,
    method: Method | None = None,
    num_chains: int = 16,
    num_warmup: int | None = None,
    num_draws: int | None = None,
    target_error: float | None = None,
    max_evaluations: float | None = None,
    max_seconds: float | None = None,
    progress: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    search: bool = True,
    precision: str = "float64",
    chunk_size: int | None = None,
    workers: Any = None,
) -> Result:
    """Sample `target` through a path from a base, and estimate its log evidence.

    Without a `base`, `fit_auto` finds one. `num_draws` a chain fixes the work; with `target_error`, sampling doubles
    until the standard error of log Z is below it, which is what happens, with 0.05, when neither is given. Warm-up is
    short where the base fits, unless `num_warmup` says how long. Within
    `max_evaluations` of the density or `max_seconds` about half is for the search, and sampling ends before a doubling
    that would cost more than is left (a run that resumes counts anew). With `checkpoint`, a folder, the same call
    resumes a run that was cut off, and large draws stay in its files. `search=False` leaves out the table of modes, and
    so all checks of them. `chunk_size` bounds the steps between looks at the progress and changes no draw. `workers`, a
    number of processes or a client of dask.distributed, share out chains and batches of a dear density: the same draws
    for any number of them.
    """
    timer, chosen = Timer(), GibbsTempering() if method is None else method
    check_target(target)
    check_method(chosen)
    lengths = lengths_of(chosen, num_chains, num_warmup, num_draws, target_error, is_sound)
    flags = {"search": search, "progress": progress}
    seed, lengths, chunk_size = checked_options(seed, lengths, target_error, chunk_size, **flags)
    with (
        Guarded(checkpoint),
        computing_in(precision),
        on_workers(workers) as runner,
        watched(reporter_for(progress)) as reporter,
    ):
        target, chosen = cast((target, chosen), precision)
        budget = Budget.of(max_evaluations, max_seconds)
        evaluate = checked_evaluator(target, precision, budget, runner=runner)
        target = replace(target, known_modes=None)  # of the search alone
        needs = Needs(evaluate.dimension, num_chains, np.dtype(precision).itemsize)
        lengths = within_memory(needs, lengths, is_stored=checkpoint is not None)
        limits = {"max evaluations": max_evaluations, "max seconds": max_seconds}
        with timer.timing("base"):
            fit = base_for(evaluate, base, seed, target_error or TARGET_ERROR, reporter, checkpoint, limits)
        lengths = lengths.within(evaluate.budget, evaluate.rate)

        def stored(paths: Paths) -> Checkpoint | None:
            if checkpoint is None:
                return None
            marks = run_fingerprint(paths, chosen, seed, num_chains, precision).marks()
            marks |= {"run length": f"{num_warmup}, {num_draws}, {target_error}"}
            return Checkpoint(checkpoint, marks, streams=streams(needs, lengths))

        options: dict[str, Any] = {"runner": runner, "checkpoint": stored, "chunk_size": chunk_size}
        explored = explore(seed, target, fit.base, fit.log_zeta, chosen, lengths, reporter, **options)
        modes, num_before, notes = None, evaluate.num_rows, fit.notes
        if search:
            reporter.phase("table of modes", None)
            evaluate.budget.spent += explored.outcome.num_gradients
            try:
                with timer.timing("modes"):
                    modes = table_of_modes(seed, evaluate, fit, explored, reporter)
                notes = notes if modes is not None or NOT_LOOKED_FOR in notes else (*notes, NOT_LOOKED_FOR)
            except BudgetSpentError as limit:
                notes = (*notes, f"{limit} left nothing for the table of modes: no check is made of them.")
        spent = Phases(base=int(fit.num_gradients), modes=evaluate.num_rows - num_before)
        around = Cost(timer.seconds, spent)
        prior = None if target.prior is None else prior_rows(target.prior, seed)[:NUM_SHOWN]
        told = {"notes": notes, "around": around, "began": timer.began, "prior": prior}
        result = assemble(explored, chosen, seed, precision, modes, **told)
        if result.log_evidence is not None:
            reporter.figures(lambda: f"log Z {result.log_evidence}")  # what is shown in the end
        cut_short = _cut_short(result, lengths, max_evaluations, max_seconds)
        return replace(
            result, info=replace(result.info, cut_short=cut_short), predictive=predictive(target, result)
        )


def _cut_short(result: Result, lengths: Lengths, max_evaluations: float | None, max_seconds: float | None) -> str:
    """Which limit ended the run before its error was what it should be, if any did."""
    limits = (("max_evaluations", max_evaluations), ("max_seconds", max_seconds))
    named = " or ".join(f"{name}={value:g}" for name, value in limits if value is not None)
    if lengths.most_draws <= min(result.draws.log_ratio.shape[1], MOST_DRAWS - 1):
        named = "the memory that was free (a folder as checkpoint= holds more draws)"
    answer, wanted = result.log_evidence, lengths.target_error
    if not named or wanted is None or answer is None or answer.standard_error <= wanted:
        return ""
    return f"Within {named} the error of log Z came down to {answer.standard_error:.2g}, where {wanted:g} was wanted."


@overload
def extend(
    result: ManyResults,
    target: None = None,
    *,
    num_draws: int | None = None,
    progress: bool = True,
    workers: Any = None,
) -> ManyResults: ...
@overload
def extend(
    result: Result,
    target: Target,
    *,
    num_draws: int | None = None,
    base: NormalisedDensity | None = None,
    method: Method | None = None,
    progress: bool = True,
    workers: Any = None,
) -> Result: ...
@suggesting
def extend(
    result: Any,
    target: Target | None = None,
    *,
    num_draws: int | None = None,
    base: NormalisedDensity | None = None,
    method: Method | None = None,
    progress: bool = True,
    workers: Any = None,
) -> Any:
    """Go on with a finished run: the same chains, `num_draws` more each (by default as many as there are).

    The draws are those that a longer run would have had. A loaded result whose base or method held the
    user's own functions needs them again, as `base=` and `method=`. The results of `sample_many` go on all together;
    they know their target and data. `workers` are those of `sample`.
    """
    if not isinstance(result, Result | ManyResults):
        raise ThermoclineError(f"result is {brief(result)}; give what tc.sample or tc.sample_many returned.")
    if num_draws is not None and not (is_whole(num_draws) and num_draws >= 1):
        raise ThermoclineError(f"num_draws is {brief(num_draws)}; give a positive integer, or None for as many again.")
    if isinstance(result, ManyResults):
        return extend_many(result, num_draws, progress, workers)
    if target is None:
        raise ThermoclineError("a Result does not hold its target; pass it again: tc.extend(result, target).")
    return _extended(result, target, num_draws, (method, base), progress, workers)


def _extended(
    result: Result, target: Target, num_draws: int | None, again: tuple[Any, Any], progress: bool, workers: Any
) -> Result:
    """The walk of `extend`, for one target."""
    check_target(target)
    before, info, timer = result.continuation, result.info, Timer()
    if before.states is None:
        raise ThermoclineError(
            "the draws of this run came from a loop outside the library, which alone can go on: draw more there, and "
            "give all of them to `result` of tc.extended(...) or of the kernel."
        )
    given = _again(again[0], before.method, "method"), prepared(_again(again[1], before.base, "base"))
    if isinstance(before.tuning, storage.Opaque):
        raise ThermoclineError(
            "this run used a law of beta that is the user's own class, so a loaded copy cannot go on; "
            "extend the result in the session that made it."
        )
    num_chains, num_before = result.draws.log_ratio.shape
    seed, precision = info.seed, info.precision
    with Guarded(), computing_in(precision), on_workers(workers) as runner, watched(reporter_for(progress)) as reporter:
        target, (chosen, normalised), tuning, states = cast((target, given, before.tuning, before.states), precision)
        path = Path(target, normalised, jnp.asarray(result.log_zeta, precision))
        check_same_run(info.fingerprint, run_fingerprint(Paths.of_one(path), chosen, seed, num_chains, precision))
        of_one = jax.tree.map(lambda leaf: leaf[None], (result.draws, to_numpy(tuning), states))
        whole = _as_batch(seed, path, before.num_steps, *of_one)
        whole = go_on(seed, chosen, whole, num_before if num_draws is None else num_draws, reporter, runner)
        explored = Exploration(path, whole.outcomes.one(0), result.base_draws, result.log_support)
        modes, evaluate = result.mode_table, Evaluator(target, precision, runner=runner)
        if modes is not None:
            reporter.phase("table of modes", None)
            with timer.timing("modes"):
                modes = table_of_modes_again(seed, evaluate, modes, explored, reporter)
        before_it = replace(info.cost.evaluations, sampling=0)  # draws of before are counted with those of now
        around = Cost(info.cost.seconds + timer.seconds, before_it + Phases(modes=evaluate.num_rows))
        began = timer.began - info.cost.seconds.total
        longer = assemble(explored, chosen, seed, precision, modes, notes=info.notes, around=around, began=began)
        return replace(longer, prior_parameters=result.prior_parameters, predictive=predictive(target, longer))


def _as_batch(seed: int, path: Path, num_steps: int, draws: Draws, tuning: Any, states: Any) -> Explorations:
    """A finished run of one target as a batch of one, whose cost is counted elsewhere."""
    none, drawn = np.zeros(1, int), Drawn(Blocks(1, 1), [[Chunk.of(draws, np.ones(1, bool))]])
    outcomes = Outcomes(drawn, tuning, states, none + num_steps, Phases(), none)
    return Explorations(Paths.of_one(path), np.array([seed], np.uint32), outcomes, none, np.zeros((1, 2), int))


def base_for(
    evaluate: Evaluator,
    base: Any,
    seed: int,
    target_error: float,
    reporter: Reporter,
    checkpoint: str | os.PathLike[str] | None = None,
    limits: dict[str, Any] | None = None,
) -> BaseFit:
    """The base that was given, or one that is looked for, in the evaluator's precision and checked."""
    target, precision = replace(evaluate.target, known_modes=None), evaluate.precision  # known modes are of the search
    if base is None:
        decides = {"seed": seed, "precision": precision, "target error": target_error, **(limits or {})}
        searches = Searches(checkpoint, evaluate.target, target.data, **decides)
        (fit,) = searches.all(lambda _: iter([find_base(evaluate, seed, target_error, reporter)]), 1)
        evaluate.count(int(fit.num_gradients) - evaluate.num_rows)  # of one that was kept, as if made now
    else:
        fit = resolve_base(target, base, seed, precision)
    fit = fit._replace(base=cast(fit.base, precision))
    check_base(fit.base, target.initial_position)
    return fit


def _again(given: Any, stored: Any, name: str) -> Any:
    if given is None and isinstance(stored, storage.Opaque):
        raise ThermoclineError(
            f"the {name} ({stored.description}) held functions, which are not stored; pass `{name}=` again."
        )
    return stored if given is None else given
