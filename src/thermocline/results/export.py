"""Results of one target or of many for ArviZ, of both its generations (the only file that knows it)."""

import re
from importlib.metadata import version
from typing import Any

import numpy as np

from thermocline.results.assemble import resampled_in_order
from thermocline.results.many import ManyResults
from thermocline.results.result import Result
from thermocline.results.runs import DROPPED, stacked
from thermocline.support.errors import ThermoclineError
from thermocline.support.optional import require
from thermocline.target import Labels

DIAGNOSTICS = ("mean", "standard_error", "ess", "r_hat")
KEPT = ("inverse_temperature", "log_ratio", "log_weight_target", "log_weight_base")
STATISTICS = {"acceptance_rate": "acceptance", "diverging": "is_divergent"} | {name: name for name in KEPT}  # to ours
UNSAFE = re.compile(r"[/\x00-\x1f\x7f]|^\W|\s$|(?<=_dim)_(?=\d+$)")


def to_arviz(results: Result | ManyResults) -> Any:
    """InferenceData for ArviZ before version 1, an xarray DataTree from there on; the same groups in both."""
    arviz = require("arviz", "arviz")

    if int(arviz.__version__.split(".")[0]) >= 1:
        return data_tree(results)
    groups: dict[str, Any] = arviz_groups(results, results_of(results))
    return arviz.InferenceData(attrs=attributes_of(results), **groups)


def data_tree(results: Result | ManyResults) -> Any:
    """The groups of `arviz_groups` as one tree: what ArviZ 1 calls its inference data."""
    import xarray

    tree = xarray.DataTree.from_dict(arviz_groups(results, results_of(results)))
    tree.attrs.update(attributes_of(results))
    return tree


def results_of(results: Result | ManyResults) -> list[Result]:
    """Each by itself, with its draws of the parameters."""
    if isinstance(results, Result):
        return [results]
    if not results.runs.settings.has_positions:
        raise ThermoclineError(DROPPED)
    return list(results)


def arviz_groups(results: Result | ManyResults, each: list[Result]) -> dict[str, Any]:
    """Equally weighted draws as ArviZ expects them, beside the weighted draws that they were made from.

    `posterior` and `sample_stats` belong together, draw by draw; so do `weighted_posterior` and `draws`, which are
    as the run left them. `diagnostics` holds the weighted effective sizes and R-hat: ArviZ's own see
    the repetitions that resampling makes, and mislead. Many targets have a dimension `target` in front, and a row
    each in `evidence`. Their equally weighted draws are as many as the longest run has; weighted ones are as they were
    drawn, and where a target has fewer than others the rest is NaN.
    """
    labels, targets = each[0].info.labels, None if isinstance(results, Result) else results.index
    length = max(result.draws.log_ratio.shape[1] for result in each)
    index = [resampled_in_order(result, length) for result in each]
    pairs = list(zip(each, index, strict=True))
    posterior = [_taken(result.pool, own) for result, own in pairs]
    statistics = [_taken(_statistics(result), own) for result, own in pairs]
    draws = [{name: leaf for name, leaf in result.draws._asdict().items() if leaf.size} for result in each]
    groups = {
        "posterior": dataset(posterior, targets, labels),
        "sample_stats": dataset(statistics, targets),
        "weighted_posterior": dataset([result.parameters for result in each], targets, labels),
        "draws": dataset(draws, targets),
    }
    if not isinstance(results, Result):
        return groups | {"evidence": _evidence(results)}
    if results.log_likelihood:
        groups["log_likelihood"] = dataset([results.log_likelihood], None, labels)
    return groups | {"diagnostics": _diagnostics(results)}


def _evidence(results: ManyResults) -> Any:
    import xarray

    rows = {"verdict": np.array(results.verdicts, str), "num_draws": results.runs.by_target.num_draws[results.index]}
    if results.log_evidences is not None:
        rows |= {f"log_evidence_{name}": column for name, column in vars(results.log_evidences).items()}
    return xarray.Dataset({name: ("target", column) for name, column in rows.items()}, coords={"target": results.index})


def leading_dims(targets: np.ndarray | None) -> tuple[str, ...]:
    return ("chain", "draw") if targets is None else ("target", "chain", "draw")


def stored_names(names: Any, dims: tuple[str, ...] = ("chain", "draw")) -> dict[str, str]:
    """A name that netCDF allows and no dimension has, for every name."""
    taken, stored = {*dims, "diagnostic"}, {}
    for name in names:
        safe = UNSAFE.sub("__", name) or "_"
        while safe in taken:
            safe += "_"
        taken.add(safe)
        stored[name] = safe
    return stored


