"""Stan programs as targets: compiled here with what the httpstan wheel carries, or a BridgeStan model."""

import ctypes
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.frontends.common import first_position
from thermocline.frontends.host import call_host, differentiable, on_host, rowwise
from thermocline.frontends.stan_caveats import caveats_of
from thermocline.support.errors import ThermoclineError
from thermocline.support.optional import require
from thermocline.support.precision import computing_in
from thermocline.target import Target

CANONICAL = "includes,strip-comments,deprecations,braces"
POINTWISE = "log_lik"  # the generated quantity that, by convention, holds pointwise log likelihoods
SHIM = Path(__file__).with_name("stan_shim.cpp")
PLACEHOLDER = "thermocline_model_name"
FLAGS = (
    *("-O2", "-std=c++17", "-fPIC", "-shared", "-w", "-DSTAN_THREADS", "-D_REENTRANT"),
    *("-DBOOST_DISABLE_ASSERTS", "-DBOOST_PHOENIX_NO_VARIADIC_EXPRESSION"),
)
LIBRARIES = ("-ltbb", "-lsundials_cvodes", "-lsundials_idas", "-lsundials_kinsol", "-lsundials_nvecserial")
MESSAGE_BYTES = 4096


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
        library = library_of(text, folder)
        key = int.from_bytes(hashlib.sha256(encoded.encode()).digest()[:8], "little")
        library.create(encoded, key)
        canonical = stanc(text, folder, "--auto-format", "--canonicalize", CANONICAL)
        return _from_library(library, key, caveats_of(canonical))


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


class Library:
    """A compiled Stan program: makes an instance for each data set, and names two FFI targets."""

    def __init__(self, path: Path) -> None:
        self.name = path.stem
        self.recipe: tuple[str, Path | None] = "", None  # program and folder
        self.data: dict[int, str] = {}  # JSON by key
        self._library = ctypes.CDLL(str(path))
        given = [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t]
        self._library.thermocline_create.argtypes = given
        self._library.thermocline_names.argtypes = [ctypes.c_uint64, ctypes.c_int]
        self._library.thermocline_names.restype = ctypes.c_char_p
        for target in ("log_density", "constrain"):
            function = getattr(self._library, f"thermocline_{target}")
            jax.ffi.register_ffi_target(f"{self.name}_{target}", jax.ffi.pycapsule(function), platform="cpu")

    def create(self, json: str, key: int) -> None:
        """Make the model with these data, under this key."""
        if key in self.data:
            return
        message = ctypes.create_string_buffer(MESSAGE_BYTES)
        if self._library.thermocline_create(json.encode(), key, message, MESSAGE_BYTES):
            raise ThermoclineError(f"Stan does not take the data: {message.value.decode(errors='replace').strip()}")
        self.data[key] = json

    def __reduce__(self) -> Any:
        """What travels to workers is the recipe."""
        return rebuilt, (*self.recipe, tuple(self.data.items()))

    def names(self, key: int, stage: int) -> list[str]:
        """Scalars by Stan's dotted names: unconstrained (0), with transformed parameters (1), with all (2)."""
        return self._library.thermocline_names(key, stage).decode().split()


def _from_library(library: Library, key: int, caveats: tuple[str, ...]) -> Target:
    """The target of one data set; the key that stands for it is its data."""
    unconstrained, constrained, everything = (Layout.of(library.names(key, stage)) for stage in range(3))

    def evaluate(vector: jax.Array, data: Any) -> tuple[jax.Array, jax.Array]:
        shapes = jax.ShapeDtypeStruct((), vector.dtype), jax.ShapeDtypeStruct(vector.shape, vector.dtype)
        call = jax.ffi.ffi_call(f"{library.name}_log_density", shapes, vmap_method="broadcast_all")
        value, gradient = call(data["data set"], vector)
        return value, gradient

    def written(position: Any, data: Any, layout: Layout) -> dict[str, jax.Array]:
        vector = unconstrained.vector(position)
        shape = jax.ShapeDtypeStruct((layout.size,), vector.dtype)
        call = jax.ffi.ffi_call(f"{library.name}_constrain", shape, vmap_method="broadcast_all")
        return layout.tree(call(data["data set"], vector))

    def log_likelihood(position: Any, data: Any) -> dict[str, jax.Array]:
        return {POINTWISE: written(position, data, everything)[POINTWISE]}

    data = {"data set": np.frombuffer(key.to_bytes(8, "little"), np.uint32)}
    return replace(
        _target(differentiable(evaluate), unconstrained, data),
        constrain=lambda position, data: written(position, data, constrained),
        caveats=caveats,
        log_likelihood=log_likelihood if POINTWISE in everything.places else None,
    )


