"""Are the error bars right? Many seeds of every problem and method, against the exact answers.

Prints, for each cell, the mean and standard deviation of z = (estimate - truth)/error mapped through its
t law, the coverage of 95 % intervals, and the share of runs with verdict "ok"; and whether the cell is
inside the gate. A cell that misses is rerun once on fresh seeds, and only a second miss counts. Cells are kept as JSON,
and one that is there is not run again; `--store` puts the table into docs/calibration.md (`make tables`).

    python -m studies.calibrate [--seeds 200] [--problem NAME] [--method NAME] [--out build/calibration] [--store]
"""

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import thermocline as tc
from studies.study_cells import CELLS
from studies.study_problems import STUDY
from studies.tables import store
from tests.problems import PROBLEMS, Problem

METHODS: dict[str, Any] = {
    "gibbs": tc.GibbsTempering,
    "joint": tc.JointTempering,
    "simulated": tc.SimulatedTempering,
}
UNFIT = {  # one metric and step size for the whole path, a hundred fixed rungs: too little for a base 16 times too wide
    ("beta-binomial", "joint"),
    ("beta-binomial", "simulated"),
}
BLACK_BOX = ("banana", "funnel", "shells 2-D", "beta-bernoulli")  # no base, and the stopping rule on
FEWEST_FOR_EACH = 200  # seeds, from which every cell is gated on its own


class Cell(NamedTuple):
    """What the seeds of one problem and method gave."""

    problem: str
    method: str
    z: np.ndarray  # of log Z
    z_mean: np.ndarray  # of an expectation with a known value
    errors: np.ndarray
    is_ok: np.ndarray
    num_gradients: int

    @property
    def coverage(self) -> float:
        return float(np.mean(np.abs(self.z) < stats.norm.ppf(0.975)))

    @property
    def wrong_but_ok(self) -> int:
        return int(np.sum(self.is_ok & (np.abs(self.z) > 4)))

    def is_inside(self) -> bool:
        """The gate of a cell of 200 seeds; with fewer, only what chance can hardly do is a miss."""
        if self.z.size >= FEWEST_FOR_EACH:
            spread = self.z.std(ddof=1)
            return bool(abs(self.z.mean()) < 0.25 and 0.85 <= spread <= 1.2 and 0.90 <= self.coverage <= 0.985)
        level = 0.01 / len(cells_to_run())
        mean_p = 2 * stats.norm.sf(abs(self.z.mean()) * np.sqrt(self.z.size))
        tail = stats.chi2.cdf(np.sum((self.z - self.z.mean()) ** 2), self.z.size - 1)
        return bool(min(mean_p, 2 * tail, 2 * (1 - tail)) > level)

    def row(self) -> str:
        return (
            f"{self.problem:16s} {self.method:10s} {self.z.size:4d}  {self.z.mean():+5.2f}  {self.z.std(ddof=1):4.2f}  "
            f"{self.coverage:5.3f}  {self.z_mean.mean():+5.2f}  {self.z_mean.std(ddof=1):4.2f}  "
            f"{np.median(self.errors):6.4f}  "
            f"{self.is_ok.mean():4.2f}  {self.wrong_but_ok:3d}  {self.num_gradients:8.1e}  "
            f"{'inside' if self.is_inside() else 'MISSES'}"
        )

    def entries(self) -> list[str]:
        """The row as documents show it."""
        numbers = f"{self.z.mean():+.2f}", f"{self.z.std(ddof=1):.2f}", f"{self.coverage:.3f}"
        rest = f"{np.median(self.errors):.4f}", f"{self.is_ok.mean():.2f}", str(self.wrong_but_ok)
        return [self.problem, self.method, str(self.z.size), *numbers, *rest]


SHOWN = "problem", "method", "seeds", "mean z", "sd z", "coverage", "error of log Z", "ok", "ok, > 4 errors off"
HEADER = "problem          method     seeds mean z  sd z  cover  E mean  E sd  error   ok    ok&wrong gradients  gate"


