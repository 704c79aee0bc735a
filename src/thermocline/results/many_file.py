"""The results of many targets for other tools: one netCDF file, and ArviZ, with a leading dimension over targets."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from thermocline.checks import Check
from thermocline.engine.batch import stacked as stacked_trees
from thermocline.engine.prepare import log_support
from thermocline.estimators.resampling import systematic_resample
from thermocline.records import AxisLabels, BaseDraws, Draws, Phases, restored
from thermocline.results import storage
from thermocline.results.export import FORMAT, STATISTICS, by_chain, own_dims, stored_names
from thermocline.results.many import ManyResults
from thermocline.results.result import Continuation, Result
from thermocline.results.runs import DROPPED, Known, Settings, scattered, stacked
from thermocline.support.errors import ThermoclineError

if TYPE_CHECKING:
    import xarray


def save(results: ManyResults, path: str | Path) -> None:
    """Write everything as one netCDF file; for runs larger than memory their checkpoint is the file to keep."""
    import xarray

    each, arrays = _results(results), {}
    runs, first = results.runs, each[0]
    header = {
        "version": version("thermocline"),
        "names": {"parameters": stored_names(first.parameters), "unconstrained": stored_names(first.unconstrained)},
        "template": storage.encode(first.template, arrays),
        "settings": storage.encode(tuple(runs.settings), arrays),
        "group": runs.group,
        "seconds": storage.encode(runs.seconds, arrays),
        "targets": storage.encode(results.index, arrays),
        "known": storage.encode(tuple(leaf[results.index] for leaf in runs.known), arrays),
        "families": storage.encode(_families(each), arrays),
        "each": storage.encode([_own(result) for result in each], arrays),
        "checks": [[list(vars(check).values()) for check in results.checks_of(i)] for i in range(len(results))],
    }
    arrays["header"] = np.frombuffer(storage.to_json(header).encode(), np.uint8)
    groups = groups_of(results, each) | {
        "unconstrained": _by_target([result.unconstrained for result in each], results.index),
        "thermocline": xarray.Dataset({name: (own_dims(name, values), values) for name, values in arrays.items()}),
    }
    marks = {"thermocline": storage.to_json({"format": FORMAT, "many": len(results)})}
    storage.write_groups(path, groups, _attributes(results) | marks)


def to_arviz(results: ManyResults) -> Any:
    """InferenceData for ArviZ before version 1, an xarray DataTree from there on; the same groups in both."""
    import arviz
    import xarray

    groups: dict[str, Any] = groups_of(results, _results(results))
    if int(arviz.__version__.split(".")[0]) < 1:
        return arviz.InferenceData(attrs=_attributes(results), **groups)
    tree = xarray.DataTree.from_dict(groups)
    tree.attrs.update(_attributes(results))
    return tree


def groups_of(results: ManyResults, each: list[Result]) -> "dict[str, xarray.Dataset]":
    """The groups of one Result with a dimension `target` in front, and `evidence`: a row for each target.

    Equally weighted draws are as many for each target as the longest run has. Weighted ones are as they were drawn:
    where a target has fewer than others, the rest is NaN.
    """
    import xarray

    length, labels = int(results.runs.known.num_draws[results.index].max()), each[0].info.labels
    index = [_resampled(result, length) for result in each]
    posterior = [_taken(result.parameters, own) for result, own in zip(each, index, strict=True)]
    statistics = [
        _taken({name: getattr(result.draws, ours) for name, ours in STATISTICS.items()}, own)
        for result, own in zip(each, index, strict=True)
    ]
    draws = [{name: leaf for name, leaf in result.draws._asdict().items() if leaf.size} for result in each]
    rows = {"verdict": np.array(results.verdicts, str), "num_draws": results.runs.known.num_draws[results.index]}
    if results.log_evidences is not None:
        rows |= {f"log_evidence_{name}": column for name, column in vars(results.log_evidences).items()}
    return {
        "posterior": _by_target(posterior, results.index, labels),
        "sample_stats": _by_target(statistics, results.index),
        "weighted_posterior": _by_target([result.parameters for result in each], results.index, labels),
        "draws": _by_target(draws, results.index),
        "evidence": xarray.Dataset(
            {name: ("target", column) for name, column in rows.items()}, coords={"target": results.index}
        ),
    }


def _results(results: ManyResults) -> list[Result]:
    if not results.runs.settings.has_positions:
        raise ThermoclineError(DROPPED)
    return list(results)


def _by_target(
    variables: list[dict[str, np.ndarray]], targets: np.ndarray, labels: AxisLabels | None = None
) -> "xarray.Dataset":
    """Variables (chain, draw) of each target, with names, dims and coords as those of one have them."""
    import xarray

    longest = max(variables, key=lambda named: next(iter(named.values())).shape[1])
    one, stored = by_chain(longest, labels), stored_names(longest)
    arrays = {
        stored[name]: (
            ("target", *one[stored[name]].dims),
            stacked([named[name] for named in variables]),
            one[stored[name]].attrs,
        )
        for name in longest
    }
    return xarray.Dataset(arrays, coords={"target": targets, **one.coords})


def _resampled(result: Result, length: int) -> np.ndarray:
    """Indices (chain, draw) into the pooled draws, each as often as its weight says, in the order of drawing."""
    log_weight = result.draws.log_weight_target
    if not np.isfinite(log_weight).any():
        return np.full((len(log_weight), length), -1)
    number = len(log_weight) * length
    return np.sort(systematic_resample(log_weight.ravel(), number, seed=0)).reshape(len(log_weight), length)


def _taken(variables: dict[str, np.ndarray], index: np.ndarray) -> dict[str, np.ndarray]:
    """NaN, where there is nothing to take."""
    taken = {name: values.reshape(-1, *values.shape[2:])[index] for name, values in variables.items()}
    return taken if index.min() >= 0 else {name: values * np.nan for name, values in taken.items()}


def _own(result: Result) -> dict[str, Any]:
    """What each Result has by itself."""
    names = "info", "mode_table", "mode_locations", "log_likelihood"
    return {name: getattr(result, name) for name in names} | {"num_steps": result.continuation.num_steps}


def _families(each: list[Result]) -> list[Any]:
    """What Results have alike, stacked: a list of (their places, the trees) for each shape that there is."""
    alike: dict[Any, list[tuple[int, Any]]] = {}
    for place, result in enumerate(each):
        _, base, tuning, states, _ = result.continuation
        tree = (result.law, result.schedule, tuple(result.base_draws), base, tuning, states)
        shape = jax.tree.structure(tree), tuple(np.shape(leaf) for leaf in jax.tree.leaves(tree))
        alike.setdefault(shape, []).append((place, tree))
    return [
        (np.array([place for place, _ in members]), stacked_trees([tree for _, tree in members]))
        for members in alike.values()
    ]


def _attributes(results: ManyResults) -> dict[str, Any]:
    """What a reader without thermocline should see first."""
    library = {"inference_library": "thermocline", "inference_library_version": version("thermocline")}
    joint = results.log_evidence
    answer = {} if joint is None else {"log_evidence": joint.value, "log_evidence_standard_error": joint.standard_error}
    return {**library, "verdict": results.verdict, **answer}


@dataclass(eq=False)
class StoredRuns:
    """The runs of a file: `draws`, `parameters` and `unconstrained` with a leading axis over its targets."""

    settings: Settings
    known: Known
    group: int
    seconds: Phases
    targets: np.ndarray
    each: list[dict[str, Any]]  # what every Result has by itself
    families: list[Any]  # what Results have alike
    template: Any
    names: dict[str, dict[str, str]]  # that were stored, by the true ones
    groups: dict[str, dict[str, np.ndarray]]

    @property
    def num_chains(self) -> int:
        return self.groups["draws"]["log_ratio"].shape[1]

    @cached_property
    def places(self) -> dict[int, int]:
        return {int(target): place for place, target in enumerate(self.targets)}

    def fields(self, targets: np.ndarray, *names: str) -> Iterator[tuple[np.ndarray, ...]]:
        for target in targets:
            draws = self._draws(int(target))
            yield tuple(getattr(draws, name) for name in names)

    def _cut(self, group: str, target: int) -> dict[str, np.ndarray]:
        length = self.known.num_draws[target]
        return {name: leaf[self.places[target]][:, :length] for name, leaf in self.groups[group].items()}

    def _draws(self, target: int) -> Draws:
        return restored(self._cut("draws", target))

    def result(self, target: int, *, is_for_checks: bool = False) -> Result:
        place, names = self.places[target], self.names
        own, (law, schedule, base_draws, base, tuning, states) = self.each[place], self._tree(place)
        shown, unconstrained = self._cut("weighted_posterior", target), self._cut("unconstrained", target)
        return Result(
            self._draws(target),
            {name: shown[stored] for name, stored in names["parameters"].items()},
            {name: unconstrained[stored] for name, stored in names["unconstrained"].items()},
            self.template,
            law,
            schedule,
            float(self.known.log_zeta[target]),
            log_support(self.known.support[target]),
            BaseDraws(*base_draws),
            own["info"],
            Continuation(self.settings.method, base, tuning, states, own["num_steps"]),
            own["mode_table"],
            own["mode_locations"],
            own["log_likelihood"],
        )

    def _tree(self, place: int) -> Any:
        """What it has alike with others; parts that are code were not stored."""
        places, trees = next(family for family in self.families if place in family[0])
        row = int(np.flatnonzero(places == place)[0])
        return jax.tree.map(lambda leaf: leaf if isinstance(leaf, storage.Opaque) else leaf[row], trees)


def loaded(groups: dict[str, dict[str, np.ndarray]]) -> ManyResults:
    """The results that a file holds."""
    arrays = groups["thermocline"]
    header = json.loads(arrays["header"].astype(np.uint8).tobytes().decode())
    read = {name: storage.decode(header[name], arrays) for name in header if name not in ("checks", "names")}
    known = scattered(Known(*read["known"]), read["targets"])
    rest = {name: read[name] for name in ("group", "seconds", "targets", "each", "families", "template")}
    runs = StoredRuns(Settings(*read["settings"]), known, **rest, names=header["names"], groups=groups)
    checks = {
        int(target): tuple(Check(*check) for check in rows)
        for target, rows in zip(runs.targets, header["checks"], strict=True)
    }
    return ManyResults(runs, np.asarray(runs.targets), checks)
