"""Models of the command: a Stan file, a Python file with a model in it, or a name in a module that can be imported."""

import importlib.util
import inspect
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from thermocline.frontends import from_numpyro, from_pymc, from_stan
from thermocline.support.errors import ThermoclineError, cause_of
from thermocline.target import Target

NAMES = "model", "target"  # of functions that are taken for a model where a file names none
FRONTENDS = "numpyro", "pymc"


def target_of(model: str, data: Path | None = None) -> tuple[Target, Any]:
    """The target that is named, with the data of many targets where the file of data is not the model's own."""
    if model.endswith(".stan"):
        return from_stan(Path(model), data), None
    item = found(model)
    if _is_function(item):
        with of_the_user(model):
            item = _made_by(item, None if data is None else data_of(data))
        data = None
    if _is_pymc(item):
        if data is not None:
            raise ThermoclineError(f"{model} is a PyMC model, which holds its own data; leave --data out.")
        item = from_pymc(item)
    if not isinstance(item, Target):
        raise ThermoclineError(
            f"{model} is of type {type(item).__name__}; it can be a tc.Target, a PyMC model, a NumPyro model, or a "
            "function without arguments that returns one of the first two."
        )
    return item, None if data is None else as_floats(data_of(data))


def found(model: str) -> Any:
    """The object that FILE.py, FILE.py:NAME or MODULE:NAME stands for."""
    module_name, separator, name = model.rpartition(":")
    if not separator and model.endswith(".py"):
        return sole_model(model, vars(module_of(model)))
    if not module_name or not name:
        raise ThermoclineError(
            f"{model!r} names no model; write for example model.py, model.py:target, package.module:target, or "
            "model.stan with --data data.json."
        )
    module = module_of(module_name)
    if not hasattr(module, name):
        models = _models_among(vars(module))
        rest = f"it has the targets {', '.join(models)}." if models else "it holds no tc.Target and no model."
        raise ThermoclineError(f"{module_name} has no {name!r}; {rest}")
    return getattr(module, name)


def sole_model(model: str, names: dict[str, Any]) -> Any:
    """The one model of a file."""
    models = _models_among(names)
    if len({id(item) for item in models.values()}) != 1:
        held = f"holds several ({', '.join(models)})" if models else "holds no tc.Target and no model"
        raise ThermoclineError(f"{model} {held}; name the one that is meant, for example {model}:target.")
    return next(iter(models.values()))


def _models_among(names: dict[str, Any]) -> dict[str, Any]:
    objects = {name: item for name, item in names.items() if isinstance(item, Target) or _is_pymc(item)}
    return objects or {name: names[name] for name in NAMES if _is_function(names.get(name))}


def _is_function(item: Any) -> bool:
    return callable(item) and not isinstance(item, Target) and not _is_pymc(item)


def _is_pymc(item: Any) -> bool:
    return "pymc" in sys.modules and isinstance(item, sys.modules["pymc"].Model)


def _made_by(function: Any, data: Any) -> Any:
    """What a function without arguments makes; else it is a NumPyro model, and the data are its arguments by name."""
    wants = [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    if data is None and not wants:
        try:
            made = function()
        except Exception:
            if "numpyro" not in sys.modules:
                raise
        else:
            if isinstance(made, Target) or _is_pymc(made) or "numpyro" not in sys.modules:
                return made
    if "numpyro" not in sys.modules or not isinstance(data or {}, dict) or set(wants) - set(data or {}):
        raise ThermoclineError(
            f"{function.__name__} wants {', '.join(wants) or 'nothing'}: what a NumPyro model wants is given by name "
            "in --data data.json, and a function that makes a model wants none"
        )
    return from_numpyro(function, **(data or {}))


def data_of(path: Path) -> Any:
    """Data by name: the arrays of an .npz file, or what a JSON file nests, lists as arrays."""
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
        remedy = "correct it there" if isinstance(error, json.JSONDecodeError) else "rows must have equal lengths"
        raise ThermoclineError(f"{path} cannot be read as arrays ({error}); {remedy}.") from None


def _arrays(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _arrays(item) for name, item in value.items()}
    return np.asarray(value) if isinstance(value, list) else value


def as_floats(data: Any) -> Any:
    """The data of many targets."""
    if isinstance(data, dict):
        return {name: as_floats(item) for name, item in data.items()}
    return np.asarray(data, float)


@contextmanager
def of_the_user(model: str) -> Iterator[None]:
    """An error in the user's own code is one sentence, with its file and line."""
    try:
        yield
    except ThermoclineError as error:
        raise ThermoclineError(f"{model}: {error}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the user's code says
        missing = getattr(error, "name", None) if isinstance(error, ImportError) else None
        remedy = f"; run `pip install 'thermocline[{missing}]'`" if missing in FRONTENDS else ""
        raise ThermoclineError(f"{model} cannot be used: {cause_of(error)}{remedy}.") from None


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
        with of_the_user(name):
            specification.loader.exec_module(module)
        return module
    sys.path.insert(0, "")
    with of_the_user(name):
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if error.name and (name == error.name or name.startswith(f"{error.name}.")):
                raise ThermoclineError("there is no such module here; a file is named with its .py.") from None
            raise