def cells_to_run() -> list[tuple[str, str]]:
    given = [(problem, method) for problem in PROBLEMS for method in METHODS if (problem, method) not in UNFIT]
    return given + [(problem, "black box") for problem in (*BLACK_BOX, *CELLS)]


def run_cell(problem_name: str, method_name: str, seeds: range) -> Cell:
    problem, options = problem_and_options(problem_name, method_name)
    rows, gradients = [], 0
    for seed in seeds:
        result = tc.sample(problem.target, seed=seed, progress=False, **options, search=False)
        evidence: Any = result.log_evidence
        mean = result.expectation(problem.function)
        rows.append(
            (
                evidence.z_score(problem.log_evidence),
                mean.z_score(problem.mean),
                evidence.standard_error,
                result.verdict == "ok",
            )
        )
        gradients = result.cost.evaluations.total
    z, z_mean, errors, is_ok = (np.array(column) for column in zip(*rows, strict=True))
    return Cell(problem_name, method_name, z, z_mean, errors, is_ok, gradients)


def problem_and_options(problem_name: str, method_name: str) -> tuple[Any, dict[str, Any]]:
    """The problem, and what `sample` is told besides; for the black box, nothing or a base."""
    if problem_name in CELLS:
        return CELLS[problem_name]()
    if method_name == "black box":
        return STUDY[problem_name](), {}
    problem: Problem = PROBLEMS[problem_name]()
    return problem, {"base": problem.base, "method": METHODS[method_name](mover=tc.HMC(num_steps=problem.num_steps))}


def kept(folder: Path, problem: str, method: str, seeds: range) -> Cell:
    """The cell of its file, or a new one."""
    path = folder / f"{problem}_{method}_{seeds.start}_{seeds.stop}.json".replace(" ", "-")
    if not path.exists():
        made = run_cell(problem, method, seeds)._asdict()
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({name: np.asarray(value).tolist() for name, value in made.items()}))
    found: dict[str, Any] = json.loads(path.read_text())
    for name in ("z", "z_mean", "errors", "is_ok"):
        found[name] = np.array(found[name])
    return Cell(**found)


def gated(folder: Path, problem: str, method: str, num_seeds: int) -> tuple[list[Cell], bool]:
    """The cell, rerun once on fresh seeds if it misses; and whether it counts as a miss."""
    cells = [kept(folder, problem, method, range(num_seeds))]
    if not cells[0].is_inside():
        cells.append(kept(folder, problem, method, range(num_seeds, 2 * num_seeds)))
    return cells, not cells[-1].is_inside()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--problem", nargs="+", choices=[*PROBLEMS, *BLACK_BOX, *CELLS], metavar="NAME")
    parser.add_argument("--method", nargs="+", choices=[*METHODS, "black box"], default=[*METHODS, "black box"])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("build/calibration"))
    parser.add_argument("--store", action="store_true", help="the table, for the documents")
    options = parser.parse_args()
    chosen = [
        (problem, method)
        for problem, method in cells_to_run()
        if problem in (options.problem or [problem]) and method in options.method
    ]
    print(HEADER, flush=True)
    pooled, rows, misses, wrong = [], [], 0, 0
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(gated, options.out, problem, method, options.seeds) for problem, method in chosen]
        for future in futures:
            cells, is_miss = future.result()
            for cell in cells:
                print(cell.row(), flush=True)
                wrong += cell.wrong_but_ok
                rows.append(cell.entries())
            pooled.append(cells[-1].z)
            misses += is_miss
    if options.store:
        store("calibration", f"python -m studies.calibrate --seeds {options.seeds}", SHOWN, rows)
    z = np.concatenate(pooled)
    print(
        f"pooled over {z.size} runs: mean z {z.mean():+.3f}, sd z {z.std(ddof=1):.3f}; "
        f"{misses} cells outside the gate; {wrong} runs wrong by more than 4 errors with verdict ok"
    )
    return 1 if misses or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
