"""The black box, `tc.sample(target, seed=s)` and nothing else, on targets with exact answers.

Every problem runs in a fresh process, so its first seed pays for compilation. The first table says how right, how
sure and how quick it is, and the totals what was wanted; the second shows targets on which "ok" is the wrong verdict.
All runs go to build/study.json as they finish. Exit status 1 when something wanted was missed.

    python -m studies.study [--seeds 10] [--problem NAME ...] [--processes 1] [--verbose]
"""

import argparse
import json
import math
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import thermocline as tc
from experiments.boltzmann.authors import machines_folder
from experiments.common import REPOSITORY
from studies.study_boltzmann import BOLTZMANN
from studies.study_problems import HARD, STUDY

WRONG = 4.0  # errors
TRUTH_DIGITS = 1e-6  # to which the truths are known
LONGEST_RUN, LONGEST_HARD_RUN = 300.0, 120.0  # seconds, after which a run is ended
MOST_HARD_SEEDS = 3
VERDICTS = ("ok", "suspect", "failed")

Run = dict[str, Any]


def run_once(problem: Any, seed: int, options: dict[str, Any]) -> Run:
    """One run and what is asked of it; an exception is a result of the study too."""
    began = time.perf_counter()
    try:
        result = tc.sample(problem.target, seed=seed, progress=False, **options)
        evidence: Any = result.log_evidence
        verdict, seconds = result.verdict, time.perf_counter() - began
    except Exception as error:  # noqa: BLE001
        sentence = f"{type(error).__name__}: {error}".splitlines()[0]
        kind = "refused" if isinstance(error, tc.ThermoclineError) else "raised"
        return {"verdict": kind, "seconds": time.perf_counter() - began, "advice": sentence}
    row: Run = {"verdict": verdict, "seconds": seconds, "gradients": result.cost.evaluations.total}
    row |= {"value": evidence.value, "standard_error": evidence.standard_error, "dof": evidence.dof}
    row |= {"truth": problem.log_evidence, "error": evidence.value - problem.log_evidence}
    row["z"] = evidence.z_score(problem.log_evidence)
    if getattr(problem, "function", None) is not None:
        row["z_mean"] = result.expectation(problem.function).z_score(problem.mean)
    row["failing"] = [check.name for check in result.checks if not check.passed]
    worst = max(result.checks, key=lambda check: VERDICTS.index(check.status))  # the first of them
    if not worst.passed:
        row |= {"check": f"{worst.name} {worst.value:.3g} (limit {worst.limit:.3g})", "advice": worst.advice}
    return row


def worker(name: str, first: int, last: int) -> None:
    """Seeds `first` to `last` - 1 of one problem: a line of JSON each."""
    problem = (STUDY | BOLTZMANN | HARD)[name]()
    for seed in range(first, last):
        row = {"problem": name, "seed": seed, "is_cold": seed == first, **run_once(problem, seed, _options(problem))}
        print(json.dumps(_finite(row)), flush=True)


def _options(problem: Any) -> dict[str, Any]:
    return getattr(problem, "options", {})


def _finite(row: Run) -> Run:
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}


def runs_of(name: str, num_seeds: int, limit: float) -> Iterator[Run]:
    """All seeds of a problem, from one process unless a run has to be ended or brings its process down."""
    first = 0
    while first < num_seeds:
        for row in _from_process(name, first, num_seeds, limit):
            yield row
            first += 1


