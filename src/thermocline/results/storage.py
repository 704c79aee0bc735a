"""Results as netCDF files that xarray and ArviZ open too; nothing is executed on load."""

import dataclasses
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from thermocline.bases import BaseFit, Gaussian, LowRankGaussian, Mixture, StudentT, TiedMixture
from thermocline.fits.student_mixture import StudentMixture
from thermocline.methods import METHODS
from thermocline.methods.adiabatic import AdiabaticMonteCarlo
from thermocline.methods.continuous import GibbsState
from thermocline.methods.extended_hamiltonian import Control, ExtendedHamiltonian
from thermocline.methods.parallel_tempering import Ensemble
from thermocline.methods.sequential import Group
from thermocline.methods.tuning import Bias, Learning, Tuning
from thermocline.modes.find import Found
from thermocline.modes.local import LocalModes
from thermocline.modes.peaks import Peak
from thermocline.movers import HMC, NUTS, Langevin, Metric, Move
from thermocline.paths import Continuous, ExtendedPoint, Ladder, Learned, Logistic, Neighbours, Point
from thermocline.paths.path import TemperatureSchedule
from thermocline.paths.reweighting import Curve, Profile, Window
from thermocline.records import Cost, Estimate, ModeTable, Phases, RunInfo, SearchRecord, TailIndex
from thermocline.support import sealed
from thermocline.support.errors import ThermoclineError, brief, reason
from thermocline.support.fingerprint import Fingerprint
from thermocline.target import Labels

# The classes that files may hold, by tags of their own: modules and classes can be renamed, and tags stay. Only these
# can come back, so that a file can make no other object.
STORABLE: dict[str, Any] = {"tuning": Tuning} | {
    f"{kind}/{name}": made
    for kind, named in (
        ("base", {"gaussian": Gaussian, "low-rank": LowRankGaussian, "student-t": StudentT}),
        ("base", {"mixture": Mixture, "tied-mixture": TiedMixture}),
        ("control", {"logistic": Logistic}),
        ("found", {"fit": BaseFit, "modes": LocalModes, "optima": Found, "peak": Peak, "students": StudentMixture}),
        ("law", {"continuous": Continuous, "ladder": Ladder, "learned": Learned, "neighbours": Neighbours}),
        ("law", {"curve": Curve, "profile": Profile, "schedule": TemperatureSchedule, "window": Window}),
        ("method", {"adiabatic": AdiabaticMonteCarlo, "extended": ExtendedHamiltonian} | METHODS),
        ("mover", {"hmc": HMC, "langevin": Langevin, "metric": Metric, "move": Move, "nuts": NUTS}),
        ("record", {"axis-labels": Labels, "cost": Cost, "estimate": Estimate, "fingerprint": Fingerprint}),
        ("record", {"mode-table": ModeTable, "phases": Phases, "run-info": RunInfo, "search": SearchRecord}),
        ("record", {"tail-index": TailIndex}),
        ("state", {"ensemble": Ensemble, "extended": ExtendedPoint, "gibbs": GibbsState, "particles": Group}),
        ("state", {"point": Point}),
        ("tuning", {"bias": Bias, "control": Control, "learning": Learning}),
    )
    for name, made in named.items()
    if isinstance(made, type)  # some methods are another by a name of its own
}
TAGS: dict[type, str] = {cls: tag for tag, cls in STORABLE.items()}


class Opaque:
    """Stands for a part of a run that is code (a user's function or class) and so was not stored."""

    def __init__(self, description: str) -> None:
        self.description = description


def encode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A JSON description of one of our objects, or of dicts, lists and tuples; its arrays go to `arrays`, each once."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is np.float64:
        return float(value)
    if type(value) in (list, tuple):
        return {type(value).__name__: [encode(item, arrays) for item in value]}
    if type(value) is dict:
        return {"dict": [[encode(key, arrays), encode(item, arrays)] for key, item in value.items()]}
    if type(value) in TAGS:
        names: Any = getattr(value, "_fields", None) or [entry.name for entry in dataclasses.fields(value)]
        fields = {name: encode(getattr(value, name), arrays) for name in names}
        return {"class": TAGS[type(value)], "fields": fields}
    if isinstance(value, Opaque):
        return {"opaque": value.description}
    if callable(value) or not hasattr(value, "__array__"):
        return {"opaque": type(value).__name__}
    name = next((name for name, known in arrays.items() if known is value), f"array_{len(arrays)}")
    arrays[name] = np.asarray(value)
    return {"array": name}


def decode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The object that `encode` described; what holds an unstored part is `Opaque` as a whole."""
    if not isinstance(value, dict):
        return value
    (kind, content), *rest = value.items()
    if kind == "array":
        return arrays[content]
    if kind == "opaque":
        return Opaque(content)
    if kind in ("list", "tuple"):
        items = [decode(item, arrays) for item in content]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {decode(key, arrays): decode(item, arrays) for key, item in content}
    fields = {name: decode(item, arrays) for name, item in rest[0][1].items()}
    cls = STORABLE.get(content)
    if cls is None or any(map(holds_opaque, fields.values())):
        return Opaque(content if cls is None else cls.__name__)
    return cls(**fields)


def holds_opaque(value: Any) -> bool:
    items = value.values() if isinstance(value, dict) else value if type(value) in (list, tuple) else ()
    return isinstance(value, Opaque) or any(map(holds_opaque, items))


def path_of(path: Any) -> Path:
    """What a user gives as a path, which must have a name."""
    try:
        found = Path(path)
    except TypeError:
        found = Path()
    if not found.name:
        raise ThermoclineError(f"path is {brief(path)}; give the name of a file.")
    return found


@contextmanager
def written_whole(path: str | Path, *, is_sealed: bool = False, num_bytes: int = 0) -> Iterator[Path]:
    """A file to write into, which takes the place of `path` once it is whole.

    Room for so many bytes is had beforehand: HDF5 ends in a segmentation fault where a disk is full.
    """
    path = path_of(path)
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            if num_bytes and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, num_bytes)
        yield temporary
        if is_sealed:
            sealed.seal(temporary)
        temporary.replace(path)
    except (OSError, RuntimeError) as error:  # HDF5 says one or the other when a disk is full
        raise ThermoclineError(f"{path} cannot be written ({error}); does its folder exist? Has it room?") from error
    finally:
        temporary.unlink(missing_ok=True)


def read_groups(path: str | Path) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, Any], bool]:
    """The groups and attributes of a file that `Result.save` wrote, and whether it is sealed."""
    path = path_of(path)
    if not path.is_file():
        raise ThermoclineError(f"{path} does not exist or is not a file; give one that Result.save wrote.")
    is_whole = sealed.is_whole(path)
    if is_whole is False:
        raise ThermoclineError(f"{path} is damaged: it is not as it was written. Load another copy, or run it again.")
    import xarray

    try:
        with xarray.open_datatree(path, engine="h5netcdf") as tree:
            groups = {
                name: {str(key): np.asarray(item.values) for key, item in node.data_vars.items()}
                for name, node in tree.children.items()
            }
            attributes = {str(key): item for key, item in tree.attrs.items()}
    except Exception as error:
        said = reason(error)
        raise ThermoclineError(f"{path} cannot be read as a thermocline result: it is damaged ({said}).") from error
    if "thermocline" not in attributes:
        raise ThermoclineError(f"{path} is a netCDF file, but not one that Result.save wrote.")
    return groups, attributes, is_whole is not None


def to_json(value: Any) -> str:
    """JSON in which NumPy's numbers are numbers."""
    return json.dumps(value, default=lambda item: item.item() if hasattr(item, "item") else str(item))
