"""Every method on the paper's Boltzmann machines (section 7.2): one base, equally many gradients, exact answers.

The base of a machine is the Gaussian with the moments of a mixture of local fits (`tc.fit_moments` of
`tc.fit_local_mixture` with the paper's weights), fitted once. Every method then has the same budget of gradients,
warm-up and pilot included, and the same mover; sizes that a method finds for itself (replicas, temperatures) are those
of a first run with a seed of its own, which also compiles, measures the cost of a draw, and counts for nothing else.
The table gives root mean squared errors over repeats: of log Z, and over all elements of the mean and of the covariance
of x. The truth is the enumeration of all states. What `--out` holds already, of the same budget, is not run again.

    python benchmarks/rivals.py [--machines 0 1 2] [--repeats 10] [--gradients N] [--methods NAME ...] [--out FILE]
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import thermocline as tc
from experiments.boltzmann.machine import enumerate_machine
from experiments.common import REPOSITORY
from studies.study_boltzmann import authors_relaxation

HMC = tc.HMC(num_steps=8)
METHODS: dict[str, Any] = {
    "GibbsTempering": tc.GibbsTempering(HMC),
    "JointTempering": tc.JointTempering(HMC),
    "SimulatedTempering": tc.SimulatedTempering(HMC),
    "ParallelTempering": tc.ParallelTempering(HMC),
    "AnnealedImportance": tc.AnnealedImportance(HMC),
    "SequentialMonteCarlo": tc.SequentialMonteCarlo(HMC),
    "TemperedTransitions": tc.TemperedTransitions(HMC),
}
NUM_CHAINS, NUM_ENSEMBLES = 16, 4  # the latter of methods whose chain is many points at once
CACHE = REPOSITORY / "build" / "rivals"
WARMUP_SHARE = 0.2  # of the budget
FIRST_SEED = 2**31  # of the run that is not counted
FEWEST_DRAWS = 4  # a chain, that a run may have


class Problem(NamedTuple):
    """A machine's relaxation with what it is known to be, and the base that every method starts from."""

    number: int
    target: tc.Target
    base: tc.BaseFit
    log_evidence: float
    mean: np.ndarray
    covariance: np.ndarray


class Repeat(NamedTuple):
    """What one run of a method was off by, squared, and what it took."""

    machine: int
    method: str
    seed: int
    log_evidence: float  # NaN for a method without evidence
    mean: float
    covariance: float
    num_gradients: int
    seconds: float


def problem_of(number: int) -> Problem:
    """One of the paper's machines, relaxed, with its exact moments."""
    relaxation = authors_relaxation(number)
    exact = relaxation.moments(enumerate_machine(relaxation.machine))
    target = relaxation.target
    return Problem(number, target, base_of(number, target), exact.log_evidence, exact.mean, exact.covariance)


def base_of(index: int, target: tc.Target) -> tc.BaseFit:
    """The moments of a mixture of local fits; kept under build/, so that a run in pieces has one base."""
    cached = CACHE / f"base_{index}.npz"
    if not cached.exists():
        fit = tc.fit_moments(tc.fit_local_mixture(target, seed=index, importance=False))
        cached.parent.mkdir(parents=True, exist_ok=True)
        np.savez(cached, mean=fit.base.mean, scale_tril=fit.base.scale_tril, log_zeta=fit.log_zeta)
    with np.load(cached) as stored:
        return tc.BaseFit(tc.Gaussian(stored["mean"], stored["scale_tril"]), float(stored["log_zeta"]))


def chains_of(method: Any) -> int:
    return NUM_ENSEMBLES if isinstance(method, tc.ParallelTempering | tc.SequentialMonteCarlo) else NUM_CHAINS


def run(problem: Problem, method: Any, seed: int, num_warmup: int, num_draws: int) -> tc.Result:
    """`tc.sample` without its table of modes, which would add the same gradients to every method."""
    lengths: dict[str, Any] = {"num_chains": chains_of(method), "num_warmup": num_warmup, "num_draws": num_draws}
    return tc.sample(
        problem.target, base=problem.base, method=method, seed=seed, search=False, progress=False, **lengths
    )


def sized(method: Any, result: tc.Result) -> Any:
    """The method with the sizes that its first run has found, so that all repeats share its programs."""
    if result.schedule is None or method.is_sized:
        return method
    name = "num_replicas" if isinstance(method, tc.ParallelTempering) else "num_temperatures"
    return replace(method, **{name: len(result.schedule.betas)})


