"""What the user gives, checked: a base of one target or of each of many, and data with a leading axis over targets."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.bases import Base, BaseFit, check_base
from thermocline.bases.base import check_scales
from thermocline.engine.batch import Paths, at
from thermocline.paths import Path
from thermocline.support.errors import ThermoclineError, brief, cause_of, reason
from thermocline.support.precision import cast, to_numpy
from thermocline.target import Target, named_leaves


def resolve_base(target: Target, base: Any, seed: int, precision: str) -> BaseFit:
    """The base as a fit; one that is a function of the target is run here. Log zeta is NaN where nobody knows it."""
    if callable(base) and not hasattr(base, "log_density"):
        base = of_function(base, target, seed)
    fit = as_fit(base)
    if not (np.ndim(fit.log_zeta) == 0 and np.asarray(fit.log_zeta).dtype.kind in "iuf"):
        raise ThermoclineError(f"log_zeta of the base is {brief(fit.log_zeta)}; give a number, or NaN if unknown.")
    if not hasattr(fit.base, "log_density") or isinstance(fit.base, type):
        raise ThermoclineError(
            f"the base has no `log_density`: it is of type {type(fit.base).__name__}; give tc.Gaussian(...), "
            "tc.Base(log_density, sample), or a fit such as tc.fit_laplace."
        )
    check_scales(fit.base)
    return fit._replace(base=cast(prepared(fit.base), precision))


def of_function(function: Callable[..., Any], target: Target, seed: int) -> Any:
    """The base that a function makes of a target; one that raises is named."""
    try:
        return function(target, seed=seed)
    except ThermoclineError:
        raise
    except Exception as error:
        raise ThermoclineError(
            f"the base's function {brief(function)} failed: {reason(error)}. It is called as base(target, seed=seed)."
        ) from error


def as_fit(base: Any) -> BaseFit:
    """A base with its log zeta, NaN where nobody knows it."""
    fit = base if isinstance(base, BaseFit) else BaseFit(base, np.nan)
    density = fit.base
    is_leaf = jax.tree_util.treedef_is_leaf(jax.tree.structure(density))
    if is_leaf and hasattr(density, "log_density") and hasattr(density, "sample"):
        return fit._replace(base=Base(density.log_density, density.sample))  # a class that JAX does not know
    return fit


def prepared(base: Any, *namespace: Any) -> Any:
    """A base with all that its density needs at hand, which otherwise every evaluation would find anew."""
    return base.prepared(*namespace) if hasattr(base, "prepared") else base


def paths_from(base: Any, target: Target, data: Any, size: int, precision: str) -> Paths:
    """The path of every target, from whatever base the user gave.

    A function of the datum is computed for `size` of them at a time, as width changes rounding.
    """
    position, number = target.initial_position, len(jax.tree.leaves(data)[0])
    if not callable(base) or hasattr(base, "log_density"):
        bases, log_zeta, is_shared = _stacked_or_shared(base, position, number, size, precision)
    else:

        def of_datum(datum: Any) -> tuple[Any, jax.Array]:
            fit = as_fit(base(datum))
            return prepared(fit.base, jnp), jnp.asarray(fit.log_zeta, precision)

        check_encoder(of_datum, at(data, 0), position)
        (bases, log_zeta), is_shared = in_groups(of_datum, data, size, precision), False
    return Paths(Path(stacked_target(target, data), bases, log_zeta), is_shared)


def in_groups(function: Callable[[Any], Any], stacked: Any, size: int, precision: str) -> Any:
    """The function of every target's part of a tree; the first fill up the last group."""
    program, number = jax.jit(jax.vmap(function)), len(jax.tree.leaves(stacked)[0])
    groups = [np.arange(first, first + size) % number for first in range(0, number, size)]
    parts = [to_numpy(cast(program(at(stacked, group)), precision)) for group in groups]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:number], *parts)