def _from_bridgestan(model: Any) -> Target:
    """The target of a BridgeStan model, which holds its own data; called on the host, one position at a time."""
    unconstrained = Layout.of(list(model.param_unc_names()))
    layout = Layout.of(list(model.param_names(include_tp=True)))

    def both(vector: np.ndarray) -> np.ndarray:
        try:
            value, gradient = model.log_density_gradient(vector, propto=False, jacobian=True)
        except RuntimeError:  # how BridgeStan says that Stan rejects the position
            value, gradient = -np.inf, np.zeros_like(vector)
        return np.append(value, gradient)

    def constrain(position: Any) -> dict[str, jax.Array]:
        one = rowwise(lambda vector: np.asarray(model.param_constrain(vector, include_tp=True)))
        return layout.tree(call_host(one, unconstrained.vector(position), layout.size))

    target = _target(on_host(rowwise(both)), unconstrained, None)
    order = np.concatenate([np.ravel(unconstrained.places[name]) for name in sorted(unconstrained.places)])

    def host(rows: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
        """Of positions as JAX ravels them, by sorted names."""
        results = rowwise(both)(rows[:, np.argsort(order)])
        return results[:, 0], results[:, 1:][:, order]

    caveat = "The program behind a BridgeStan model cannot be read: whether its priors are normalised is not known."
    return replace(target, constrain=constrain, caveats=(caveat,), host=host)


def _target(of_vector: Callable[[jax.Array, Any], jax.Array], unconstrained: Layout, data: Any) -> Target:
    if unconstrained.size == 0:
        raise ThermoclineError("the model has no parameters: the parameters block is empty, nothing to sample.")

    def log_density(position: Any, data: Any = None) -> jax.Array:
        return of_vector(unconstrained.vector(position), data)

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
            raise ThermoclineError(f"{data} is not JSON: {error}.") from error
    if not isinstance(data, dict):
        raise ThermoclineError(f"data are of type {type(data).__name__}; give a dict by the names of the data block.")
    return json.dumps({name: _plain(name, value) for name, value in sorted(data.items())}, allow_nan=False)


def _plain(name: str, value: Any) -> Any:
    """One variable as nested lists of numbers."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ThermoclineError(f"data {name} is ragged; Stan needs arrays.") from error
    if array.dtype.kind not in "biuf":
        raise ThermoclineError(f"data {name} is of type {array.dtype}; Stan takes numbers.")
    missing = int(np.sum(~np.isfinite(array)))
    if missing:
        raise ThermoclineError(
            f"data {name} is missing or infinite at {missing} of {array.size} places; leave these observations out, or "
            "write them as parameters of the model."
        )
    return (array.astype(int) if array.dtype.kind == "b" else array).tolist()


def library_of(program: str, folder: Path | None) -> Library:
    """The program compiled, or as it was compiled before; `folder` is where its `#include`s are looked for."""
    code = stanc(program, folder, "--name", PLACEHOLDER, "--print-cpp")
    shim = SHIM.read_text()
    versions = [version(package) for package in ("httpstan", "jaxlib")]
    text = "\n".join([code, shim, *FLAGS, *LIBRARIES, *versions, sys.platform, os.uname().machine])
    name = f"stan_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    path = cache_folder() / f"{name}.so"
    if not path.exists():
        compile_cpp(f"{code.replace(PLACEHOLDER, name)}\n#define MODEL {name}_namespace::{name}\n{shim}", path)
    library = loaded(path)
    library.recipe = program, folder
    return library


loaded = cache(Library)  # and its targets registered, once in a process


@cache
def rebuilt(program: str, folder: Path | None, data: tuple[tuple[int, str], ...]) -> Library:
    """A library on another process, with its data sets."""
    library = library_of(program, folder)
    for key, encoded in data:
        library.create(encoded, key)
    return library


def stanc(program: str, folder: Path | None, *options: str) -> str:
    """What stanc prints for a program; its complaints are ours."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "model.stan")
        source.write_text(program)
        include = () if folder is None else ("--include-paths", str(folder))
        command = [str(httpstan_folder() / "stanc"), *options, *include, "--filename-in-msg", "model.stan", str(source)]
        finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if finished.returncode:
        raise ThermoclineError(f"stanc refuses the program: {finished.stderr.strip()}")
    return finished.stdout


def compile_cpp(code: str, path: Path) -> None:
    """Compile to `path`, which appears whole or not at all."""
    found = map(shutil.which, (os.environ.get("CXX", ""), "c++", "g++", "clang++"))
    compiler = next(filter(None, found), None)
    if compiler is None:
        raise ThermoclineError("no C++ compiler was found, which Stan models need; install g++ or clang++, or set CXX.")
    carried, headers = httpstan_folder(), jax.ffi.include_dir()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        source, result = Path(scratch, "model.cpp"), Path(scratch, "model.so")
        source.write_text(code)
        where = [f"-I{carried / 'include'}", f"-I{headers}", f"-L{carried / 'lib'}", f"-Wl,-rpath,{carried / 'lib'}"]
        command = [compiler, *FLAGS, *where, str(source), "-o", str(result), *LIBRARIES]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode:
            raise ThermoclineError(f"{compiler} could not compile the model: {finished.stderr.strip()[-2000:]}")
        os.replace(result, path)


def cache_folder() -> Path:
    """Where compiled models are kept: the user's cache."""
    usual = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return Path(os.environ.get("XDG_CACHE_HOME", usual)) / "thermocline" / "stan"


def httpstan_folder() -> Path:
    """Where the httpstan wheel has stanc, the headers and the libraries."""
    return Path(require("stan", "httpstan").__file__).parent
