"""Targets of the command: a user's by the name of its module or file, and the demonstration's."""

import importlib.util
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from thermocline.support.errors import ThermoclineError
from thermocline.target import Target

LOG_CONSTANT, SHARE = -7.0, 0.65  # of the evidence, and of the curved mode


def target_of(model: str) -> Any:
    """The target that MODULE:OBJECT names; a function without arguments is called."""
    module_name, separator, name = model.rpartition(":")
    if not separator or not module_name or not name:
        raise ThermoclineError(f"{model!r} is not MODULE:OBJECT; write for example model.py:target.")
    module = module_of(module_name)
    if not hasattr(module, name):
        targets = [key for key, value in vars(module).items() if isinstance(value, Target)]
        found = f"it has the targets {', '.join(targets)}." if targets else "it holds no tc.Target."
        raise ThermoclineError(f"{module_name} has no {name!r}; {found}")
    item = getattr(module, name)
    item = item() if callable(item) and not isinstance(item, Target) else item
    if not isinstance(item, Target):
        raise ThermoclineError(
            f"{model} is of type {type(item).__name__}; make it a tc.Target (tc.from_numpyro, tc.from_pymc and "
            "tc.from_stan make one from a model), or a function without arguments that returns one."
        )
    return item


def data_of(path: Path) -> Any:
    """Data of many targets by name: the arrays of an .npz file, or what a JSON file nests, lists as arrays."""
    if not path.is_file():
        raise ThermoclineError(f"there is no file {path}.")
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    if path.suffix != ".json":
        raise ThermoclineError(f"{path} is neither .npz nor .json, which data can be read from.")
    try:
        return _arrays(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ThermoclineError(f"{path} cannot be read as arrays ({error}); rows must have equal lengths.") from error


def _arrays(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _arrays(item) for name, item in value.items()}
    return np.asarray(value, float)


def module_of(name: str) -> Any:
    """A module by its name or its file; the working folder is looked in too."""
    path = Path(name)
    if name.endswith(".py"):
        if not path.is_file():
            raise ThermoclineError(f"there is no file {name}.")
        known = sys.modules.get(path.stem)
        if known is not None and getattr(known, "__file__", None) == str(path.resolve()):
            return known
        sys.path.insert(0, str(path.parent.resolve()))
        specification = importlib.util.spec_from_file_location(path.stem, path.resolve())
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        sys.modules.setdefault(path.stem, module)
        specification.loader.exec_module(module)
        return module
    sys.path.insert(0, "")
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            raise ThermoclineError(f"there is no module {name} here; a file is named with its .py.") from error
        raise


def two_modes(position: dict, data: dict) -> jnp.ndarray:
    """0.65 of a banana and 0.35 of a Gaussian far from it, both normalised, times exp(-7)."""
    x, y = position["x"], position["y"]
    banana = norm.logpdf(x, -1.0, 1.2) + norm.logpdf(y - 0.3 * x**2, 0.0, 0.5)
    blob = norm.logpdf(x, data["centre"][0], 0.4) + norm.logpdf(y, data["centre"][1], 0.6)
    return jnp.logaddexp(jnp.log(SHARE) + banana, jnp.log1p(-SHARE) + blob) + LOG_CONSTANT


def demonstration() -> Target:
    return Target(two_modes, {"x": 0.0, "y": 0.0}, {"centre": np.array([2.5, -6.0])})


def truth() -> str:
    """What the summary should say."""
    return (
        f"The truth: log Z = {LOG_CONSTANT:g}; a curved mode along y = 0.3 x² that holds {SHARE:.0%}, and a round one "
        f"at x = 2.5, y = -6 that holds {1 - SHARE:.0%}."
    )
