"""Stan programs compiled with what the httpstan wheel carries: once for a text, and kept in the user's cache."""

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from thermocline.support.errors import ThermoclineError
from thermocline.support.optional import require

SHIM = Path(__file__).with_name("stan_shim.cpp")
PLACEHOLDER = "thermocline_model_name"
FLAGS = (
    *("-O2", "-std=c++17", "-fPIC", "-shared", "-w", "-DSTAN_THREADS", "-D_REENTRANT"),
    *("-DBOOST_DISABLE_ASSERTS", "-DBOOST_PHOENIX_NO_VARIADIC_EXPRESSION"),
)
LIBRARIES = ("-ltbb", "-lsundials_cvodes", "-lsundials_idas", "-lsundials_kinsol", "-lsundials_nvecserial")
MESSAGE_BYTES = 4096


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
        doubles = np.ctypeslib.ndpointer(float, flags="C_CONTIGUOUS")
        sizes = ctypes.c_int64, ctypes.c_int64
        self._library.thermocline_rows.argtypes = [ctypes.c_uint64, doubles, *sizes, doubles, doubles]
        self._library.thermocline_rows.restype = None
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

    def names(self, key: int, is_constrained: bool) -> list[str]:
        """Scalars by Stan's dotted names: unconstrained, or with transformed parameters and generated quantities."""
        return self._library.thermocline_names(key, is_constrained).decode().split()

    def evaluate(self, rows: np.ndarray, key: int) -> tuple[np.ndarray, np.ndarray]:
        """Log densities and gradients of rows as Stan orders them: one call, over all cores."""
        rows, values, gradients = np.ascontiguousarray(rows, float), np.empty(len(rows)), np.empty(rows.shape)
        self._library.thermocline_rows(key, rows, *rows.shape, values, gradients)
        return values, gradients


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
    """A library in another process, with its data sets."""
    library = library_of(program, folder)
    for key, encoded in data:
        library.create(encoded, key)
    return library


def stanc(program: str, folder: Path | None, *options: str, name: str = "model.stan") -> str:
    """What stanc prints for a program; its complaints are ours."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "model.stan")
        source.write_text(program)
        include = () if folder is None else ("--include-paths", str(folder))
        command = [str(httpstan_folder() / "stanc"), *options, *include, "--filename-in-msg", name, str(source)]
        finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if finished.returncode:
        said = re.sub(r"-{5,}\n.*?-{5,}", "", finished.stderr, flags=re.DOTALL)  # without the excerpt
        raise ThermoclineError(f"stanc refuses the program: {' '.join(said.split())}")
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
