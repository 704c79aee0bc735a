"""`sample`: from a target and a base to a Result in one call; and `extend`, more of the same."""

import os
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from thermocline import storage
from thermocline.assemble import assemble, check_same_run, run_fingerprint
from thermocline.bases import BaseFit, NormalisedDensity, check_base, initial_scale
from thermocline.checkpoint import Checkpoint
from thermocline.draws import Draws
from thermocline.errors import ThermoclineError
from thermocline.estimators import Estimate, log_evidence
from thermocline.estimators.convergence import round_trips
from thermocline.methods import GibbsTempering, Method
from thermocline.paths import Path
from thermocline.precision import cast, computing_in
from thermocline.prepare import CERTAIN, prepare, resolve_base, starts
from thermocline.program import first_tuning, start
from thermocline.progress import reporter_for
from thermocline.result import Result
from thermocline.run import run
from thermocline.schedule import Schedule
from thermocline.target import Target, check_target

NUM_KEPT = 1024  # draws of a warm-up round that adaptation sees, over all chains
MOST_DRAWS = 2**17  # a chain, for a run that stops by its error
FEWEST_ROUND_TRIPS = 40  # before a stopping rule may end a run


def sample(
    target: Target,
    *,
    seed: int = 0,
    base: NormalisedDensity | BaseFit | Callable[..., BaseFit] | None = None,
    method: Method | None = None,
    num_chains: int = 16,
    num_warmup: int = 1000,
    num_draws: int = 1000,
    target_error: float | None = None,
    progress: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    precision: str = "float64",
    chunk_size: int | None = None,
) -> Result:
    """Sample `target` through a path from `base`, and estimate its log evidence.

    With `target_error` set, sampling doubles until the standard error of log Z is below it. With
    `checkpoint`, a folder, the same call resumes a run that was cut off. `chunk_size` bounds the steps
    between looks at the progress and changes no draw.
    """
    _check_options(seed, num_chains, num_warmup, num_draws, target_error, chunk_size)
    with computing_in(precision):
        target, chosen = cast((target, GibbsTempering() if method is None else method), precision)
        check_target(target)
        normalised, log_zeta = resolve_base(target, base, seed, precision)
        check_base(normalised, target.initial_position)
        key_base, key_start, key_run = _keys(seed)
        path, base_draws, log_support = prepare(key_base, target, normalised, log_zeta, precision)
        scale = initial_scale(normalised, base_draws.position)
        tuning, visits_base = first_tuning(chosen, scale, base_draws.log_ratio)
        states = start(key_start, chosen, path, tuning, starts(base_draws, num_chains))
        if tuning.law is None and target_error is not None:
            raise ThermoclineError("target_error is of the log evidence, which this method cannot give; set num_draws.")
        log_support = CERTAIN if visits_base else log_support
        stop = None if target_error is None else partial(_is_accurate, target_error, float(path.log_zeta), log_support)
        schedule = Schedule(num_warmup, num_draws, num_draws if stop is None else MOST_DRAWS, stop)
        marks = run_fingerprint(path, chosen, seed, num_chains, precision)
        marks |= {"run length": f"{num_warmup}, {num_draws}, {target_error}"}
        outcome = run(
            key_run,
            chosen,
            path,
            tuning,
            states,
            schedule,
            num_kept=max(NUM_KEPT // num_chains, 8),
            checkpoint=None if checkpoint is None else Checkpoint(checkpoint, marks),
            reporter=reporter_for(progress),
            chunk_size=chunk_size,
        )
        return assemble(path, chosen, outcome, base_draws, log_support, seed, precision)


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
    went, info = result.continuation, result.info
    given = _again(method, went.method, "method"), _again(base, went.base, "base")
    if isinstance(went.tuning, storage.Opaque):
        raise ThermoclineError(
            "this run used a law of beta that is the user's own class, so a loaded copy cannot go on; "
            "extend the result in the session that made it."
        )
    num_chains, num_before = result.draws.log_ratio.shape
    seed, precision = info["seed"], info["precision"]
    with computing_in(precision):
        target, (chosen, normalised), tuning, states = cast((target, given, went.tuning, went.states), precision)
        path = Path(target, normalised, jnp.asarray(result.log_zeta, precision))
        check_same_run(info["fingerprint"], run_fingerprint(path, chosen, seed, num_chains, precision))
        num_more = num_before if num_draws is None else num_draws
        outcome = run(
            _keys(seed)[2],
            chosen,
            path,
            tuning,
            states,
            Schedule(0, num_more, num_more),
            first_step=went.num_steps,
            num_kept=8,
            checkpoint=None,
            reporter=reporter_for(progress),
        )
        both = Draws(*(np.concatenate(pair, axis=1) for pair in zip(result.draws, outcome.draws, strict=True)))
        seconds = {name: info["seconds"][name] + outcome.seconds[name] for name in outcome.seconds}
        outcome = outcome._replace(draws=both, seconds=seconds, warmup_gradients=info["warmup_gradients"])
        return assemble(path, chosen, outcome, result.base_draws, result.log_support, seed, precision)


def _keys(seed: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """For the base's draws, for the chains' starts and for their steps."""
    first, second, third = jax.random.split(jax.random.key(seed), 3)
    return first, second, third


def _check_options(
    seed: int, num_chains: int, num_warmup: int, num_draws: int, target_error: float | None, chunk_size: int | None
) -> None:
    if not (isinstance(seed, int | np.integer) and 0 <= seed < 2**32):
        raise ThermoclineError(f"seed is {seed!r}; give an integer from 0 to 2**32 - 1.")
    counts = (("num_chains", num_chains, 1), ("num_warmup", num_warmup, 0), ("num_draws", num_draws, 4))
    for name, value, least in counts:
        if not isinstance(value, int | np.integer) or value < least:
            raise ThermoclineError(f"{name} is {value!r}; give an integer of at least {least}.")
    if target_error is not None and not (isinstance(target_error, Real) and target_error > 0):
        raise ThermoclineError(f"target_error is {target_error!r}; give a positive standard error of log Z, or None.")
    if chunk_size is not None and not (isinstance(chunk_size, int | np.integer) and chunk_size >= 1):
        raise ThermoclineError(f"chunk_size is {chunk_size!r}; give a positive number of steps, or None.")


def _is_accurate(target_error: float, log_zeta: float, log_support: Estimate, draws: Draws) -> bool:
    """The stopping rule: an error below the wanted one, resting on enough round trips to be known."""
    if round_trips(draws).sum() < FEWEST_ROUND_TRIPS:
        return False
    return log_evidence(draws, log_zeta, log_support).standard_error <= target_error


def _again(given: Any, stored: Any, name: str) -> Any:
    if given is None and isinstance(stored, storage.Opaque):
        raise ThermoclineError(
            f"the {name} ({stored.description}) held functions, which are not stored; pass `{name}=` again."
        )
    return stored if given is None else given
