"""Results for other tools: netCDF files, and ArviZ of both generations (the only file that knows it)."""

import re
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thermocline.estimators import expectation
from thermocline.estimators.convergence import effective_size, pseudo_values, r_hat
from thermocline.records import AxisLabels
from thermocline.results import storage
from thermocline.results.result import Result

if TYPE_CHECKING:
    import xarray

FORMAT = 1  # of the file's header; raised when older readers could not understand it
DIAGNOSTICS = ("mean", "standard_error", "ess", "r_hat")
STATISTICS = {  # ArviZ's name: ours
    "acceptance_rate": "acceptance",
    "diverging": "is_divergent",
    "inverse_temperature": "inverse_temperature",
    "log_ratio": "log_ratio",
    "log_weight_target": "log_weight_target",
    "log_weight_base": "log_weight_base",
}
UNSAFE = re.compile(r"[/\x00-\x1f\x7f]|^\W|\s$|(?<=_dim)_(?=\d+$)")


def save(result: Result, path: str | Path) -> None:
    """Write the whole result as netCDF: what ArviZ shows, and what it takes to go on with the run."""
    import xarray

    arrays: dict[str, np.ndarray] = {}
    run = {
        "law": result.law,
        "schedule": result.schedule,
        "base_draws": tuple(result.base_draws),
        "continuation": tuple(result.continuation),
        "mode_table": result.mode_table,
        "mode_locations": result.mode_locations,
        "log_likelihood": result.log_likelihood,
    }
    header = {
        "format": FORMAT,
        "version": version("thermocline"),
        "names": {"parameters": stored_names(result.parameters), "unconstrained": stored_names(result.unconstrained)},
        "template": storage.encode(result.template, arrays),
        "log_zeta": result.log_zeta,
        "log_support": [result.log_support.value, result.log_support.standard_error, result.log_support.dof],
        "info": storage.encode(result.info, arrays),
        "run": storage.encode(run, arrays),
    }
    groups = arviz_groups(result) | {
        "unconstrained": by_chain(result.unconstrained),
        "thermocline": xarray.Dataset({name: (own_dims(name, values), values) for name, values in arrays.items()}),
    }
    storage.write_groups(path, groups, _attributes(result) | {"thermocline": storage.to_json(header)})


def to_arviz(result: Result) -> Any:
    """InferenceData for ArviZ before version 1, an xarray DataTree from there on; the same groups in both."""
    import arviz

    if int(arviz.__version__.split(".")[0]) >= 1:
        return data_tree(result)
    groups: dict[str, Any] = dict(arviz_groups(result))
    return arviz.InferenceData(attrs=_attributes(result), **groups)


def data_tree(result: Result) -> "xarray.DataTree":
    """The groups of `arviz_groups` as one tree: what ArviZ 1 calls its inference data."""
    import xarray

    tree = xarray.DataTree.from_dict(arviz_groups(result))
    tree.attrs.update(_attributes(result))
    return tree


def arviz_groups(result: Result) -> "dict[str, xarray.Dataset]":
    """Equally weighted draws as ArviZ expects them, beside the weighted draws that they were made from.

    `posterior` and `sample_stats` belong together, draw by draw; so do `weighted_posterior` and `draws`, which are
    as the run left them. `diagnostics` holds the weighted effective sizes and R-hat: ArviZ's own see
    the repetitions that resampling makes, and mislead.
    """
    index = resampled_in_order(result)
    stats = {name: getattr(result.draws, ours) for name, ours in STATISTICS.items()}
    labels = result.info.labels
    pointwise = {"log_likelihood": by_chain(result.log_likelihood, labels)} if result.log_likelihood else {}
    return {
        "posterior": by_chain({name: _taken(values, index) for name, values in result.parameters.items()}, labels),
        "sample_stats": by_chain({name: _taken(values, index) for name, values in stats.items()}),
        "weighted_posterior": by_chain(result.parameters, labels),
        "draws": by_chain({name: leaf for name, leaf in result.draws._asdict().items() if leaf.size}),
        "diagnostics": _diagnostics(result),
        **pointwise,
    }


