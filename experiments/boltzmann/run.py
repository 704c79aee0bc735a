"""The paper's section 7.2 and Figure 2: errors of log Z, mean and covariance against run time."""

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from experiments.boltzmann.authors import authors_machine, log_partition_of
from experiments.boltzmann.figures import draw_errors, draw_projection
from experiments.boltzmann.study import FULL, QUICK, Form, names_of, study
from experiments.boltzmann.tables import (
    black_box_table,
    comparison_table,
    costs_table,
    curves_of,
    errors_table,
    machines_table,
)
from experiments.common import REPOSITORY, options, store

FOLDER = Path(__file__).parent


def part(form: Form, parts: Path, is_authors: bool, index: int) -> dict[str, Any]:
    """What is known of one machine: what an earlier run of the same form left, and the rest measured."""
    file, setting = parts / f"machine-{index}.json", json.loads(json.dumps(form._asdict()))
    stored = json.loads(file.read_text()) if file.exists() else {}
    known = stored["measured"] if stored.get("setting") == setting else {"runs": {}}
    if set(names_of(form)) <= set(known["runs"]):
        return known

    def keep(measured: dict[str, Any]) -> None:
        parts.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".new").write_text(json.dumps({"setting": setting, "measured": measured}))
        file.with_suffix(".new").replace(file)

    return study(form, index, authors_machine(index).machine if is_authors else None, known["runs"], keep)


def main(form: Form, out: Path, parts: Path, *, is_authors: bool = False, num_processes: int = 1) -> dict[str, Any]:
    """Measure every machine, several at a time, and write figures, tables and `result.json` into `out`."""
    measure = partial(part, form, parts, is_authors)
    if num_processes == 1:
        machines = list(map(measure, range(form.num_machines)))
    else:
        with ProcessPoolExecutor(num_processes, get_context("spawn")) as pool:
            machines = list(pool.map(measure, range(form.num_machines)))
    out.mkdir(parents=True, exist_ok=True)
    curves = curves_of(machines, form)
    draw_errors(curves, out / "figure.png")
    draw_projection(out / "projection.png")
    tables = {
        "machines": machines_table(machines),
        "errors": errors_table(curves),
        "comparisons": comparison_table(curves),
        "costs": costs_table(machines, form),
        "black box": black_box_table(machines),
    }
    numbers = {"setting": form._asdict(), "machines": machines}
    store(FOLDER, out, numbers, tables)
    print(*(f"\n{name}\n{table}" for name, table in tables.items()), sep="\n")
    return numbers


def check_authors(num_machines: int) -> None:
    """Whether our enumeration gives the log Z_B that the authors' stored moments imply."""
    for index in range(num_machines):
        theirs, ours = log_partition_of(authors_machine(index))
        print(f"authors' machine {index}: log Z_B {theirs:.5f} by their moments, {ours:.5f} by ours, "
              f"difference {ours - theirs:+.1e}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--authors", action="store_true", help="the authors' machines (THERMOCLINE_DATA), in build/")
    parser.add_argument("--processes", type=int, default=min(2, len(os.sched_getaffinity(0))), help="at a time")
    given = options(FOLDER, parser)
    own = parser.parse_args()
    kind = ("authors-" if own.authors else "") + ("quick" if given.quick else "full")
    build = REPOSITORY / "build" / "paper-boltzmann"
    out = build / "authors" if own.authors and own.out is None else given.out
    form = QUICK if given.quick else FULL
    if own.authors:
        check_authors(form.num_machines)
    main(form, out, build / f"parts-{kind}", is_authors=own.authors, num_processes=own.processes)
