"""From a finished run to a Result: draws in the user's coordinates, and what was run."""

import time
from dataclasses import replace
from datetime import datetime
from importlib.metadata import version
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.engine.batch import Paths
from thermocline.engine.explore import Exploration
from thermocline.engine.program import chain_mesh
from thermocline.estimators.chains import systematic_resample
from thermocline.methods import Method, describe_method, method_fingerprint
from thermocline.paths import as_stored
from thermocline.records import Cost, ModeTable, Phases, RunInfo
from thermocline.results import storage
from thermocline.results.continuation import Continuation
from thermocline.results.result import Result
from thermocline.support import fingerprint
from thermocline.support.errors import ThermoclineError
from thermocline.support.fingerprint import Fingerprint
from thermocline.support.flat import unravelled
from thermocline.support.precision import to_numpy
from thermocline.support.programs import jit_by
from thermocline.target import Labels, Target, leaf_name, named_leaves, shapes

NOTHING = Cost(Phases(), Phases())
MOST_NUMBERS = 2**23  # log likelihoods kept, over all draws and observations; longer runs are thinned evenly
AT_ONCE = 2**10  # draws at which they are computed


def run_fingerprint(paths: Paths, method: Method, seed: int, num_chains: int, precision: str) -> Fingerprint:
    """Short hashes of all that decides the draws; bases of many targets are known by their arrays."""
    path, position = paths.one(0), paths.one(0).target.initial_position
    if paths.is_single:
        draws = fingerprint.of_function(lambda: path.base.sample(jax.random.key(0)))
        base = fingerprint.of_function(path.base.log_density, position) + draws
        log_zeta, num_devices = repr(float(path.log_zeta)), chain_mesh(num_chains, path).size
    else:
        base, log_zeta = fingerprint.of_arrays(paths.path.base), fingerprint.of_arrays(paths.path.log_zeta)
        num_devices = jax.device_count()
    return Fingerprint(
        target=fingerprint.of_function(lambda target, position: target(position), path.target, position),
        data=fingerprint.of_arrays(paths.path.target.data),
        base=base,
        log_zeta=log_zeta,
        method=method_fingerprint(method),
        seed=str(seed),
        number_of_chains=str(num_chains),
        precision=precision,
        number_of_devices=str(num_devices),
        version=version("thermocline"),
    )


def check_same_run(stored: Fingerprint, given: Fingerprint) -> None:
    """Refuse to go on with another target, base or method."""
    for name in ("target", "data", "base", "method"):
        if getattr(stored, name) != getattr(given, name):
            what = "target: its data differ" if name == "data" else f"{name}: what it computes differs"
            raise ThermoclineError(f"this run cannot go on with another {what}.")


def assemble(
    exploration: Exploration,
    method: Method,
    seed: int,
    precision: str,
    modes: ModeTable | None,
    *,
    notes: tuple[str, ...],
    around: Cost = NOTHING,
    began: float | None = None,
    prior: np.ndarray | None = None,
) -> Result:
    """The Result of a finished run; `notes` says how the base was come by, `around` what was spent besides the run.

    With the time at which the call `began`, its cost is that of all of it. `prior` holds draws of the prior, ravelled,
    to be shown beside the posterior.
    """
    path, outcome, base_draws, log_support = exploration
    law = outcome.tuning.law
    num_chains, num_draws = outcome.draws.log_ratio.shape
    rows = np.concatenate([base_draws.position, outcome.draws.position.reshape(num_chains * num_draws, -1)])
    locations, prior = rows[:0] if modes is None else modes.location, rows[:0] if prior is None else prior
    num_base, num_rows, num_known = len(base_draws.position), len(rows), len(rows) + len(locations)
    pool = in_coordinates(path.target, np.concatenate([rows, locations, prior]))
    of_base, of_modes, of_prior = (
        jax.tree.map(lambda leaf: leaf[part], pool[1])  # noqa: B023
        for part in (slice(num_base), slice(num_rows, num_known), slice(num_known, None))
    )
    trees, shown = jax.tree.map(
        lambda leaf: leaf[num_base:num_rows].reshape(num_chains, num_draws, *leaf.shape[1:]), pool
    )
    evaluations = Phases(warmup=outcome.warmup_gradients, sampling=int(outcome.draws.num_gradients.sum()))
    info = RunInfo(
        seed=int(seed),
        method=describe_method(method),
        precision=precision,
        fingerprint=run_fingerprint(Paths.of_one(path), method, seed, num_chains, precision),
        versions={name: version(name) for name in ("thermocline", "jax", "numpy")},
        cost=Cost(outcome.seconds, evaluations) + around,
        notes=notes,
        caveats=path.target.caveats,
        biases=method.biases,
        has_evidence=method.has_evidence,
        labels=_plain_labels(path.target.labels),
        observations=of_observations(path.target),
        model=path.target.name or _called(path.target.log_density),
        data="" if path.target.data is None else shapes(path.target.data),
        date=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
    )
    continuation = Continuation(
        to_numpy(method), to_numpy(path.base), to_numpy(outcome.tuning), to_numpy(outcome.states), outcome.num_steps
    )
    result = Result(
        outcome.draws,
        named_leaves(shown),
        named_leaves(trees),
        _template(shown),
        None if law is None else as_stored(law),
        to_numpy(outcome.tuning.schedule),
        float(path.log_zeta),
        log_support,
        base_draws,
        info,
        continuation,
        modes,
        {} if modes is None else named_leaves(of_modes),
        base_parameters=named_leaves(of_base),
        prior_parameters=named_leaves(of_prior) if len(prior) else {},
    )
    log_likelihood, spent = pointwise(path.target, result), info.cost.seconds.total
    rest = 0.0 if began is None else max(time.monotonic() - began - spent, 0.0)
    info = replace(info, cost=info.cost + Cost(Phases(rest=rest), Phases()))
    return replace(result, log_likelihood=log_likelihood, info=info)


