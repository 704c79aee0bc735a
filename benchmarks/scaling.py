"""A model of time against the number of workers, fitted to what benchmarks.workers has measured, and what it says.

    elapsed(W) = N max(C / min(W, cores), K, n / s)

N targets that take C seconds of a worker's processor and K of the coordinator's each, in n tasks a target, on a
scheduler that hands out s tasks a second: the three overlap, because several groups of blocks are under way. C and K
are fitted to processor seconds, which other processes on the machine disturb little; s is what a scheduler did whose
workers sleep; n is counted. Elapsed seconds are not fitted but predicted, and printed beside what they were.

    python -m benchmarks.scaling [--kept build/workers.jsonl]
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

MANY, WORKERS = 10**6, (1, 10, 100, 1000)


class Model(NamedTuple):
    """Seconds a target of a worker and of the coordinator, tasks a target, and tasks a second of the scheduler."""

    worker: float
    coordinator: float
    tasks: float
    rate: float

    def parts(self, number: int, num_cores: int) -> dict[str, float]:
        """Seconds that each of the three alone would take."""
        return {
            "workers": number * self.worker / num_cores,
            "coordinator": number * self.coordinator,
            "scheduler": number * self.tasks / self.rate,
        }

    def elapsed(self, number: int, num_cores: int) -> float:
        return max(self.parts(number, num_cores).values())


def fitted(lines: list[dict[str, Any]]) -> Model:
    """By least squares through the origin, over all runs; the scheduler's rate is the largest that was reached."""

    def slope(name: str) -> float:
        runs = [line for line in lines if line["what"] == "many"]
        targets, spent = (np.array([line[key] for line in runs]) for key in ("targets", name))
        return float(targets @ spent / (targets @ targets))

    travel = [line for line in lines if line["what"] == "travel"][-1]
    rates = [line["tasks"] / line["elapsed"] for line in lines if line["what"] == "simulated"]
    return Model(slope("cpu_workers"), slope("cpu_coordinator"), travel["tasks"] / travel["targets"], max(rates))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kept", type=Path, default=Path("build") / "workers.jsonl")
    lines = [json.loads(line) for line in parser.parse_args().kept.read_text().splitlines()]
    model, console = fitted(lines), Console(width=110)
    console.print(
        f"C {model.worker:.4f} s, K {model.coordinator:.4f} s a target; n {model.tasks:.2f} tasks a target, "
        f"s {model.rate:.0f} tasks a second", soft_wrap=True)  # fmt: skip
    beside = Table("workers", "targets", "seconds measured", "by the model", "over it")
    for line in lines:
        if line["what"] == "many":
            said = model.elapsed(line["targets"], min(line["workers"], line["cores"]))
            shown = f"{line['elapsed']:.1f}", f"{said:.1f}", f"{line['elapsed'] / said - 1:+.0%}"
            beside.add_row(str(line["workers"]), str(line["targets"]), *shown)
    console.print(beside)
    beyond = Table("workers", *model.parts(1, 1), "hours", title=f"{MANY:,} targets, each worker with a core (model)")
    for number in WORKERS:
        hours = [f"{seconds / 3600:.2f}" for seconds in model.parts(MANY, number).values()]
        beyond.add_row(str(number), *hours, f"{model.elapsed(MANY, number) / 3600:.2f}")
    console.print(beyond)
    console.print(f"It stops scaling at {model.worker / model.coordinator:.0f} workers for the coordinator, at "
                  f"{model.worker * model.rate / model.tasks:.0f} for the scheduler.", soft_wrap=True)  # fmt: skip


if __name__ == "__main__":
    main()
