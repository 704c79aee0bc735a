"""Results as netCDF files that xarray and ArviZ open too; nothing is executed on load."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from thermocline.bases import BASES
from thermocline.errors import ThermoclineError
from thermocline.methods import METHODS
from thermocline.methods.tuning import Learning, Tuning
from thermocline.movers import MOVERS, Metric
from thermocline.paths import LAWS, Learned, Logistic, Monotone, Point
from thermocline.paths.control import ExtendedPoint
from thermocline.paths.laws import Window
from thermocline.paths.reweighting import Profile
from thermocline.methods.gibbs import GibbsState

CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (*BASES.values(), *MOVERS.values(), *LAWS.values(), *METHODS.values(), Learned, Logistic, Monotone,
                Tuning, Learning, Window, Profile, Metric, Point, ExtendedPoint, GibbsState)
    if isinstance(cls, type)
}


class Opaque:
    """Stands for a part of a run that is code (a user's function) and so was not stored."""

    def __init__(self, description: str) -> None:
        self.description = description


def encode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A JSON description of one of our objects; its arrays go into `arrays`."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = {name: encode(getattr(value, name), arrays) for name in value._fields}
        return {"class": type(value).__name__, "fields": fields}
    if isinstance(value, list | tuple):
        return [encode(item, arrays) for item in value]
    if isinstance(value, dict):
        return {"dict": {name: encode(item, arrays) for name, item in value.items()}}
    if type(value).__name__ in CLASSES and dataclasses.is_dataclass(value):
        fields = {f.name: encode(getattr(value, f.name), arrays) for f in dataclasses.fields(value)}
        return {"class": type(value).__name__, "fields": fields}
    if callable(value) or isinstance(value, Opaque) or not hasattr(value, "__array__"):
        return {"opaque": getattr(value, "description", repr(value))}
    name = f"array_{len(arrays)}"
    arrays[name] = np.asarray(value)
    return {"array": name}


def decode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The object that `encode` described."""
    if isinstance(value, list):
        return [decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "opaque" in value:
        return Opaque(value["opaque"])
    if "dict" in value:
        return {name: decode(item, arrays) for name, item in value["dict"].items()}
    fields = {name: decode(item, arrays) for name, item in value["fields"].items()}
    if any(isinstance(item, Opaque) for item in fields.values()):
        return Opaque(value["class"])
    return CLASSES[value["class"]](**fields)


def write_groups(path: str | Path, groups: dict[str, dict[str, Any]], attributes: dict[str, Any]) -> None:
    """Write groups of (dims, values) variables as one netCDF file, whole or not at all."""
    import xarray

    tree = xarray.DataTree.from_dict({name: xarray.Dataset(variables) for name, variables in groups.items()})
    tree.attrs.update(attributes)
    path = Path(path)
    temporary = path.with_name(path.name + ".tmp")
    tree.to_netcdf(temporary, engine="h5netcdf")
    temporary.replace(path)


def read_groups(path: str | Path) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, Any]]:
    """The groups and attributes of a file that `write_groups` made."""
    import xarray

    try:
        with xarray.open_datatree(path, engine="h5netcdf") as tree:
            groups = {name: {str(key): np.asarray(item.values) for key, item in node.data_vars.items()}
                      for name, node in tree.children.items()}
            attributes = dict(tree.attrs)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ThermoclineError(f"{path} cannot be read as a thermocline result: {error}") from error
    if "thermocline" not in attributes:
        raise ThermoclineError(f"{path} is a netCDF file, but not one that Result.save wrote.")
    return groups, attributes


def to_json(value: Any) -> str:
    return json.dumps(value, default=lambda item: item.item() if hasattr(item, "item") else str(item))