def _called(function: Any) -> str:
    """The name of a user's own function, where it says something."""
    name = getattr(function, "__name__", "")
    return "" if name in ("<lambda>", "log_density") or len(name) < 3 else name


def of_observations(target: Target) -> str:
    """Hash of the observations, whatever they are called, or of all data where the front end cannot tell them."""
    if not target.observed:
        return fingerprint.of_arrays(target.data)
    values = [np.asarray(target.data[name], float) for name in target.observed]
    return fingerprint.of_arrays(sorted(values, key=lambda array: (array.shape, array.tobytes())))


def _plain_labels(labels: Labels | None) -> Labels:
    """Dims and coords of parameters, as JSON has them."""
    if labels is None:
        return Labels()
    plain = lambda value: value if isinstance(value, str | int | float) else str(value)  # noqa: E731
    coords = {dim: [plain(np.asarray(value).tolist()) for value in values] for dim, values in labels.coords.items()}
    return Labels({name: list(dims) for name, dims in labels.dims.items()}, coords)


def in_coordinates(target: Target, positions: np.ndarray) -> tuple[Any, Any]:
    """Ravelled positions as PyTrees, unconstrained and as people see them; both are one without a `constrain`."""
    trees = unravelled(positions, target.initial_position)
    return trees, trees if target.constrain is None else to_numpy(_shown(target, trees))


@jit_by(lambda target, trees: target.constrain)
def _shown(target: Target, trees: Any) -> Any:
    return jax.vmap(target.shown)(trees)


def _template(tree: Any) -> Any:
    """The tree with names as leaves, where it is made of dicts, lists and tuples; else a flat dict."""
    named = jax.tree_util.tree_map_with_path(lambda path, _: leaf_name(path), tree)
    is_stored_whole = not storage.holds_opaque(storage.decode(storage.encode(named, {}), {}))
    return named if is_stored_whole else {name: name for name in named_leaves(tree)}


def resampled_in_order(result: Result, length: int | None = None) -> np.ndarray:
    """Indices (chain, draw) into the pool of draws, each as often as its weight says, in the order of drawing.

    In random order draws would look independent, and chains that disagree would look alike. Those of the base, the
    first of the pool, are dealt out evenly. -1, where a target could not be sampled and there are no weights.
    """
    (num_chains, num_draws), log_weight = result.draws.log_ratio.shape, result.log_weight
    shape = num_chains, num_draws if length is None else length
    if not np.isfinite(log_weight).any():
        return np.full(shape, -1)
    numbers = len(log_weight) - num_chains * num_draws, num_chains * num_draws
    order = np.argsort(np.concatenate([(np.arange(number) + 0.5) / number for number in numbers]), kind="stable")
    return order[np.sort(systematic_resample(log_weight[order], shape[0] * shape[1], seed=0))].reshape(shape)


def pointwise(target: Target, result: Result) -> dict[str, np.ndarray]:
    """Log likelihoods of single observations, which leave-one-out needs, where the front end has them.

    By name, (chain, draw, ...), at evenly spaced draws of the equally weighted posterior.
    """
    if target.log_likelihood is None:
        return {}
    index = resampled_in_order(result)
    positions = result.positions
    shapes = jax.eval_shape(_log_likelihoods, target, positions[:1])
    size = sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(shapes))
    index = index[:, :: -(-index.size * size // MOST_NUMBERS)]
    rows = np.resize(index.ravel(), -(-index.size // AT_ONCE) * AT_ONCE)  # one size, one program
    parts = [to_numpy(_log_likelihoods(target, positions[group])) for group in np.split(rows, len(rows) // AT_ONCE)]
    joined = {name: np.concatenate([part[name] for part in parts])[: index.size] for name in parts[0]}
    return {name: values.reshape(*index.shape, *values.shape[1:]) for name, values in joined.items()}


@jit_by(lambda target, positions: target.log_likelihood)
def _log_likelihoods(target: Target, positions: jax.Array) -> dict[str, Any]:
    log_likelihood, unravel = target.log_likelihood, ravel_pytree(target.initial_position)[1]
    assert log_likelihood is not None
    return jax.vmap(lambda position: log_likelihood(unravel(position), target.data))(positions)