def _from_process(name: str, first: int, last: int, limit: float) -> Iterator[Run]:
    """Runs of one fresh process; the one during which it died or exceeded the limit comes last, as such."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("JAX_")}
    command = [sys.executable, "-m", "studies.study", "--worker", name, str(first), str(last)]
    lines: queue.Queue[str] = queue.Queue()
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=REPOSITORY, env=environment
        )
        threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
        try:
            for seed in range(first, last):
                began = time.perf_counter()
                try:
                    line = lines.get(timeout=limit)
                except queue.Empty:
                    line = None
                if line:
                    yield json.loads(line)
                    continue
                log.seek(0)
                last_words = (log.read().strip().splitlines() or [""])[-1]
                verdict, advice = ("crashed", last_words) if line == "" else ("endless", f"ended after {limit:g} s")
                row = {"problem": name, "seed": seed, "is_cold": seed == first, "verdict": verdict, "advice": advice}
                yield row | {"seconds": time.perf_counter() - began}
                return
        finally:
            process.kill()
            process.wait()


def _read(stream: Any, lines: "queue.Queue[str]") -> None:
    for line in stream:
        lines.put(line)
    lines.put("")  # the process has ended


def column(runs: list[Run], key: str) -> np.ndarray:
    """One number a run; NaN where there is none."""
    return np.array([math.nan if run.get(key) is None else run[key] for run in runs], float)


def is_wrong(run: Run) -> bool:
    """By more than four of its errors."""
    return run.get("error") is not None and abs(run["error"]) > WRONG * (run["standard_error"] or 0.0) + TRUTH_DIGITS


def rmse(runs: list[Run]) -> float:
    """Of log Z, over the runs that gave one."""
    return math.sqrt(average(column(runs, "error") ** 2, np.mean))


def average(values: np.ndarray, function: Callable[[np.ndarray], Any] = np.median) -> float:
    """The median, or another average, of what is there."""
    values = values[np.isfinite(values)]
    return float(function(values)) if values.size else math.nan


def largest(values: np.ndarray) -> float:
    """Infinite where a run gave none."""
    return float(np.max(np.nan_to_num(values, nan=np.inf)))


HEADER = (
    f"{'problem':27s} runs  rmse    mean z  E mean z  error med/max   ok sus fail other  ok&wrong  gradients  "
    "seconds: cold  median    max"
)


def row_of(name: str, runs: list[Run]) -> str:
    counts = [sum(run["verdict"] == verdict for run in runs) for verdict in VERDICTS]
    errors, seconds = column(runs, "standard_error"), column(runs, "seconds")
    cold = average(np.array([run["seconds"] for run in runs if run["is_cold"]]))
    return (
        f"{name:27s} {len(runs):4d}  {rmse(runs):6.4f}  {average(column(runs, 'z'), np.mean):+6.2f}  "
        f"{average(column(runs, 'z_mean'), np.mean):+8.2f}  {average(errors):6.4f}/{largest(errors):6.4f} "
        f"{counts[0]:3d} {counts[1]:3d} {counts[2]:4d} {len(runs) - sum(counts):5d}  "
        f"{sum(run['verdict'] == 'ok' and is_wrong(run) for run in runs):8d}  "
        f"{average(column(runs, 'gradients')):9.1e}  {cold:13.1f}  {average(seconds):6.1f} {seconds.max():6.1f}"
    )


def detail(run: Run) -> str:
    value, error, off = (column([run], key)[0] for key in ("value", "standard_error", "error"))
    why = " · ".join(str(run[key]) for key in ("check", "advice") if run.get(key))
    return (
        f"  {run['problem']:27s} seed {run['seed']:2d}  {run['verdict']:8s} log Z {value:10.4f} ± {error:6.4f}  "
        f"off {off:+8.4f}  {run['seconds']:6.1f} s  {why}"
    )


def totals(runs: list[Run]) -> list[tuple[str, str, bool]]:
    """What was measured, what was wanted, and whether it was met."""
    share = np.mean([run["verdict"] == "ok" for run in runs])
    wrong = sum(run["verdict"] == "ok" and is_wrong(run) for run in runs)
    seconds, error = column(runs, "seconds"), largest(column(runs, "standard_error"))
    over = int(np.sum(~(column(runs, "standard_error") <= 0.05)))
    found = [
        (f"{share:.1%} of {len(runs)} runs ok", "at least 95 %", bool(share >= 0.95)),
        (f"{wrong} runs ok and wrong by more than {WRONG:g} errors", "none", wrong == 0),
        (f"largest standard error {error:.4f}, {over} runs over 0.05", "at most 0.05", over == 0),
        (f"median {average(seconds):.1f} s", "at most 20 s", average(seconds) <= 20),
        (f"longest {seconds.max():.1f} s", "at most 60 s", bool(seconds.max() <= 60)),
    ]
    relaxations = {name: [run for run in runs if run["problem"] == name] for name in BOLTZMANN}
    relaxations = {name: rows for name, rows in relaxations.items() if rows}
    if relaxations:
        together = [run for rows in relaxations.values() for run in rows]
        pooled, is_complete = rmse(together), bool(np.all(np.isfinite(column(together, "error"))))
        worst = max(relaxations, key=lambda name: np.nan_to_num(rmse(relaxations[name]), nan=np.inf))
        text = f"RMSE of log Z over all Boltzmann runs {pooled:.4f} (worst {worst}: {rmse(relaxations[worst]):.4f})"
        found.append((text, "at most 0.05", is_complete and pooled <= 0.05))
    return found


def run_all(
    names: list[str], num_seeds: int, limit: float, processes: int, on_run: Callable[[Run], None]
) -> Iterator[tuple[str, list[Run]]]:
    """Problems in order, each with its runs; `on_run` sees every run as it finishes."""

    def collect(name: str) -> list[Run]:
        runs = []
        for run in runs_of(name, num_seeds, limit):
            on_run(run)
            runs.append(run)
        return runs

    with ThreadPoolExecutor(processes) as pool:
        yield from zip(names, pool.map(collect, names), strict=True)


class Book:
    """All runs so far, on disk after each of them."""

    def __init__(self, path: Path, is_verbose: bool) -> None:
        self.path, self.is_verbose, self.runs, self.lock = path, is_verbose, [], threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)

    def add(self, run: Run) -> None:
        with self.lock:
            self.runs.append(run)
            partial = self.path.with_suffix(".part")
            partial.write_text(json.dumps(self.runs, indent=1))
            partial.replace(self.path)
            if self.is_verbose:
                print(detail(run), flush=True)


def chosen_names(asked: list[str] | None) -> tuple[list[str], list[str]]:
    """Problems of the first and of the second table; says so when the Boltzmann machines are not there."""
    names = [name for name in STUDY | BOLTZMANN if asked is None or name in asked]
    if not machines_folder().is_dir() and any(name in BOLTZMANN for name in names):
        print(f"NO BOLTZMANN RELAXATIONS: {machines_folder()} is absent; THERMOCLINE_DATA names another folder.")
        names = [name for name in names if name not in BOLTZMANN]
    return names, [name for name in HARD if asked is None or name in asked]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--problem", nargs="+", choices=list(STUDY | BOLTZMANN | HARD), metavar="NAME")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="a row for every run")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "build" / "study.json")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker[0], *map(int, options.worker[1:]))
        return 0
    names, hard_names = chosen_names(options.problem)
    book, is_missed = Book(options.out, options.verbose), False
    if names:
        print(HEADER, flush=True)
        for name, runs in run_all(names, options.seeds, LONGEST_RUN, options.processes, book.add):
            print(row_of(name, runs), flush=True)
        print()
        for text, wanted, is_met in totals(book.runs):
            print(f"{'met   ' if is_met else 'MISSED'}  {text} (wanted: {wanted})", flush=True)
            is_missed |= not is_met
    if hard_names:
        is_missed |= study_hard(hard_names, min(options.seeds, MOST_HARD_SEEDS), options.processes, book)
    return int(is_missed)


def study_hard(names: list[str], num_seeds: int, processes: int, book: Book) -> bool:
    """Targets on which "ok" is wrong; whether one that must be noticed was not, or a run did not end in order."""
    print('\nwhere the right verdict is not "ok"; a needle can be known only if a chain hits it', flush=True)
    misses = []
    for name, runs in run_all(names, num_seeds, LONGEST_HARD_RUN, processes, book.add):
        for run in runs:
            if not book.is_verbose:
                print(detail(run), flush=True)
            is_orderly = run["verdict"] in ("suspect", "failed")
            if not is_orderly and (HARD[name]().must_notice or run["verdict"] != "ok"):
                misses.append(f"{name} seed {run['seed']}: {run['verdict']}")
    print("MISSED  " + "; ".join(misses) if misses else 'met     none is "ok" that could have known better', flush=True)
    return bool(misses)


if __name__ == "__main__":
    sys.exit(main())
