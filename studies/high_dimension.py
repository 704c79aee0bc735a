"""`tc.sample` with one and two thousand parameters.

A linear-Gaussian hierarchy of regions, districts and schools, whose log Z and moments are exact; and the stochastic
volatility of the galleries over 1998 days, in increments and in levels, against a long run of NumPyro's NUTS, which is
made once and kept beside the runs. Each run is a process's own: its peak of memory is that of the process.

    python -m studies.high_dimension --names NAME [--seed 0] [--out build/high_dimension]
"""

# pyright: reportIndexIssue=false, reportAttributeAccessIssue=false, reportOperatorIssue=false
# (what numpyro.sample returns is typed as any number)

import argparse
import json
import resource
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro import deterministic, plate, sample
from rich.console import Console
from rich.table import Table
from scipy import stats

import thermocline as tc
from studies import galleries_numpyro
from studies.finding_runs import TooLongError, ended_after
from studies.galleries import nuts
from studies.posteriordb import Run, against_reference, is_right, measures, worst
from studies.tables import store

LONGEST, LARGEST = 600.0, 4.0  # seconds and gigabytes that a run may take
SPREADS, NOISE = (5.0, 2.0, 1.0, 0.7), 1.2  # of all, regions, districts and schools; of a school's score
NUM_DAYS, NUM_DRAWS = 1998, 1000
HEADER = ("model", "parameters", "verdict", "right", "s", "GB", "log Z", "exact", "worst z of a mean", "of a deviation")


def hierarchy(scores):
    """Nine regions of ten districts of ten schools, and what they have in common."""
    level = sample("all", dist.Normal(0, SPREADS[0]))[None]
    for name, spread in zip(("region", "district", "school"), SPREADS[1:], strict=True):
        above = jnp.repeat(level, 9 if name == "region" else 10)
        with plate(f"{name}s", above.size):
            level = sample(name, dist.Normal(above, spread))
    with plate("schools", level.size):
        sample("score", dist.Normal(level, NOISE), obs=scores)


def loadings() -> np.ndarray:
    """What each parameter of the hierarchy, a row, has of the independent deviations."""
    below = [np.kron(np.eye(number), np.ones((each, 1))) for number, each in ((1, 1), (1, 9), (9, 10), (90, 10))]
    rows = [np.zeros((1, 0))]
    for spread, step in zip(SPREADS, below, strict=True):
        rows.append(np.hstack([step @ rows[-1], spread * np.eye(len(step))]))
    width = rows[-1].shape[1]
    return np.vstack([np.hstack([row, np.zeros((len(row), width - row.shape[1]))]) for row in rows[1:]])


def scores() -> np.ndarray:
    rng, loading = np.random.default_rng(11), loadings()
    return loading[-900:] @ rng.normal(size=loading.shape[1]) + NOISE * rng.normal(size=900)


def exact(scores: np.ndarray) -> tuple[float, dict[str, dict[str, float]]]:
    """Log Z and the moments of every parameter, as a reference without error."""
    loading = loadings()
    of_scores = loading[-900:] @ loading[-900:].T + NOISE**2 * np.eye(900)
    gain = np.linalg.solve(of_scores, loading[-900:] @ loading.T).T
    means, variances = gain @ scores, np.diag(loading @ loading.T - gain @ loading[-900:] @ loading.T)
    numbers = {"region": 9, "district": 90, "school": 900}
    names = ["all", *(f"{name}[{i + 1}]" for name, number in numbers.items() for i in range(number))]
    known = {
        name: {"mean": float(mean), "sd": float(variance**0.5), "mean_error": 1e-9}
        for name, mean, variance in zip(names, means, variances, strict=True)
    }
    together: Any = stats.multivariate_normal
    return float(together.logpdf(scores, np.zeros(900), of_scores)), known


def returns() -> np.ndarray:
    """Daily returns in percent whose log volatility comes back to its mean."""
    rng, level, levels = np.random.default_rng(12), 0.0, []
    for shock in rng.normal(0, 0.15, NUM_DAYS):
        level = 0.98 * level + shock
        levels.append(level)
    return np.exp(np.array(levels)) * rng.standard_t(8, NUM_DAYS)


