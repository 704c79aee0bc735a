"""Results as plain numbers and words, for scripts that read JSON."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from thermocline.records import Estimate
from thermocline.report.summary import MOST_COMPONENTS
from thermocline.results.many import ManyResults
from thermocline.results.result import Result


def as_dict(result: Result | ManyResults) -> dict[str, Any]:
    """The answer and what it rests on, of one target or of many."""
    answer = result.log_evidence
    of_all = {"verdict": result.verdict, "log_evidence": None if answer is None else vars(answer)}
    own = _of_many(result) if isinstance(result, ManyResults) else _of_one(result)
    return of_all | {"checks": [vars(check) for check in result.checks]} | own


def _of_one(result: Result) -> dict[str, Any]:
    """Caveats, modes, the first parameters and what was run."""
    chains, draws = result.draws.log_ratio.shape
    means = {name: result.weighing.mean(pair) for name, pair in result.components(MOST_COMPONENTS).items()}
    return {
        "caveats": list(result.info.caveats),
        "modes": [vars(mode) for mode in result.modes],
        "parameters": {
            name: {"mean": mean.value, "standard_error": mean.standard_error} for name, mean in means.items()
        },
        "run": {"chains": chains, "draws": draws} | asdict(result.info),
    }


def _of_many(results: ManyResults) -> dict[str, Any]:
    """Each target's answer, and what was run."""
    runs, each, bias = results.runs, results.log_evidences, results.bias
    return {
        "verdicts": results.verdicts,
        "log_evidences": None if each is None else vars(each),
        "bias": None if bias is None else vars(bias),
        "targets": results.index,
        "run": {
            "chains": runs.num_chains,
            "draws": runs.known.num_draws[results.index],
            "method": runs.settings.method_name,
            "seed": runs.settings.seed,
        },
    }


def to_json(value: Any) -> str:
    """Strict JSON: what is not a finite number is null."""
    return json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Estimate):
        return _plain(vars(value))
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(np.asarray(value).tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)
