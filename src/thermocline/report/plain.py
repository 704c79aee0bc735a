"""A result as plain numbers and words, for scripts that read JSON."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from thermocline.records import Estimate
from thermocline.report.summary import MOST_COMPONENTS
from thermocline.results.result import Result


def as_dict(result: Result) -> dict[str, Any]:
    """The answer, the checks, the modes, the first parameters and what was run."""
    chains, draws = result.draws.log_ratio.shape
    means = {name: result.weighing.mean(pair) for name, pair in result.components(MOST_COMPONENTS).items()}
    return {
        "verdict": result.verdict,
        "log_evidence": None if result.log_evidence is None else vars(result.log_evidence),
        "caveats": list(result.info.caveats),
        "checks": [vars(check) for check in result.checks],
        "modes": [vars(mode) for mode in result.modes],
        "parameters": {
            name: {"mean": mean.value, "standard_error": mean.standard_error} for name, mean in means.items()
        },
        "run": {"chains": chains, "draws": draws} | asdict(result.info),
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
