"""`sample`: from a target and a base to a Result in one call; and `extend`, more of the same."""

import os
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

import jax
import numpy as np

from thermocline import fingerprint, storage
from thermocline.bases import BaseFit, NormalisedDensity, check_base, fresh_draws, initial_scale
from thermocline.checkpoint import Checkpoint
from thermocline.draws import Draws
from thermocline.errors import ThermoclineError
from thermocline.estimators import Estimate, log_evidence
from thermocline.estimators.convergence import round_trips
from thermocline.methods import GibbsTempering, Method
from thermocline.paths import Path
from thermocline.precision import cast, computing_in, to_numpy
from thermocline.progress import reporter_for
from thermocline.result import BaseDraws, Continuation, Result
from thermocline.run import Outcome, Schedule, chain_mesh, run, start
from thermocline.target import Target, check_target, describe, leaf_name

NUM_BASE_DRAWS = 2048
NUM_SUPPORT_DRAWS = 2**16  # once some fall off the target's support
NUM_KEPT = 1024  # draws of a warm-up round that adaptation sees, over all chains
MOST_DRAWS = 2**17
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
    method = GibbsTempering() if method is None else method
    with computing_in(precision):
        target, method = cast((target, method), precision)
        check_target(target)
        base, log_zeta = _resolve_base(target, base, seed, precision)
        check_base(base, target.initial_position)
        key_base, key_start, key_run = jax.random.split(jax.random.key(seed), 3)
        path, base_draws, log_support = _prepare(key_base, target, base, log_zeta, precision)
        num_kept = max(NUM_KEPT // num_chains, 8)
        scale = initial_scale(base, base_draws.position)
        tuning = cast(method.initial_tuning(scale, base_draws.log_ratio), precision)
        states = start(key_start, method, path, tuning, _starts(base_draws, num_chains))
        if tuning.law is not None and np.isfinite(tuning.law.log_mass(jax.numpy.asarray(-np.inf))):
            log_support = Estimate(0.0, 0.0, np.inf)  # this law visits beta = 0 itself, off the support too
        stop = None if target_error is None else partial(_is_accurate, target_error, float(path.log_zeta), log_support)
        store = None if checkpoint is None else Checkpoint(checkpoint, _fingerprint(path, method, seed, num_chains, precision, (
            num_warmup, num_draws, target_error)))
        reporter = reporter_for(progress)
        try:
            outcome = run(key_run, method, path, tuning, states,
                          Schedule(num_warmup, num_draws, MOST_DRAWS if stop else num_draws, stop),
                          num_kept=num_kept, checkpoint=store, reporter=reporter, chunk_size=chunk_size)
        finally:
            reporter.close()
        info = _info(path, method, seed, precision, outcome, num_chains)
        return _result(path, method, outcome, base_draws, log_support, info)


def extend(result: Result, target: Target, *, num_draws: int | None = None, base: NormalisedDensity | None = None,
           method: Method | None = None, progress: bool = True) -> Result:
    """Go on with a finished run: the same chains, `num_draws` more each (by default as many as there are).

    The draws are those that a longer run would have had. A loaded result whose base or method held the
    user's own functions needs them again, as `base=` and `method=`.
    """
    went, info = result.continuation, result.info
    method, base = (_again(given, stored, name) for given, stored, name in
                    ((method, went.method, "method"), (base, went.base, "base")))
    num_draws = result.draws.log_ratio.shape[1] if num_draws is None else num_draws
    precision = info["precision"]
    with computing_in(precision):
        target, method, base, tuning, states = cast((target, method, base, went.tuning, went.states), precision)
        path = Path(target, base, jax.numpy.asarray(result.log_zeta, precision))
        if fingerprint.of_function(target, target.initial_position) != info["fingerprint"]["target"]:
            raise ThermoclineError("this target is not the one that was sampled: its density or its data differ.")
        _, _, key_run = jax.random.split(jax.random.key(info["seed"]), 3)
        reporter = reporter_for(progress)
        try:
            outcome = run(key_run, method, path, tuning, states, Schedule(0, num_draws, num_draws),
                          first_step=went.num_steps, num_kept=8, checkpoint=None, reporter=reporter)
        finally:
            reporter.close()
        both = Draws(*(np.concatenate(pair, axis=1) for pair in zip(result.draws, outcome.draws, strict=True)))
        seconds = {name: info["seconds"][name] + outcome.seconds[name] for name in outcome.seconds}
        outcome = outcome._replace(draws=both, seconds=seconds, warmup_gradients=info["warmup_gradients"])
        info = _info(path, method, info["seed"], precision, outcome, both.log_ratio.shape[0])
        return _result(path, method, outcome, result.base_draws, result.log_support, info)


def _check_options(seed: int, num_chains: int, num_warmup: int, num_draws: int, target_error: float | None,
                   chunk_size: int | None) -> None:
    if not (isinstance(seed, int | np.integer) and 0 <= seed < 2**32):
        raise ThermoclineError(f"seed is {seed!r}; give an integer from 0 to 2**32 - 1.")
    for name, value, least in (("num_chains", num_chains, 1), ("num_warmup", num_warmup, 0), ("num_draws", num_draws, 4)):
        if not isinstance(value, int | np.integer) or value < least:
            raise ThermoclineError(f"{name} is {value!r}; give an integer of at least {least}.")
    if target_error is not None and not target_error > 0:
        raise ThermoclineError(f"target_error is {target_error!r}; give a positive standard error of log Z, or None.")
    if chunk_size is not None and chunk_size < 1:
        raise ThermoclineError(f"chunk_size is {chunk_size!r}; give a positive number of steps, or None.")


def _resolve_base(target: Target, base: Any, seed: int, precision: str) -> tuple[NormalisedDensity, float | None]:
    """The base and, where one is known, log zeta."""
    if base is None:
        raise ThermoclineError("give a base: tc.Gaussian(mean, scale_tril), tc.Base(log_density, sample), or a fit.")
    if callable(base) and not hasattr(base, "log_density"):
        base = base(target, seed=seed)
    if isinstance(base, BaseFit):
        return cast(base.base, precision), float(base.log_zeta)
    return cast(base, precision), None


@partial(jax.jit, static_argnames="num_draws")
def _draw_base(key: jax.Array, path: Path, num_draws: int) -> tuple[jax.Array, jax.Array]:
    positions = fresh_draws(key, path.base, num_draws)
    return positions, jax.vmap(path.log_ratio)(positions)


def _prepare(key: jax.Array, target: Target, base: NormalisedDensity, log_zeta: float | None, precision: str
             ) -> tuple[Path, BaseDraws, Estimate]:
    """The path, fresh draws of its base, and the base's log mass on the target's support.

    Without a log zeta, that of importance sampling from the base is used: it need not be good.
    """
    path = Path(target, base, jax.numpy.asarray(0.0 if log_zeta is None else log_zeta, precision))
    positions, log_ratio = to_numpy(_draw_base(key, path, NUM_BASE_DRAWS))
    if np.isnan(log_ratio).any():
        where = path.unravel(jax.numpy.asarray(positions[np.flatnonzero(np.isnan(log_ratio))[0]]))
        raise ThermoclineError(f"log density is nan at a draw of the base ({describe(where)}); return -inf off the support.")
    supported = np.isfinite(log_ratio)
    if not supported.any():
        raise ThermoclineError(f"log density is -inf at all {NUM_BASE_DRAWS} draws of the base: it misses the target's support.")
    log_support = Estimate(0.0, 0.0, np.inf)
    if not supported.all():
        more = to_numpy(_draw_base(jax.random.fold_in(key, 1), path, NUM_SUPPORT_DRAWS))[1]
        share = float(np.mean(np.isfinite(np.concatenate([log_ratio, more]))))
        error = np.sqrt((1 - share) / share / (NUM_BASE_DRAWS + NUM_SUPPORT_DRAWS))
        log_support = Estimate(float(np.log(share)), float(error), np.inf)
    if log_zeta is None:
        log_zeta = float(np.logaddexp.reduce(log_ratio[supported]) - np.log(log_ratio.size))
        path, log_ratio = Path(target, base, jax.numpy.asarray(log_zeta, precision)), log_ratio - log_zeta
    moments = to_numpy(base.moments()) if hasattr(base, "moments") else (None, None)
    return path, BaseDraws(positions, log_ratio, *moments), log_support


def _starts(base_draws: BaseDraws, num_chains: int) -> np.ndarray:
    """Exact draws of the base on the target's support, one a chain."""
    supported = base_draws.position[np.isfinite(base_draws.log_ratio)]
    return supported[np.arange(num_chains) % len(supported)]


def _is_accurate(target_error: float, log_zeta: float, log_support: Estimate, draws: Draws) -> bool:
    """The stopping rule: an error below the wanted one, resting on enough round trips to be known."""
    trips = round_trips(draws).sum()
    return bool(trips >= FEWEST_ROUND_TRIPS and log_evidence(draws, log_zeta, log_support).standard_error <= target_error)


def _fingerprint(path: Path, method: Method, seed: int, num_chains: int, precision: str, lengths: Any = ()) -> dict[str, str]:
    position = path.target.initial_position
    return {
        "target": fingerprint.of_function(path.target, position),
        "data": fingerprint.of_arrays(path.target.data),
        "base": fingerprint.of_function(path.base.log_density, position),
        "method": fingerprint.of_arrays(method),
        "seed": str(seed),
        "number of chains": str(num_chains),
        "run length": str(lengths),
        "precision": precision,
        "number of devices": str(chain_mesh(num_chains).size),
        "version": version("thermocline"),
    }


def _info(path: Path, method: Method, seed: int, precision: str, outcome: Outcome, num_chains: int) -> dict[str, Any]:
    return {
        "seed": int(seed),
        "method": describe_method(method),
        "precision": precision,
        "fingerprint": _fingerprint(path, method, seed, num_chains, precision),
        "versions": {name: version(name) for name in ("thermocline", "jax", "numpy")},
        "seconds": outcome.seconds,
        "num_gradients": int(outcome.draws.num_gradients.sum()) + outcome.warmup_gradients,
        "warmup_gradients": outcome.warmup_gradients,
    }


def describe_method(method: Any) -> str:
    """A method and its parts by name, as one would write it."""
    parts = [type(part).__name__ for part in (getattr(method, "mover", None), getattr(method, "law", None)) if part is not None]
    return f"{type(method).__name__}({', '.join(parts)})"


def _result(path: Path, method: Method, outcome: Outcome, base_draws: BaseDraws, log_support: Estimate,
            info: dict[str, Any]) -> Result:
    @jax.jit
    def in_coordinates(target: Target, positions: jax.Array) -> tuple[Any, Any]:
        trees = jax.vmap(jax.vmap(path.unravel))(positions)
        shown = trees if target.constrain is None else jax.vmap(jax.vmap(target.constrain))(trees)
        return trees, shown

    trees, shown = in_coordinates(path.target, outcome.draws.position)
    unconstrained, parameters = _by_name(trees), _by_name(shown)
    continuation = Continuation(method, path.base, outcome.tuning, outcome.states, outcome.num_steps)
    return Result(outcome.draws, parameters, unconstrained, _template(shown), to_numpy(outcome.tuning.law),
                  float(path.log_zeta), log_support, base_draws, info, Continuation(*map(_detached, continuation)))


def _by_name(tree: Any) -> dict[str, np.ndarray]:
    return {leaf_name(path): np.asarray(leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def _template(tree: Any) -> Any:
    """The tree with names as leaves, where it is made of dicts, lists and tuples; else a flat dict."""
    named = jax.tree_util.tree_map_with_path(lambda path, _: leaf_name(path), tree)

    def is_plain(node: Any) -> bool:
        if isinstance(node, str):
            return True
        items = node.values() if type(node) is dict else node if type(node) in (list, tuple) else [None]
        return all(is_plain(item) for item in items)

    return named if is_plain(named) else {name: name for name in _by_name(tree)}


def _detached(part: Any) -> Any:
    return part if isinstance(part, int) else to_numpy(part)


def _again(given: Any, stored: Any, name: str) -> Any:
    if given is None and isinstance(stored, storage.Opaque):
        raise ThermoclineError(f"the {name} ({stored.description}) held functions, which are not stored; pass `{name}=` again.")
    return stored if given is None else given
