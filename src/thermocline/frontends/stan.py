"""Stan programs as targets: compiled here with what the httpstan wheel carries, or a BridgeStan model."""

import hashlib
import json
import os
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.frontends.common import first_position, off_support
from thermocline.frontends.host import call_host, differentiable, on_host, rowwise
from thermocline.frontends.stan_caveats import caveats_of
from thermocline.frontends.stan_library import Library, library_of, stanc
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import computing_in
from thermocline.target import Target

CANONICAL = "includes,strip-comments,deprecations,braces"
POINTWISE = "log_lik"  # the generated quantity that, by convention, holds pointwise log likelihoods
OfRows = Callable[[np.ndarray, Any], tuple[np.ndarray, np.ndarray]]  # log densities and gradients of (rows, data)


def from_stan(program: Any, data: Any = None) -> Target:
    """The target of a Stan program (text, or a path to a .stan file) with its data (a dict, or a path to JSON).

    The first call for a program compiles it, about half a minute; later ones find it in the user's cache. The density
    has the Jacobian and every constant, of `~` statements too. A BridgeStan `StanModel` may stand for both.
    """
    with computing_in("float64"):
        if hasattr(program, "log_density_gradient"):
            return _from_bridgestan(program)
        text, folder = _program(program)
        encoded = _json_of(data)
        name = "model.stan" if folder is None else Path(program).name
        canonical = stanc(text, folder, "--auto-format", "--canonicalize", CANONICAL, name=name)
        library = library_of(text, folder)
        key = int.from_bytes(hashlib.sha256(encoded.encode()).digest()[:8], "little")
        library.create(encoded, key)
        named = "" if folder is None else Path(program).stem
        return replace(_from_library(library, key, caveats_of(canonical, json.loads(encoded))), name=named)


class Layout(NamedTuple):
    """Where named arrays lie in a vector of scalars with Stan's dotted names, `theta.2.1`."""

    places: dict[str, np.ndarray]

    @classmethod
    def of(cls, names: list[str]) -> "Layout":
        found: dict[str, dict[tuple[int, ...], int]] = {}
        for place, name in enumerate(names):
            stem, *index = name.split(".")
            found.setdefault(stem, {})[tuple(int(part) - 1 for part in index)] = place
        places = {stem: np.zeros(np.max(list(own), axis=0).astype(int) + 1, int) for stem, own in found.items()}
        for stem, own in found.items():
            for index, place in own.items():
                places[stem][index] = place
        return cls(places)

    @property
    def size(self) -> int:
        return sum(place.size for place in self.places.values())

    def tree(self, vector: jax.Array) -> dict[str, jax.Array]:
        return {name: vector[place] for name, place in self.places.items()}

    def vector(self, tree: dict[str, jax.Array]) -> jax.Array:
        flat = jnp.concatenate([jnp.ravel(tree[name]) for name in self.places])
        return flat[np.argsort(np.concatenate([np.ravel(place) for place in self.places.values()]))]