def check_encoder(of_datum: Callable[[Any], tuple[Any, jax.Array]], datum: Any, position: Any) -> None:
    """Raise with the reason when a function of the datum gives no base of the target's shape."""
    try:
        base, log_zeta = jax.eval_shape(of_datum, datum)
    except Exception as error:  # noqa: BLE001 - whatever the user's code says
        raise ThermoclineError(
            f"base(datum) failed for target 0: {cause_of(error)} It is traced by "
            "JAX with the data of one target, and must return a base whose arrays are leaves, such as "
            "tc.Gaussian(mean, scale_tril). A fit of a whole target is no function of a datum; wrap it in one."
        ) from None
    if log_zeta.shape != ():
        raise ThermoclineError(f"base(datum) returns log_zeta of shape {log_zeta.shape} for target 0; give one number.")
    base = jax.tree.map(lambda leaf: jnp.ones(leaf.shape, leaf.dtype), base)
    try:
        check_base(base, position)
        base.log_density(base.sample(jax.random.key(0)))  # finds tracers where shapes alone do not
    except ThermoclineError as error:
        raise ThermoclineError(f"base(datum) is wrong for target 0, and so for every target: {error}") from error
    except jax.errors.UnexpectedTracerError as error:
        raise ThermoclineError(
            "base(datum) returns functions that hold on to the datum; the arrays of a base must be its leaves: give "
            "them to tc.Base's functions with jax.tree_util.Partial, or return tc.Gaussian."
        ) from error


def _stacked_or_shared(base: Any, position: Any, number: int, size: int, precision: str) -> tuple[Any, Any, bool]:
    """One base for all, or one whose leaves have a leading axis over targets: the shape of its draws tells which.

    With log zeta of each, NaN where nobody knows it.
    """
    fit = as_fit(base)
    if not hasattr(fit.base, "log_density"):
        raise ThermoclineError(
            f"base is {fit.base!r}, which has no `log_density`; give a function of the datum that returns a base, a "
            "base whose arrays have a leading axis over targets, or one base for all."
        )
    density, log_zeta = cast((fit.base, np.asarray(fit.log_zeta, float)), precision)
    if log_zeta.shape not in ((), (number,)):
        raise ThermoclineError(
            f"log_zeta has shape {log_zeta.shape}; give a number, or one for each of {number} targets."
        )
    log_zeta = np.broadcast_to(log_zeta, (number,))
    try:
        check_base(density, position)
        return to_numpy(prepared(density, jnp)), log_zeta, True
    except ThermoclineError as error:
        lengths = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(density)}
        if lengths != {(number,)}:
            raise ThermoclineError(
                f"{error} (Nor has it one for each of {number} targets: its arrays' leading axes are "
                f"{', '.join(str(length[0]) if length else 'none' for length in sorted(lengths)) or 'none'}.)"
            ) from error
    try:
        check_base(at(density, 0), position)
        check_scales(at(density, 0))
    except ThermoclineError as error:
        raise ThermoclineError(f"the base is wrong for target 0, and so for every target: {error}") from error
    return in_groups(lambda one: prepared(one, jnp), density, size, precision), log_zeta, False


def num_targets(data: Any) -> int:
    """The length of the leading axis that all leaves share."""
    leaves = named_leaves(data)
    for name, leaf in leaves.items():
        if np.ndim(leaf) == 0:
            raise ThermoclineError(
                f"data {name} is a single number, without a leading axis over targets; repeat it for every target, "
                "or let log_density hold what all of them share."
            )
    lengths = {name: len(leaf) for name, leaf in leaves.items()}
    if len(set(lengths.values())) > 1:
        described = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ThermoclineError(
            f"data have leading axes of different lengths ({described}): one datum a target is needed."
        )
    if not any(lengths.values()):
        raise ThermoclineError("the data are empty; give a PyTree whose leaves have a leading axis over targets.")
    return max(lengths.values())


def seeds_of(seed: int, index: np.ndarray) -> np.ndarray:
    """A seed for each target: the first has the call's, so that alone it is `tc.sample`'s run; the others follow a
    place that the call's seed decides, so that calls with other seeds share none.
    """
    first = int(np.random.SeedSequence(int(seed)).generate_state(1)[0])
    return np.where(index == 0, seed, (first + index.astype(np.uint64)) % 2**32).astype(np.uint32)


def stacked_target(target: Target, data: Any) -> Target:
    """The target with a leading axis over all data; what a search starts from is not needed any more."""
    number = len(jax.tree.leaves(data)[0])
    everywhere = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (number, *np.shape(leaf))), target.initial_position)
    return replace(target, initial_position=everywhere, data=data, prior=None)
