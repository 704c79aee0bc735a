"""Reading a result that was saved; `export.save` writes it."""

import json
from pathlib import Path
from typing import Any

from thermocline.records import BaseDraws, Estimate, restored
from thermocline.results import storage
from thermocline.results.many_file import loaded
from thermocline.results.result import Continuation, Result
from thermocline.support.errors import ThermoclineError


def load(path: str | Path) -> Any:
    """The Result, or the ManyResults, that was saved; executes nothing, and answers what needs no new evaluation."""
    groups, attributes = storage.read_groups(path)
    try:
        header = json.loads(attributes["thermocline"])
        if "many" in header:
            return loaded(groups)
        arrays, names = groups["thermocline"], header["names"]
        run = storage.decode(header["run"], arrays)
        return Result(
            restored(groups["draws"]),
            {name: groups["weighted_posterior"][stored] for name, stored in names["parameters"].items()},
            {name: groups["unconstrained"][stored] for name, stored in names["unconstrained"].items()},
            storage.decode(header["template"], arrays),
            run["law"],
            run["schedule"],
            header["log_zeta"],
            Estimate(*header["log_support"]),
            BaseDraws(*run["base_draws"]),
            storage.decode(header["info"], arrays),
            Continuation(*run["continuation"]),
            run["mode_table"],
            run["mode_locations"],
            run.get("log_likelihood", {}),
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise ThermoclineError(f"{path} is damaged, or of another version of thermocline: {error!r}.") from error