def resampled_in_order(result: Result) -> np.ndarray:
    """Indices (chain, draw) into the pooled draws, each as often as its weight says, in the order of drawing.

    In random order draws would look independent, and chains that disagree would look alike.
    """
    from thermocline.results.result import systematic_resample

    log_weight = result.draws.log_weight_target
    return np.sort(systematic_resample(log_weight.ravel(), log_weight.size, seed=0)).reshape(log_weight.shape)


def stored_names(names: Any) -> dict[str, str]:
    """A name that netCDF allows and no dimension has, for every name."""
    taken, stored = {"chain", "draw", "diagnostic"}, {}
    for name in names:
        safe = UNSAFE.sub("__", name) or "_"
        while safe in taken:
            safe += "_"
        taken.add(safe)
        stored[name] = safe
    return stored


def _taken(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    return values.reshape(-1, *values.shape[2:])[index]


def by_chain(variables: dict[str, np.ndarray], labels: AxisLabels | None = None) -> "xarray.Dataset":
    """Variables with leading axes (chain, draw), under names that can be stored; `long_name` keeps the true one.

    `labels` gives dims and coords that the front end knows.
    """
    import xarray

    stored = stored_names(variables)
    chains, draws = next(iter(variables.values())).shape[:2]
    coords: dict[str, Any] = {"chain": np.arange(chains), "draw": np.arange(draws)}
    given, sizes, arrays = labels or AxisLabels(), {"chain": -1, "draw": -1}, {}
    for name, values in variables.items():
        dims = own_dims(stored[name], values[0, 0])
        wanted = tuple(given.dims.get(name, ()))
        if _are_usable(wanted, values.shape[2:], sizes, stored):
            dims = wanted
            sizes |= dict(zip(wanted, values.shape[2:], strict=True))
            coords |= {dim: given.coords[dim] for dim in dims if len(given.coords.get(dim, ())) == sizes[dim]}
        arrays[stored[name]] = ("chain", "draw", *dims), values, {"long_name": name}
    return xarray.Dataset(arrays, coords=coords)


def _are_usable(dims: tuple[str, ...], shape: tuple[int, ...], sizes: dict[str, int], stored: dict[str, str]) -> bool:
    """Whether given names of axes fit the shape, can be stored, and clash with nothing."""
    safe = [not UNSAFE.search(dim) and dim not in stored.values() for dim in dims]
    fits = [sizes.get(dim, length) == length for dim, length in zip(dims, shape, strict=False)]
    return len(dims) == len(shape) == len(set(dims)) and all(safe) and all(fits)


def _diagnostics(result: Result) -> "xarray.Dataset":
    """Every component's weighted mean with its error, effective size and R-hat, along one dimension."""
    import xarray

    stored = stored_names(result.parameters)
    variables = {}
    for name, values in result.parameters.items():
        table = np.empty((len(DIAGNOSTICS), *values.shape[2:]))
        for place in np.ndindex(values.shape[2:]):
            table[(slice(None), *place)] = _diagnosed(values[(..., *place)], result.draws.log_weight_target)
        dims = "diagnostic", *own_dims(stored[name], table[0])
        variables[stored[name]] = dims, table, {"long_name": name}
    return xarray.Dataset(variables, coords={"diagnostic": list(DIAGNOSTICS)})


def _diagnosed(values: np.ndarray, log_weight: np.ndarray) -> tuple[float, float, float, float]:
    """Mean, its standard error, effective size and R-hat of one weighted component."""
    values = values.astype(float)
    mean = expectation(values, log_weight)
    agreement = r_hat(pseudo_values(values, log_weight))
    return mean.value, mean.standard_error, effective_size(values, log_weight), agreement


def own_dims(name: str, values: np.ndarray) -> tuple[str, ...]:
    return tuple(f"{name}_dim_{axis}" for axis in range(np.ndim(values)))


def _attributes(result: Result) -> dict[str, Any]:
    """What a reader without thermocline should see first."""
    attributes = {
        "inference_library": "thermocline",
        "inference_library_version": version("thermocline"),
        "verdict": result.verdict,
    }
    if result.log_evidence is not None:
        attributes |= {
            "log_evidence": result.log_evidence.value,
            "log_evidence_standard_error": result.log_evidence.standard_error,
        }
    return attributes
