"""`sample`: from a target to a Result in one call; and `extend`, more of the same."""

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any

import jax.numpy as jnp
import numpy as np

from thermocline.auto.black_box import find_base
from thermocline.auto.mode_masses import table_of_modes, table_of_modes_again
from thermocline.bases import BaseFit, NormalisedDensity, check_base
from thermocline.engine.checkpoint import Checkpoint, check_folder
from thermocline.engine.explore import Exploration, Lengths, explore, keys_of
from thermocline.engine.loop import Timer, run
from thermocline.engine.plan import RunPlan
from thermocline.engine.prepare import prepared, resolve_base
from thermocline.engine.progress import reporter_for
from thermocline.estimators import log_evidence
from thermocline.estimators.convergence import APPRECIABLE, round_trips, sojourns
from thermocline.estimators.stages import has_stages
from thermocline.evaluator import Evaluator
from thermocline.methods import GibbsTempering, Method, Temperatures, check_method
from thermocline.paths import Path
from thermocline.records import Cost, Draws, Estimate, Phases
from thermocline.results import storage
from thermocline.results.assemble import assemble, check_same_run, run_fingerprint
from thermocline.results.result import Result
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import cast, computing_in
from thermocline.target import Target, check_target

TARGET_ERROR = 0.05  # of log Z, where neither an error nor a number of draws is asked for
MOST_DRAWS = 2**14  # a chain, for such a run
FEWEST_ROUND_TRIPS = 40  # before a stopping rule may end a run
MANY_STAYS, FEWEST_STAYS = 100, 5  # likewise, where the base is thin; the latter for a run of a fair length
FAIR_LENGTH = 4000  # draws a chain


def sample(
    target: Target,
    *,
    seed: int = 0,
    base: NormalisedDensity | BaseFit | Callable[..., BaseFit] | None = None,
    method: Method | None = None,
    num_chains: int = 16,
    num_warmup: int = 1000,
    num_draws: int | None = None,
    target_error: float | None = None,
    progress: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    search: bool = True,
    precision: str = "float64",
    chunk_size: int | None = None,
) -> Result:
    """Sample `target` through a path from a base, and estimate its log evidence.

    Without a `base`, `fit_auto` finds one. `num_draws` a chain fixes the work; with `target_error`, sampling doubles
    until the standard error of log Z is below it, which is what happens, with 0.05, when neither is given. With
    `checkpoint`, a folder, the same call resumes a run that was cut off. `search=False` leaves out the table of modes,
    and so all checks of them. `chunk_size` bounds the steps between looks at the progress and changes no draw.
    """
    chosen = GibbsTempering() if method is None else method
    _check_kinds(target, chosen)
    lengths = _lengths(chosen, num_chains, num_warmup, num_draws, target_error)
    _check_options(seed, lengths, target_error, chunk_size)
    if checkpoint is not None:
        check_folder(checkpoint)
    with computing_in(precision), closing(reporter_for(progress)) as reporter:
        target, chosen = cast((target, chosen), precision)
        check_target(target)
        timer, evaluate = Timer(), Evaluator(target, precision)
        target = replace(target, known_modes=None)  # of the search alone
        with timer.timing("base"):
            fit = (
                find_base(evaluate, seed, target_error or TARGET_ERROR, reporter)
                if base is None
                else resolve_base(target, base, seed, precision)
            )
        fit = fit._replace(base=cast(fit.base, precision))
        check_base(fit.base, target.initial_position)

        def stored(path: Path) -> Checkpoint | None:
            marks = run_fingerprint(path, chosen, seed, num_chains, precision).marks()
            marks |= {"run length": f"{num_warmup}, {num_draws}, {target_error}"}
            return None if checkpoint is None else Checkpoint(checkpoint, marks)

        explored = explore(
            seed, target, fit.base, fit.log_zeta, chosen, lengths, reporter, checkpoint=stored, chunk_size=chunk_size
        )
        modes, num_before = None, evaluate.num_rows
        if search:
            reporter.phase("table of modes", None)
            with timer.timing("modes"):
                modes = table_of_modes(seed, evaluate, fit, explored, reporter)
        spent = Phases(base=int(fit.num_gradients), modes=evaluate.num_rows - num_before)
        around = Cost(timer.seconds, spent)
        return assemble(explored, chosen, seed, precision, modes, story=fit.story, around=around)


def _lengths(
    method: Method, num_chains: int, num_warmup: int, num_draws: int | None, target_error: float | None
) -> Lengths:
    """Draws a chain, or a rule that ends the run; a method without evidence has no error to stop by."""
    if target_error is not None and not method.has_evidence:
        raise ThermoclineError("target_error is of the log evidence, which this method cannot give; set num_draws.")
    if method.has_evidence and num_draws is None and target_error is None:
        target_error = TARGET_ERROR
    first = method.first_draws if num_draws is None else num_draws
    needs_trips = method.temperatures is Temperatures.LAW
    rule = None if target_error is None else partial(_is_accurate, target_error, needs_trips)
    return Lengths(num_chains, num_warmup, first, MOST_DRAWS, rule)