def _statistics(result: Result) -> dict[str, np.ndarray]:
    """Of the pool's draws by name; a draw of the base has an r, a beta of zero, and nothing that is of a move."""
    flat = {name: getattr(result.draws, ours).ravel() for name, ours in STATISTICS.items()}
    if result.states is None:
        return flat
    number, log_ratio = result.base_draws.log_ratio.size, result.base_draws.log_ratio
    known = {"inverse_temperature": np.zeros(number), "log_ratio": log_ratio, "diverging": np.zeros(number, bool)}
    nothing = np.full(number, np.nan)
    return {name: np.concatenate([known.get(name, nothing), values]) for name, values in flat.items()}


def _taken(variables: dict[str, np.ndarray], index: np.ndarray) -> dict[str, np.ndarray]:
    """Variables at some draws of the pool; NaN, where there is nothing to take."""
    taken = {name: values[index] for name, values in variables.items()}
    return taken if index.min() >= 0 else {name: values * np.nan for name, values in taken.items()}


def dataset(
    each: list[dict[str, np.ndarray]], targets: np.ndarray | None = None, labels: Labels | None = None
) -> Any:
    """Variables (chain, draw) of each target under names that can be stored; `long_name` keeps the true one.

    Without `targets` there is one, and no dimension over them. `labels` gives dims and coords that the front end knows.
    """
    import xarray

    longest = max(each, key=lambda named: next(iter(named.values())).shape[1])
    leading = leading_dims(targets)
    stored = stored_names(longest, leading)
    chains, draws = next(iter(longest.values())).shape[:2]
    coords: dict[str, Any] = {} if targets is None else {"target": targets}
    coords |= {"chain": np.arange(chains), "draw": np.arange(draws)}
    given, sizes, arrays = labels or Labels(), dict.fromkeys(leading, -1), {}
    for name, values in longest.items():
        dims = own_dims(stored[name], values[0, 0])
        wanted = tuple(given.dims.get(name, ()))
        if _are_usable(wanted, values.shape[2:], sizes, stored):
            dims = wanted
            sizes |= dict(zip(wanted, values.shape[2:], strict=True))
            coords |= {dim: given.coords[dim] for dim in dims if len(given.coords.get(dim, ())) == sizes[dim]}
        whole = values if targets is None else stacked([named[name] for named in each])
        arrays[stored[name]] = (*leading, *dims), whole, {"long_name": name}
    return xarray.Dataset(arrays, coords=coords)


def _are_usable(dims: tuple[str, ...], shape: tuple[int, ...], sizes: dict[str, int], stored: dict[str, str]) -> bool:
    """Whether given names of axes fit the shape, can be stored, and clash with nothing."""
    safe = [not UNSAFE.search(dim) and dim not in stored.values() for dim in dims]
    fits = [sizes.get(dim, length) == length for dim, length in zip(dims, shape, strict=False)]
    return len(dims) == len(shape) == len(set(dims)) and all(safe) and all(fits)


def _diagnostics(result: Result) -> Any:
    """Every component's weighted mean with its error, effective size and R-hat, along one dimension."""
    import xarray

    stored, variables, weighing = stored_names(result.parameters), {}, result.weighing
    columns = iter(result.components().values())
    for name, values in result.parameters.items():
        table = np.empty((len(DIAGNOSTICS), *values.shape[2:]))
        for place in np.ndindex(values.shape[2:]):
            own = weighing.describe(next(columns))
            table[(slice(None), *place)] = own.mean.value, own.mean.standard_error, own.effective_size, own.r_hat
        dims = "diagnostic", *own_dims(stored[name], table[0])
        variables[stored[name]] = dims, table, {"long_name": name}
    return xarray.Dataset(variables, coords={"diagnostic": list(DIAGNOSTICS)})


def own_dims(name: str, values: np.ndarray) -> tuple[str, ...]:
    return tuple(f"{name}_dim_{axis}" for axis in range(np.ndim(values)))


def attributes_of(results: Result | ManyResults) -> dict[str, Any]:
    """What a reader without thermocline should see first."""
    library = {"inference_library": "thermocline", "inference_library_version": version("thermocline")}
    joint = results.log_evidence
    answer = {} if joint is None else {"log_evidence": joint.value, "log_evidence_standard_error": joint.standard_error}
    return {**library, "verdict": results.verdict, **answer}
