"""Are the errors of the rivals right? Many seeds of one cheap asymmetric problem, against the exact answer.

python -m tests.calibrate_rivals [--seeds 100] [--problem NAME] [--method NAME ...]
"""

import argparse
from typing import Any

import thermocline as tc
from tests.calibrate import HEADER, Cell
from tests.problems import PROBLEMS

HMC = tc.HMC(num_steps=5)
SETTINGS: dict[str, tuple[Any, int]] = {  # with draws a chain
    "parallel": (tc.ParallelTempering(HMC, num_replicas=8), 200),
    "annealed": (tc.AnnealedImportance(HMC, num_temperatures=24), 64),
    "sequential": (tc.SequentialMonteCarlo(HMC, num_particles=32), 256),
}


def run_cell(problem_name: str, method_name: str, num_seeds: int) -> Cell:
    import numpy as np

    problem, (method, num_draws) = PROBLEMS[problem_name](), SETTINGS[method_name]
    rows, gradients = [], 0
    for seed in range(num_seeds):
        result = tc.sample(
            problem.target,
            base=problem.base,
            method=method,
            seed=seed,
            num_chains=8,
            num_warmup=150,
            num_draws=num_draws,
            progress=False,
        )
        evidence: Any = result.log_evidence
        z = evidence.z_score(problem.log_evidence), result.expectation(problem.function).z_score(problem.mean)
        rows.append((*z, evidence.standard_error, result.verdict == "ok"))
        gradients = result.info["num_gradients"]
    columns = (np.array(column) for column in zip(*rows, strict=True))
    return Cell(problem_name, method_name, *columns, gradients)


def main() -> None:
    import thermocline.sample  # noqa: F401

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--problem", choices=list(PROBLEMS), default="mixture 2-D")
    parser.add_argument("--method", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    options = parser.parse_args()
    without_census()
    print(HEADER)
    for method in options.method:
        print(run_cell(options.problem, method, options.seeds).row(), flush=True)


def without_census() -> None:
    """The census of modes has no part in the errors, and would take most of the time."""
    import sys

    sys.modules["thermocline.sample"].survey = lambda *arguments: (None, 0)  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