def extend(
    result: Result,
    target: Target,
    *,
    num_draws: int | None = None,
    base: NormalisedDensity | None = None,
    method: Method | None = None,
    progress: bool = True,
) -> Result:
    """Go on with a finished run: the same chains, `num_draws` more each (by default as many as there are).

    The draws are those that a longer run would have had. A loaded result whose base or method held the
    user's own functions needs them again, as `base=` and `method=`.
    """
    before, info = result.continuation, result.info
    given = _again(method, before.method, "method"), prepared(_again(base, before.base, "base"))
    if isinstance(before.tuning, storage.Opaque):
        raise ThermoclineError(
            "this run used a law of beta that is the user's own class, so a loaded copy cannot go on; "
            "extend the result in the session that made it."
        )
    num_chains, num_before = result.draws.log_ratio.shape
    seed, precision = info.seed, info.precision
    with computing_in(precision), closing(reporter_for(progress)) as reporter:
        target, (chosen, normalised), tuning, states = cast((target, given, before.tuning, before.states), precision)
        path = Path(target, normalised, jnp.asarray(result.log_zeta, precision))
        check_same_run(info.fingerprint, run_fingerprint(path, chosen, seed, num_chains, precision))
        num_more = num_before if num_draws is None else num_draws
        outcome = run(
            keys_of(seed)[2],
            chosen,
            path,
            tuning,
            states,
            RunPlan(0, num_more, num_more),
            first_step=before.num_steps,
            num_kept=8,
            checkpoint=None,
            reporter=reporter,
        )
        both = Draws(*(np.concatenate(pair, axis=1) for pair in zip(result.draws, outcome.draws, strict=True)))
        explored = Exploration(path, outcome._replace(draws=both), result.base_draws, result.log_support)
        modes, timer, evaluate = result.mode_table, Timer(), Evaluator(target, precision)
        if modes is not None:
            reporter.phase("table of modes", None)
            with timer.timing("modes"):
                modes = table_of_modes_again(seed, evaluate, modes, explored, reporter)
        before_it = replace(info.cost.evaluations, sampling=0)  # draws of before are counted with those of now
        around = Cost(info.cost.seconds + timer.seconds, before_it + Phases(modes=evaluate.num_rows))
        return assemble(explored, chosen, seed, precision, modes, story=info.story, around=around)


def _check_kinds(target: Any, method: Any) -> None:
    if not isinstance(target, Target):
        raise ThermoclineError(
            f"the target is of type {type(target).__name__}; give tc.Target(log_density, initial_position)."
        )
    check_method(method)


def _check_options(seed: int, lengths: Lengths, target_error: float | None, chunk_size: int | None) -> None:
    if not (isinstance(seed, int | np.integer) and 0 <= seed < 2**32):
        raise ThermoclineError(f"seed is {seed!r}; give an integer from 0 to 2**32 - 1.")
    for name, least in (("num_chains", 1), ("num_warmup", 0), ("num_draws", 4)):
        value = getattr(lengths, name)
        if not isinstance(value, int | np.integer) or value < least:
            raise ThermoclineError(f"{name} is {value!r}; give an integer of at least {least}.")
    if target_error is not None and not (isinstance(target_error, Real) and target_error > 0):
        raise ThermoclineError(f"target_error is {target_error!r}; give a positive standard error of log Z, or None.")
    if chunk_size is not None and not (isinstance(chunk_size, int | np.integer) and chunk_size >= 1):
        raise ThermoclineError(f"chunk_size is {chunk_size!r}; give a positive number of steps, or None.")


def _is_accurate(target_error: float, needs_trips: bool, log_zeta: float, log_support: Estimate, draws: Draws) -> bool:
    """The stopping rule: an error below the wanted one, resting on enough round trips and stays to be known.

    Where the base is thin the longest stays hold most of the weight. A short run that has met none of them has a small
    error and is low (docs/choosing.md).
    """
    if (needs_trips or has_stages(draws)) and round_trips(draws).sum() < FEWEST_ROUND_TRIPS:
        return False
    estimate = log_evidence(draws, log_zeta, log_support)
    if estimate.standard_error > target_error:
        return False
    share, number = sojourns(draws, estimate.value - log_zeta) if needs_trips else (0.0, 0.0)
    is_fair = draws.log_ratio.shape[1] >= FAIR_LENGTH and number >= FEWEST_STAYS
    return share < APPRECIABLE or number >= MANY_STAYS or is_fair


def _again(given: Any, stored: Any, name: str) -> Any:
    if given is None and isinstance(stored, storage.Opaque):
        raise ThermoclineError(
            f"the {name} ({stored.description}) held functions, which are not stored; pass `{name}=` again."
        )
    return stored if given is None else given