def planned(problem: Problem, method: Any, num_gradients: int) -> tuple[Any, int, int]:
    """The method, its warm-up steps and its draws a chain, such that a run takes about `num_gradients`."""
    unit = method.num_particles if isinstance(method, tc.SequentialMonteCarlo) else 1
    allowed = WARMUP_SHARE * num_gradients
    num_warmup, spent, cost = int(allowed / (chains_of(method) * (HMC.num_steps + 1))), 0.0, 1.0
    for _ in range(2):  # the second time of its size, and with the warm-up that size allows
        first = run(problem, method, FIRST_SEED, num_warmup, max(unit, FEWEST_DRAWS))
        spent, cost = first.cost.evaluations.warmup, first.draws.num_gradients.sum() * unit / num_draws_of(first)
        method, num_warmup = sized(method, first), int(num_warmup * min(1.0, allowed / spent))
    num_units = max(round((num_gradients - min(spent, allowed)) / cost), 1)
    return method, num_warmup, max(unit * num_units, FEWEST_DRAWS)


def num_draws_of(result: tc.Result) -> int:
    """A chain."""
    return result.draws.log_ratio.shape[1]


def repeated(problem: Problem, name: str, num_gradients: int, num_repeats: int) -> Iterator[Repeat]:
    method, num_warmup, num_draws = planned(problem, METHODS[name], num_gradients)
    for seed in range(num_repeats):
        began = time.perf_counter()
        result = run(problem, method, seed, num_warmup, num_draws)
        seconds = time.perf_counter() - began
        evidence = np.nan if result.log_evidence is None else float(result.log_evidence.value)
        mean, covariance = moments(result)
        yield Repeat(
            problem.number,
            name,
            seed,
            (evidence - problem.log_evidence) ** 2,
            float(np.mean((mean - problem.mean) ** 2)),
            float(np.mean((covariance - problem.covariance) ** 2)),
            result.cost.evaluations.total,
            seconds,
        )


def moments(result: tc.Result) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the draws as they are weighted for the target."""
    position = result.draws.position.reshape(-1, result.draws.position.shape[-1])
    log_weight = result.draws.log_weight_target.ravel()
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = weight @ position
    centred = position - mean
    return mean, (centred.T * weight) @ centred


def row(repeats: list[Repeat]) -> list[str]:
    """Root mean squared errors with their own standard errors, gradients and seconds (medians)."""
    cells = []
    for name in ("log_evidence", "mean", "covariance"):
        squares = np.array([getattr(repeat, name) for repeat in repeats])
        rms = float(np.sqrt(np.mean(squares)))
        error = float(np.std(squares, ddof=1) / np.sqrt(squares.size) / (2 * rms)) if squares.size > 1 else np.nan
        cells.append("none" if np.isnan(rms) else f"{rms:.3f} ± {error:.3f}")
    gradients, seconds = (np.median([getattr(r, name) for r in repeats]) for name in ("num_gradients", "seconds"))
    return [*cells, f"{gradients / 1e6:.2f}", f"{seconds:.1f}"]


def show(repeats: list[Repeat], console: Console) -> None:
    """One table a machine and one of all, as many as there is something in."""
    machines = sorted({repeat.machine for repeat in repeats})
    for chosen in [*([machine] for machine in machines), *([machines] if len(machines) > 1 else [])]:
        title = f"machine{'s' if len(chosen) > 1 else ''} {', '.join(map(str, chosen))}"
        table = Table("method", "log Z", "mean", "covariance", "gradients / 10⁶", "seconds", title=title)
        for name in METHODS:
            rows = [repeat for repeat in repeats if repeat.method == name and repeat.machine in chosen]
            if rows:
                table.add_row(name, *row(rows))
        console.print(table)


def load(path: Path | None, num_gradients: int) -> list[Repeat]:
    """What an earlier run with this budget has stored."""
    if path is None or not path.exists():
        return []
    stored = json.loads(path.read_text())
    return [Repeat(**repeat) for repeat in stored["repeats"]] if stored["budget"] == num_gradients else []


def store(path: Path | None, num_gradients: int, repeats: list[Repeat]) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        stored = {"budget": num_gradients, "repeats": [repeat._asdict() for repeat in repeats]}
        path.write_text(json.dumps(stored, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--gradients", type=int, default=400_000)
    parser.add_argument("--out", type=Path, help="a JSON file for every repeat")
    options = parser.parse_args()
    repeats = load(options.out, options.gradients)
    for index in options.machines:
        known = {repeat.method for repeat in repeats if repeat.machine == index}
        missing = [name for name in options.methods if name not in known]
        problems = [problem_of(index)] if missing else []
        for problem, name in product(problems, missing):
            new = list(repeated(problem, name, options.gradients, options.repeats))
            print(f"machine {index}, {name}: {'  '.join(row(new))}", flush=True)
            repeats.extend(new)
            store(options.out, options.gradients, repeats)
    show(repeats, Console(width=110))


if __name__ == "__main__":
    main()
