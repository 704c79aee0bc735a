"""Results of one target or of many as netCDF files that `load`, xarray and ArviZ open; nothing is executed on load."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from thermocline.checks import Check
from thermocline.engine.batch import alike
from thermocline.engine.prepare import log_support
from thermocline.records import BaseDraws, Estimate, restored
from thermocline.results import storage
from thermocline.results.continuation import Continuation
from thermocline.results.export import (
    arviz_groups,
    attributes_of,
    dataset,
    leading_dims,
    own_dims,
    results_of,
    stored_names,
)
from thermocline.results.many import ManyResults
from thermocline.results.result import Result
from thermocline.results.runs import ByTarget, ManyRuns, Settings, scattered
from thermocline.support.errors import ThermoclineError

FORMAT = 2  # of the file's header; raised when older readers could not understand it
DRAWN = "draws", "weighted_posterior", "unconstrained"  # groups of draws
OF_EACH = "mode_table", "mode_locations", "log_likelihood", "base_parameters", "prior_parameters", "predictive"
ROOM = 1.2  # of a file, over its numbers
Groups = dict[str, dict[str, np.ndarray]]


def save(results: Result | ManyResults, path: str | Path) -> None:
    """Write everything as netCDF: what ArviZ shows, and what it takes to go on with a run.

    For runs larger than memory their checkpoint is the file to keep.
    """
    import xarray

    each, arrays, targets = results_of(results), {}, None if isinstance(results, Result) else results.index
    kinds, dims = ("parameters", "unconstrained"), leading_dims(targets)
    header = {
        "version": version("thermocline"),
        "names": {name: stored_names(getattr(each[0], name), dims) for name in kinds},
        "template": storage.encode(each[0].template, arrays),
    }
    if isinstance(results, Result):
        header |= {"format": FORMAT, **_header_of_one(results, arrays)}
    else:
        header |= _header_of_many(results, each, arrays)
        arrays["header"] = np.frombuffer(storage.to_json(header).encode(), np.uint8)
        header = {"format": FORMAT, "many": len(results)}
    groups = arviz_groups(results, each) | {
        "unconstrained": dataset([result.unconstrained for result in each], targets),
        "thermocline": xarray.Dataset({name: (own_dims(name, values), values) for name, values in arrays.items()}),
    }
    tree = xarray.DataTree.from_dict(groups)
    tree.attrs.update(attributes_of(results) | {"thermocline": storage.to_json(header)})
    num_bytes = int(ROOM * sum(node.nbytes for node in tree.subtree)) + len(tree.attrs["thermocline"]) + 2**20
    with storage.written_whole(path, is_sealed=True, num_bytes=num_bytes) as file:
        tree.to_netcdf(file, engine="h5netcdf")


def _header_of_one(result: Result, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    run = {
        "law": result.law,
        "schedule": result.schedule,
        "base_draws": tuple(result.base_draws),
        "continuation": tuple(result.continuation),
        **{name: getattr(result, name) for name in OF_EACH},
    }
    return {
        "log_zeta": result.log_zeta,
        "log_support": list(vars(result.log_support).values()),
        "info": storage.encode(result.info, arrays),
        "run": storage.encode(run, arrays),
    }


def _header_of_many(results: ManyResults, each: list[Result], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """What Results have alike is stacked: a list of (their places, the trees) for each shape that there is."""
    trees, own, runs = [], [], results.runs
    for result in each:
        _, base, tuning, states, num_steps = result.continuation
        trees.append((result.law, result.schedule, tuple(result.base_draws), base, tuning, states))
        own.append({name: getattr(result, name) for name in ("info", *OF_EACH)} | {"num_steps": num_steps})
    return {
        "settings": storage.encode(tuple(runs.settings), arrays),
        "group": runs.group,
        "seconds": storage.encode(runs.seconds, arrays),
        "targets": storage.encode(results.index, arrays),
        "known": storage.encode(tuple(leaf[results.index] for leaf in runs.by_target), arrays),
        "families": storage.encode(alike(trees), arrays),
        "each": storage.encode(own, arrays),
        "checks": [[list(vars(check).values()) for check in results.checks_of(i)] for i in range(len(results))],
    }


def load(path: str | Path) -> Any:
    """The Result, or the ManyResults, that was saved; executes nothing, and answers what needs no new evaluation."""
    groups, attributes, is_sealed = storage.read_groups(path)
    try:
        header, arrays = json.loads(attributes["thermocline"]), groups["thermocline"]
        _check_format(path, header.get("format"), attributes.get("inference_library_version"), is_sealed)
        if "many" in header:
            return _load_many(groups)
        run = {name: storage.decode(header[name], arrays) for name in ("template", "info")}
        run |= {"log_zeta": float(header["log_zeta"]), "log_support": Estimate(*header["log_support"])}
        return _result(groups, header["names"], run | storage.decode(header["run"], arrays))
    except ThermoclineError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise ThermoclineError(f"{path} is damaged, or of another version of thermocline: {error!r}.") from error


def _check_format(path: str | Path, form: Any, made: Any, is_sealed: bool) -> None:
    """A sentence for a file of another version, and for one that lost the seal at its end."""
    if isinstance(form, int) and form != FORMAT:
        age, remedy = ("newer", "update thermocline") if form > FORMAT else ("older", "load it with that version")
        raise ThermoclineError(
            f"{path} is of format {form}, of {age} versions of thermocline (it was written by {made}); {remedy}, or "
            "open its draws with xarray or ArviZ."
        )
    if not is_sealed:
        raise ThermoclineError(f"{path} is damaged: the seal at its end is gone. Load another copy, or run it again.")


def _result(groups: Groups, names: dict[str, Any], run: dict[str, Any]) -> Result:
    """From the groups of draws, and all else by the names of the fields."""
    return Result(
        draws=restored(groups["draws"]),
        parameters={name: groups["weighted_posterior"][stored] for name, stored in names["parameters"].items()},
        unconstrained={name: groups["unconstrained"][stored] for name, stored in names["unconstrained"].items()},
        base_draws=BaseDraws(*run.pop("base_draws")),
        continuation=Continuation(*run.pop("continuation")),
        **run,
    )


def _load_many(groups: Groups) -> ManyResults:
    arrays = groups["thermocline"]
    header = json.loads(arrays["header"].astype(np.uint8).tobytes().decode())
    read = {name: storage.decode(header[name], arrays) for name in header if name not in ("checks", "names")}
    settings, targets = Settings(*read["settings"]), np.asarray(read["targets"])
    by_target, results = scattered(ByTarget(*read["known"]), targets), {}
    alike = {place: (row, trees) for places, trees in read["families"] for row, place in enumerate(places)}
    for place, (target, own) in enumerate(zip(targets.tolist(), read["each"], strict=True)):
        law, schedule, base_draws, base, tuning, states = _at_row(*alike[place])
        continuation = settings.method, base, tuning, states, own.pop("num_steps")
        run = own | {"law": law, "schedule": schedule, "base_draws": base_draws, "continuation": continuation}
        run |= {"log_zeta": float(by_target.log_zeta[target]), "log_support": log_support(by_target.support[target])}
        cut = (place, slice(None), slice(by_target.num_draws[target]))  # without what fills up shorter runs
        own_groups = {group: {name: leaf[cut] for name, leaf in groups[group].items()} for group in DRAWN}
        results[target] = _result(own_groups, header["names"], run | {"template": read["template"]})
    num_chains = groups["draws"]["log_ratio"].shape[1]
    checks = [tuple(Check(*check) for check in rows) for rows in header["checks"]]
    runs = StoredRuns(settings, by_target, num_chains, read["group"], read["seconds"], results)
    return ManyResults(runs, targets, dict(zip(targets.tolist(), checks, strict=True)))


def _at_row(row: int, trees: Any) -> Any:
    """Of one target what it has alike with others; parts that are code were not stored."""
    return jax.tree.map(lambda leaf: leaf if isinstance(leaf, storage.Opaque) else leaf[row], trees)


@dataclass(eq=False)
class StoredRuns(ManyRuns):
    """The runs of a file, whose Results are at hand."""

    results: dict[int, Result]  # by target

    def fields(self, targets: np.ndarray, *names: str) -> Iterator[tuple[np.ndarray, ...]]:
        return (tuple(getattr(self.results[int(i)].draws, name) for name in names) for i in targets)

    def bases(self, targets: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
        return ((self.results[int(i)].law, self.results[int(i)].base_draws.log_ratio) for i in targets)

    def result(self, target: int, *, is_for_checks: bool = False) -> Result:
        return self.results[target]
