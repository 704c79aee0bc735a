"""The target: an unnormalised log density on an unconstrained PyTree."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.support.errors import ThermoclineError, brief, cause_of, reason
from thermocline.support.pytree import pytree, static
from thermocline.support.tables import Section, html_of


@dataclass(frozen=True)
class Labels:
    """Names of the axes of named parameters, and the values along them, as xarray has them."""

    dims: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)
    coords: Mapping[str, Sequence[Any]] = field(default_factory=dict, hash=False)


@pytree
class Target:
    """An unnormalised log density, with where it lives and what it is conditioned on.

    `log_density(position)`, or `log_density(position, data)` when `data` is given, returns
    one number. Data are leaves: two targets that differ in their data share one compiled
    program. `constrain(position)`, or `constrain(position, data)`, maps a position to what people
    want to see (a PyTree of named parameters); without it the position itself is shown.
    `known_modes` is a list of positions where modes are known or suspected; the search for modes starts there too.
    `factors(position)`, or `factors(position, data)`, gives arrays of log factors, which with the `prior` multiply to
    the density (but for a constant): one for each observation, say. `fit_ep` needs them.
    Front ends fill in the rest: sentences on why the evidence may not be the model's (`caveats`),
    axes of parameters (`labels`), which data are observations (`observed`), the log likelihood of
    each observation by name, the model's `name`, and `predict(key, position, data)`: by name, what was observed and
    new data drawn in its place. A density that is computed outside JAX states `host(rows, data)`: log densities and
    gradients of ravelled positions, one a row, in NumPy.
    """

    log_density: Callable[..., Any] = static()
    initial_position: Any
    data: Any = None
    constrain: Callable[..., Any] | None = static(default=None)
    prior: Any = None  # a base of the model's own, from which the search for modes may start
    caveats: tuple[str, ...] = static(default=())
    labels: Labels | None = static(default=None)
    observed: tuple[str, ...] = static(default=())  # which of the data are observations: what models must share
    log_likelihood: Callable[[Any, Any], dict[str, Any]] | None = static(default=None)  # of (position, data)
    host: Callable[[np.ndarray, Any], tuple[np.ndarray, np.ndarray]] | None = static(default=None)
    known_modes: Any = None
    name: str = static(default="")  # of the model, for people
    predict: Callable[[Any, Any, Any], dict[str, tuple[Any, Any]]] | None = static(default=None)
    factors: Callable[..., Any] | None = static(default=None)  # logs, as arrays, of all that multiplies the prior

    def __call__(self, position: Any) -> jax.Array:
        if self.data is None:
            return self.log_density(position)
        return self.log_density(position, self.data)

    def __repr__(self) -> str:
        return f"<Target of {'; '.join(f'{name} {value}' for name, value in self._described())}>"

    def _repr_html_(self) -> str:
        rows = [*self._described(), *(("caveat", caveat) for caveat in self.caveats)]
        return html_of(Section("Target", (), rows))

    def _described(self) -> list[tuple[str, str]]:
        data = "none" if self.data is None else shapes(self.data)
        prior = "none" if self.prior is None else type(self.prior).__name__
        return [("parameters", shapes(self.initial_position)), ("data", data), ("prior", prior)]

    def shown(self, position: Any) -> Any:
        """The position in the user's own coordinates."""
        if self.constrain is None:
            return position
        if self.data is not None and len(inspect.signature(self.constrain).parameters) > 1:
            return self.constrain(position, self.data)
        return self.constrain(position)

    def constrained(self, position: Any) -> dict[str, Any]:
        """The position as named parameters, in the user's own coordinates."""
        return named_leaves(self.shown(position))