def increments(returns):
    """The volatility of the galleries by its daily steps, in units of their deviation."""
    step, freedom = sample("step", dist.Exponential(10)), sample("freedom", dist.Gamma(2, 0.1))
    with plate("day", len(returns)):
        level = deterministic("volatility", step * jnp.cumsum(sample("increment", dist.Normal(0, 1))))
        sample("returns", dist.StudentT(freedom, 0, jnp.exp(level)), obs=returns)


class Case(NamedTuple):
    """A model and its data."""

    model: Callable[..., None]
    data: Callable[[], dict[str, np.ndarray]]


CASES = {
    "hierarchy": Case(hierarchy, lambda: {"scores": scores()}),
    "volatility by increments": Case(increments, lambda: {"returns": returns()}),
    "volatility by levels": Case(galleries_numpyro.volatility, lambda: {"returns": returns()}),
}


def reference(folder: Path) -> dict[str, dict[str, float]]:
    """Of the volatility by NUTS, which likes levels better here; made before any run is measured."""
    path = folder / "reference.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        made = nuts(galleries_numpyro.volatility, {"returns": returns()}, (), NUM_DRAWS)
        path.write_text(json.dumps(made))
    known = json.loads(path.read_text())
    print(f"reference: {known['seconds']:.0f} s, {known['divergences']} divergences, least ESS {known['ess']:.0f}")
    return known["scalars"]


def run_once(name: str, seed: int, known: dict[str, dict[str, float]], log_evidence: float | None) -> Run:
    """One model; running out of time is a result too."""
    run: Run = {"name": name}
    began = time.perf_counter()
    try:
        target = tc.from_numpyro(CASES[name].model, **CASES[name].data())
        with ended_after(LONGEST), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = tc.sample(target, seed=seed, progress=False)
            run["verdict"] = result.verdict
    except TooLongError:
        return run | {"verdict": "timeout", "seconds": time.perf_counter() - began, "gigabytes": gigabytes()}
    run |= {"seconds": time.perf_counter() - began, "gigabytes": gigabytes()} | measures(result)
    if log_evidence is not None and result.log_evidence is not None:
        run |= {"exact_log_evidence": log_evidence, "z": result.log_evidence.z_score(log_evidence)}
    return run | against_reference(result, known)


def gigabytes() -> float:
    """Most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def kept(name: str, seed: int, folder: Path) -> Run:
    """The run of its file, or a new one."""
    path = folder / f"{name.replace(' ', '_')}_{seed}.json"
    if not path.exists():
        log_evidence, known = exact(scores()) if name == "hierarchy" else (None, reference(folder))
        run = run_once(name, seed, known, log_evidence)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(run))
    return json.loads(path.read_text())


def row(run: Run) -> list[str]:
    size = f"{run['seconds']:.0f}", f"{run['gigabytes']:.1f}"
    if "scalars" not in run:
        return [run["name"], "", run["verdict"], "no", *size, *[""] * 4]
    value, error, _ = run["log_evidence"]
    mean_z, deviation_z, _ = worst(run)
    known = f"{run['exact_log_evidence']:.3f}" if "z" in run else ""
    head = run["name"], f"{run['dimension']:,}", run["verdict"], "yes" if is_right(run) else "no"
    return [*head, *size, f"{value:.3f} ± {error:.3f}", known, f"{mean_z:.1f}", f"{deviation_z:.1f}"]


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--names", nargs="+", choices=list(CASES), default=list(CASES), metavar="NAME")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("build/high_dimension"))
    options = parser.parse_args(given)
    runs = [kept(name, options.seed, options.out) for name in options.names]
    made = Table(*HEADER)
    for run in runs:
        made.add_row(*row(run))
        print(f"{run['name']}: {'; '.join(run.get('failed', []))} {run.get('phases', '')}")
    Console(width=150).print(made)
    if len(runs) == len(CASES):
        store("high-dimension", "python -m studies.high_dimension", HEADER, [row(run) for run in runs])


if __name__ == "__main__":
    main()
