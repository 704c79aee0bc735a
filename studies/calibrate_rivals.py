"""Are the errors of the rivals right, and how biased are those that say so? Many seeds against the exact answers.

python -m studies.calibrate_rivals [--seeds 100] [--problem NAME] [--method NAME ...]
"""

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

import thermocline as tc
from studies.calibrate import HEADER, Cell
from tests.problems import PROBLEMS, Problem, gaussian
from thermocline.experimental import AdiabaticMonteCarlo, ExtendedHamiltonian, Langevin

HMC = tc.HMC(num_steps=5)
SETTINGS: dict[str, tuple[Any, int]] = {  # with draws a chain
    "parallel": (tc.ParallelTempering(HMC, num_replicas=8), 200),
    "annealed": (tc.AnnealedImportance(HMC, num_temperatures=24), 64),
    "sequential": (tc.SequentialMonteCarlo(HMC, num_particles=32), 256),
}
BIASED: dict[str, tuple[Any, int]] = {
    "adiabatic": (AdiabaticMonteCarlo(HMC), 200),
    "langevin": (ExtendedHamiltonian(Langevin(step_size=0.5, is_adjusted=False)), 1000),
    "langevin-half-steps": (ExtendedHamiltonian(Langevin(step_size=0.25, is_adjusted=False)), 1000),
    "langevin-adjusted": (ExtendedHamiltonian(Langevin(step_size=0.5)), 1000),
}


def run(problem: Problem, setting: tuple[Any, int], seed: int) -> tc.Result:
    method, num_draws = setting
    options: dict[str, Any] = {"num_chains": 8, "num_warmup": 150, "num_draws": num_draws, "progress": False}
    return tc.sample(problem.target, base=problem.base, method=method, seed=seed, **options, search=False)


def run_cell(problem_name: str, method_name: str, num_seeds: int) -> Cell:
    problem = PROBLEMS[problem_name]()
    rows, gradients = [], 0
    for seed in range(num_seeds):
        result = run(problem, SETTINGS[method_name], seed)
        evidence: Any = result.log_evidence
        z = evidence.z_score(problem.log_evidence), result.expectation(problem.function).z_score(problem.mean)
        rows.append((*z, evidence.standard_error, result.verdict == "ok"))
        gradients = result.cost.evaluations.total
    log_z, mean, error, is_ok = (np.array(column) for column in zip(*rows, strict=True))
    return Cell(problem_name, method_name, log_z, mean, error, is_ok, gradients)


def print_bias(method_name: str, num_seeds: int) -> None:
    """Means over seeds of estimate less truth, on a Gaussian: of log Z, a mean and a variance relative to itself.

    The last column takes draws as they are, without weights, as adiabatic Monte Carlo was first published.
    """
    problem = gaussian()
    centre, variance = problem.mean, float(np.linalg.inv(problem.target.data["precision"])[0, 0])
    function = lambda x: (x[0] - centre) ** 2  # noqa: E731
    rows, verdicts = [], set()
    for seed in range(num_seeds):
        result = run(problem, BIASED[method_name], seed)
        off = np.nan if result.log_evidence is None else result.log_evidence.value - problem.log_evidence
        even = np.where(np.isfinite(result.draws.log_weight_target), 0.0, -np.inf)
        alike = replace(result, draws=result.draws._replace(log_weight_target=even))
        of_mean = result.expectation(problem.function).value - centre
        rows.append((off, of_mean, *(r.expectation(function).value / variance - 1 for r in (result, alike))))
        verdicts.add(result.verdict)
    means, errors = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(num_seeds)
    cells = "  ".join(f"{mean:+.4f} ± {error:.4f}" for mean, error in zip(means, errors, strict=True))
    print(f"{problem.name:16s} {method_name:20s} {num_seeds:4d}  {cells}  {'/'.join(sorted(verdicts))}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--problem", choices=list(PROBLEMS), default="mixture 2-D")
    parser.add_argument("--method", nargs="+", choices=[*SETTINGS, *BIASED], default=[*SETTINGS, *BIASED])
    options = parser.parse_args()
    print(HEADER)
    for method in [name for name in options.method if name in SETTINGS]:
        print(run_cell(options.problem, method, options.seeds).row(), flush=True)
    print(
        "problem          method               seeds bias of log Z      of the mean       of the variance   unweighted"
    )
    for method in [name for name in options.method if name in BIASED]:
        print_bias(method, options.seeds)


if __name__ == "__main__":
    main()