def named_leaves(tree: Any) -> dict[str, Any]:
    """Leaves by name: a dict's keys joined by dots; a bare array is called `x`."""
    return {leaf_name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def shapes(tree: Any) -> str:
    """Names with their shapes."""
    return ", ".join(
        f"{name}{list(np.shape(leaf))}" if np.ndim(leaf) else name for name, leaf in named_leaves(tree).items()
    )


def leaf_name(path: Any) -> str:
    """What people call the leaf at a JAX key path."""
    parts = [str(getattr(entry, "key", getattr(entry, "name", getattr(entry, "idx", entry)))) for entry in path]
    return ".".join(parts) or "x"


def check_shapes(target: Target, where: str = "at the initial position") -> None:
    """Raise with the reason when the target is no function from its initial position to one number."""
    check_position(target.initial_position)
    try:
        shape = jax.eval_shape(target, target.initial_position)
    except Exception as error:  # noqa: BLE001 - whatever the user's code says
        raise ThermoclineError(_why_not_called(target, error, where)) from None
    if not hasattr(shape, "shape") or shape.shape != ():
        raise ThermoclineError(
            f"log_density returns {brief(shape)} where one number is needed; sum the log densities of the observations."
        )
    if not jnp.issubdtype(shape.dtype, jnp.floating):
        raise ThermoclineError(f"log_density returns values of type {shape.dtype}; return a float.")


def check_target(target: Any) -> None:
    """Raise with the reason when what is given is no target, or its parts are not what they stand for."""
    if not isinstance(target, Target):
        raise ThermoclineError(
            f"the target is of type {type(target).__name__}; give tc.Target(log_density, initial_position)."
        )
    for name in ("log_density", "constrain"):
        part = getattr(target, name)
        if not (callable(part) or (part is None and name == "constrain")):
            raise ThermoclineError(f"{name} of the target is {brief(part)}; give a function of a position.")
    check_position(target.initial_position)
    for name in ("data", "known_modes", "prior"):
        check_numbers(getattr(target, name), name)
    _check_of_front_ends(target)


def _check_of_front_ends(target: Target) -> None:
    """What front ends fill in, and people may too."""
    for name in ("log_likelihood", "host", "predict"):
        part = getattr(target, name)
        if not (part is None or callable(part)):
            raise ThermoclineError(f"{name} of the target is {brief(part)}; give a function, or None.")
    for name in ("caveats", "observed"):
        part = getattr(target, name)
        if not (isinstance(part, tuple) and all(isinstance(each, str) for each in part)):
            raise ThermoclineError(f"{name} of the target is {brief(part)}; give a tuple of strings.")
    unknown = sorted(set(target.observed) - set(target.data if isinstance(target.data, Mapping) else ()))
    if unknown:
        raise ThermoclineError(f"observed names {', '.join(unknown)}, which is not among the target's data by name.")
    if not (target.labels is None or isinstance(target.labels, Labels)):
        raise ThermoclineError(
            f"labels of the target is {brief(target.labels)}; give thermocline.target.Labels(dims, coords), or None."
        )
    if not isinstance(target.name, str):
        raise ThermoclineError(f"name of the target is {brief(target.name)}; give a string.")
    for name in ("log_density", "sample"):
        if target.prior is not None and not callable(getattr(target.prior, name, None)):
            raise ThermoclineError(
                f"prior of the target is {brief(target.prior)}, which has no `{name}`; give a base, as "
                "tc.Gaussian.diagonal(mean, deviation), or None."
            )


def check_numbers(tree: Any, name: str) -> None:
    """Leaves must be what JAX has arrays of."""
    try:
        leaves = named_leaves(tree)
    except (TypeError, ValueError) as error:
        raise ThermoclineError(f"{name} is {brief(tree)}, which JAX cannot take apart ({reason(error)}).") from error
    for leaf in leaves.values():
        if not hasattr(leaf, "aval") and np.asarray(leaf).dtype.kind not in "biufcV":
            raise ThermoclineError(f"{name} holds {brief(leaf)}, which is no array of numbers; give floats.")


def _why_not_called(target: Target, error: Exception, where: str) -> str:
    """What the user's density said, where it said it, and what it may want."""
    given = "log_density(position)" if target.data is None else "log_density(position, data)"
    said = f"{given} could not be called {where}: {cause_of(error)}"
    if isinstance(error, KeyError):
        among = f"parameters are {shapes(target.initial_position)}; data are {shapes(target.data) or 'none'}"
        return f"{said}, which is among neither: {among}."
    if "Tracer" in type(error).__name__:
        return f"{said} Write it with jax.numpy and jnp.where, or give a function of NumPy to tc.from_numpy."
    return said


def not_finite(values: dict[str, Any]) -> str:
    """A sentence on the first array that is NaN or infinite somewhere; empty where none is."""
    for name, value in values.items():
        array = np.asarray(value)
        if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
            places = np.argwhere(~np.isfinite(array))
            first = f", first at {places[0].tolist()}" if array.ndim else ""
            return (
                f"data {name} is NaN or infinite at {len(places)} of {array.size} places{first}; leave these "
                "observations out, or write them as parameters"
            )
    return ""


def data_of(target: Target) -> dict[str, Any]:
    """The data by name, and the arrays that the density takes from around it."""
    around = inspect.getclosurevars(target.log_density) if inspect.isfunction(target.log_density) else None
    outer = {} if around is None else {**around.globals, **around.nonlocals}
    arrays = {name: value for name, value in outer.items() if isinstance(value, np.ndarray | jax.Array)}
    return arrays | named_leaves(target.data)


def check_position(position: Any) -> None:
    """Parameters must exist, have names of their own, be floats and be finite."""
    check_numbers(position, "initial_position")
    leaves = named_leaves(position)
    if len(leaves) < len(jax.tree.leaves(position)):
        raise ThermoclineError(
            f"two parameters share a name among {', '.join(leaves)}: a nested name is joined by dots; "
            "rename one of them."
        )
    if sum(np.size(leaf) for leaf in leaves.values()) == 0:
        raise ThermoclineError("the model has no parameters: `initial_position` holds no numbers, nothing to sample.")
    for name, leaf in leaves.items():
        if not jnp.issubdtype(np.asarray(leaf).dtype, jnp.floating):
            raise ThermoclineError(
                f"parameter {name} is of type {np.asarray(leaf).dtype}; gradients need real parameters. "
                "Write it as a float, or sum a discrete latent out of the density."
            )
        if not np.all(np.isfinite(leaf)):
            raise ThermoclineError(f"parameter {name} is {np.asarray(leaf)} in `initial_position`; give finite values.")


def describe(position: Any, *, longest: int = 6) -> str:
    """A position in a few words, for messages."""
    parts = []
    for name, leaf in named_leaves(position).items():
        flat = np.ravel(np.asarray(leaf))
        shown = ", ".join(f"{value:.4g}" for value in flat[:longest]) + (", …" if flat.size > longest else "")
        parts.append(f"{name} = {shown}" if np.ndim(leaf) == 0 else f"{name} = [{shown}]")
    return "; ".join(parts)


def dimension(target: Target) -> int:
    """Number of unconstrained parameters."""
    return ravel_pytree(target.initial_position)[0].size