def _from_library(library: Library, key: int, caveats: tuple[str, ...]) -> Target:
    """The target of one data set; the key that stands for it is its data."""
    unconstrained, constrained = (Layout.of(library.names(key, stage)) for stage in (False, True))

    def evaluate(vector: jax.Array, data: Any) -> tuple[jax.Array, jax.Array]:
        shapes = jax.ShapeDtypeStruct((), vector.dtype), jax.ShapeDtypeStruct(vector.shape, vector.dtype)
        call = jax.ffi.ffi_call(f"{library.name}_log_density", shapes, vmap_method="broadcast_all")
        value, gradient = call(data["data set"], vector)
        return value, gradient

    def written(position: Any, data: Any, is_pointwise: bool) -> dict[str, jax.Array]:
        vector = unconstrained.vector(position)
        shape = jax.ShapeDtypeStruct((constrained.size,), vector.dtype)
        call = jax.ffi.ffi_call(f"{library.name}_constrain", shape, vmap_method="broadcast_all")
        tree = constrained.tree(call(data["data set"], vector))
        return {name: leaf for name, leaf in tree.items() if (name == POINTWISE) == is_pointwise}

    def of_rows(rows: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
        return library.evaluate(rows, int.from_bytes(np.asarray(data["data set"]).tobytes(), "little"))

    data = {"data set": np.frombuffer(key.to_bytes(8, "little"), np.uint32)}
    return replace(
        _target(differentiable(evaluate), unconstrained, data),
        constrain=partial(written, is_pointwise=False),
        caveats=caveats,
        log_likelihood=partial(written, is_pointwise=True) if POINTWISE in constrained.places else None,
        host=_in_order(of_rows, unconstrained),
    )


def _in_order(of_rows: OfRows, layout: Layout) -> OfRows:
    """The same of rows as JAX ravels positions: by sorted names."""
    order = np.concatenate([np.ravel(layout.places[name]) for name in sorted(layout.places)])

    def host(rows: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
        values, gradients = of_rows(rows[:, np.argsort(order)], data)
        return off_support(values), gradients[:, order]

    return host


def _from_bridgestan(model: Any) -> Target:
    """The target of a BridgeStan model, which holds its own data; called on the host, one position at a time."""
    unconstrained = Layout.of(list(model.param_unc_names()))
    layout = Layout.of(list(model.param_names(include_tp=True, include_gq=True)))

    @rowwise
    def both(vector: np.ndarray) -> np.ndarray:
        try:
            value, gradient = model.log_density_gradient(vector, propto=False, jacobian=True)
        except RuntimeError:  # how BridgeStan says that Stan rejects the position
            value, gradient = -np.inf, np.zeros_like(vector)
        return np.append(value, gradient)

    @rowwise
    def written(vector: np.ndarray) -> np.ndarray:
        random = model.new_rng(zlib.crc32(vector.tobytes()))  # of one draw always the same, of another draw others
        return np.asarray(model.param_constrain(vector, include_tp=True, include_gq=True, rng=random))

    def constrain(position: Any) -> dict[str, jax.Array]:
        return layout.tree(call_host(written, unconstrained.vector(position), layout.size))

    def of_rows(rows: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
        results = both(rows)
        return results[:, 0], results[:, 1:]

    caveat = "The program behind a BridgeStan model cannot be read: whether its priors are normalised is not known."
    target, host = _target(on_host(both), unconstrained, None), _in_order(of_rows, unconstrained)
    return replace(target, constrain=constrain, caveats=(caveat,), host=host)


def _target(of_vector: Callable[[jax.Array, Any], jax.Array], unconstrained: Layout, data: Any) -> Target:
    if unconstrained.size == 0:
        raise ThermoclineError("the model has no parameters: the parameters block is empty, nothing to sample.")

    def log_density(position: Any, data: Any = None) -> jax.Array:
        return off_support(of_vector(unconstrained.vector(position), data))

    zeros = {name: np.zeros(place.shape) for name, place in unconstrained.places.items()}
    return Target(log_density, first_position(log_density, zeros, data), data)


def _program(program: Any) -> tuple[str, Path | None]:
    """The text of a program, and the folder of its file."""
    if isinstance(program, str) and ("{" in program or not program.strip()):
        text, folder = program, None
    elif isinstance(program, str | os.PathLike):
        path = Path(program)
        if not path.is_file():
            raise ThermoclineError(f"there is no Stan program at {path}; give a path to a .stan file, or its text.")
        text, folder = path.read_text(), path.resolve().parent
    else:
        raise ThermoclineError(
            f"program is of type {type(program).__name__}; give Stan code, a path, or a BridgeStan StanModel."
        )
    if not text.strip():
        raise ThermoclineError("the Stan program is empty.")
    return text, folder


def _json_of(data: Any) -> str:
    """The data as Stan's JSON, keys sorted."""
    if data is None:
        return "{}"
    if isinstance(data, str | os.PathLike):
        if not Path(data).is_file():
            raise ThermoclineError(f"there are no data at {data}; give a dict, or a path to a JSON file.")
        try:
            data = json.loads(Path(data).read_text())
        except json.JSONDecodeError as error:
            raise ThermoclineError(f"{data} is not JSON: {error}; correct it there.") from None
    if not isinstance(data, dict):
        raise ThermoclineError(f"data are of type {type(data).__name__}; give a dict by the names of the data block.")
    return json.dumps({name: _plain(name, value) for name, value in sorted(data.items())}, allow_nan=False)


def _plain(name: str, value: Any) -> Any:
    """One variable as nested lists of numbers."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise ThermoclineError(f"data {name} is ragged; Stan needs arrays.") from None
    if array.dtype.kind not in "biuf":
        raise ThermoclineError(f"data {name} is of type {array.dtype}; Stan takes numbers.")
    missing = int(np.sum(~np.isfinite(array)))
    if missing:
        raise ThermoclineError(
            f"data {name} is missing or infinite at {missing} of {array.size} places; leave these observations out, or "
            "write them as parameters of the model."
        )
    return (array.astype(int) if array.dtype.kind == "b" else array).tolist()
