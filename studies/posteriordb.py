"""`tc.sample` on real Stan posteriors, against reference draws.

Every folder holds model.stan, data.json and reference.json. For each: seconds after the program is compiled (those of
the clock, and those of the processor, which other work on the machine does not lengthen), evaluations, verdict, the
largest |z| of a mean and the worst deviation against the reference (whose own errors count), and log Z against
quadrature where the density is Gaussian in all coordinates but one. With `--nuts`, PyStan's NUTS (4 x 1000) on the same
data beside it, by this Python or by that of an environment of PyStan's own.

    python -m studies.posteriordb FOLDER [--names NAME ...] [--seed 0] [--out build/posteriordb] [--nuts [PYTHON]]
"""

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import thermocline as tc
from studies.finding_runs import TooLongError, ended_after
from studies.partly_gaussian import log_evidence
from thermocline.evaluator import Evaluator

MOST_Z = 4.5
CLOSE = 0.05  # of a deviation, relative
Run = dict[str, Any]
NUTS = """
import json, pathlib, sys, time, stan
folder = pathlib.Path(sys.argv[1])
program, data = (folder / "model.stan").read_text(), json.loads((folder / "data.json").read_text())
posterior = stan.build(program, data=data, random_seed=time.time_ns() % 2**31)  # fits of a known seed are kept
began = time.perf_counter()
posterior.sample(num_chains=4, num_samples=1000)
print(time.perf_counter() - began)
"""


def run_once(folder: Path, seed: int, longest: float) -> Run:
    """One posterior; running out of time and raising are results too."""
    run: Run = {"name": folder.name}
    began = time.perf_counter()
    try:
        target = tc.from_stan(folder / "model.stan", folder / "data.json")
        run["seconds to compile"] = time.perf_counter() - began
        began, spent = time.perf_counter(), time.process_time()
        with ended_after(longest), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = tc.sample(target, seed=seed, progress=False)
            run["verdict"] = result.verdict
        run |= {"seconds": time.perf_counter() - began, "processor_seconds": time.process_time() - spent}
    except TooLongError:
        return run | {"verdict": "timeout", "seconds": time.perf_counter() - began}
    except Exception as error:  # noqa: BLE001
        sentence = f"{type(error).__name__}: {error}".splitlines()[0]
        return run | {"verdict": "raised", "seconds": time.perf_counter() - began, "message": sentence}
    reference = json.loads((folder / "reference.json").read_text())
    return run | measures(result) | against_reference(result, reference) | against_quadrature(target, result)


def measures(result: tc.Result) -> Run:
    estimate = result.log_evidence
    assert estimate is not None
    return {
        "log_evidence": [estimate.value, estimate.standard_error, estimate.dof],
        "evaluations": int(result.cost.evaluations.total),
        "phases": result.cost.seconds.shown(),
        "num_draws": int(result.draws.log_ratio.shape[1]),
        "dimension": int(result.draws.position.shape[-1]),
        "failed": [f"{check.name} {check.value:.3g}" for check in result.checks if not check.passed],
        "caveats": list(result.caveats),
        "notes": list(result.info.notes),
    }


def against_reference(result: tc.Result, reference: dict[str, dict[str, float]]) -> Run:
    """Z of every mean, and of every deviation its z and its ratio, by the reference's names."""
    found, pairs = {}, result.components()
    for name, known in reference.items():
        base, chains = pairs[from_one(name)]
        mean = result.weighing.mean((base, chains))
        squares = result.weighing.mean(((base - mean.value) ** 2, (chains - mean.value) ** 2))
        deviation, error = np.sqrt(squares.value), squares.standard_error / (2 * np.sqrt(squares.value))
        effective = (known["sd"] / known["mean_error"]) ** 2  # draws of the reference
        joint = np.hypot(error, known["sd"] / np.sqrt(2 * effective))
        found[name] = {
            "mean z": float((mean.value - known["mean"]) / np.hypot(mean.standard_error, known["mean_error"])),
            "deviation z": float((deviation - known["sd"]) / joint),
            "deviation ratio": float(deviation / known["sd"]),
        }
    return {"scalars": found}


def from_one(name: str) -> str:
    """Stan counts from one: `beta[1,2]` is ours `beta[0,1]`."""
    stem, bracket, rest = name.partition("[")
    return name if not bracket else f"{stem}[{','.join(str(int(part) - 1) for part in rest[:-1].split(','))}]"


def against_quadrature(target: tc.Target, result: tc.Result) -> Run:
    log_weight = result.draws.log_weight_target.ravel()
    weight = np.exp(log_weight - np.logaddexp.reduce(log_weight))
    rows = result.draws.position.reshape(len(weight), -1)
    mean = weight @ rows
    exact = log_evidence(Evaluator(target), mean, np.sqrt(weight @ (rows - mean) ** 2))
    if exact is None or result.log_evidence is None:
        return {}
    return {"exact_log_evidence": exact, "z": result.log_evidence.z_score(exact)}


def worst(run: Run) -> tuple[float, float, float]:
    """The largest |z| of a mean, and of the deviations outside 5 % the largest |z|, and the ratio farthest from 1."""
    each = run.get("scalars", {}).values()
    outside = [abs(one["deviation z"]) for one in each if abs(one["deviation ratio"] - 1) > CLOSE]
    ratios = [one["deviation ratio"] for one in each]
    return max(abs(one["mean z"]) for one in each), max(outside, default=0.0), max(ratios, key=lambda r: abs(r - 1))


def is_right(run: Run) -> bool:
    if "scalars" not in run or abs(run.get("z", 0.0)) > MOST_Z:
        return False
    mean_z, deviation_z, _ = worst(run)
    return mean_z < MOST_Z and deviation_z < MOST_Z


def with_nuts(folder: Path, python: str) -> Run:
    """Seconds of PyStan's NUTS, 4 x 1000 after a warm-up of 1000, the program compiled already."""
    finished = subprocess.run([python, "-c", NUTS, str(folder)], capture_output=True, text=True, check=False)
    if finished.returncode:
        return {"nuts_message": (finished.stderr.strip() or "no word").splitlines()[-1]}
    return {"nuts_seconds": float(finished.stdout.split()[-1])}


def kept(folder: Path, options: argparse.Namespace) -> Run:
    """The run of its file, or a new one."""
    path = options.out / f"{folder.name}_{options.seed}.json"
    if path.exists():
        return json.loads(path.read_text())
    run = run_once(folder, options.seed, options.seconds)
    if options.nuts:
        run |= with_nuts(folder, options.nuts)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(run))
    print(line(run), flush=True)
    return run


def line(run: Run) -> str:
    if "scalars" not in run:
        return f"{run['name']}: {run['verdict']} after {run['seconds']:.1f} s {run.get('message', '')}"
    said = "right" if is_right(run) else "WRONG"
    return f"{run['name']}: {run['verdict']}, {said}, {run['seconds']:.1f} s {run['phases']} {'; '.join(run['failed'])}"


def table(runs: list[Run]) -> Table:
    made = Table(
        *("posterior", "D", "verdict", "right", "s", "CPU s", "evaluations", "log Z", "z by quadrature"),
        *("mean |z|", "deviation |z| beyond 5 %", "worst ratio", "NUTS s"),
    )
    for run in runs:
        seconds, processor, nuts = (
            f"{run[name]:.1f}" if name in run else "" for name in ("seconds", "processor_seconds", "nuts_seconds")
        )
        if "scalars" not in run:
            made.add_row(run["name"], "", run["verdict"], "no", seconds, *[""] * 7, nuts)
            continue
        value, error, _ = run["log_evidence"]
        mean_z, deviation_z, ratio = worst(run)
        exact = f"{run['z']:+.1f}" if "z" in run else ""
        head = run["name"], str(run["dimension"]), run["verdict"], "yes" if is_right(run) else "no", seconds, processor
        numbers = f"{mean_z:.1f}", f"{deviation_z:.1f}", f"{ratio:.3f}", nuts
        made.add_row(*head, f"{run['evaluations']:,}", f"{value:.3f} ± {error:.3f}", exact, *numbers)
    return made


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--names", nargs="+", help="of posteriors; all unless given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("build/posteriordb"))
    parser.add_argument("--seconds", type=float, default=300.0, help="after which a run is ended")
    parser.add_argument("--nuts", nargs="?", const=sys.executable, help="PyStan's, by this Python or the given one")
    options = parser.parse_args(given)
    folders = sorted(path.parent for path in options.folder.glob("*/model.stan"))
    runs = [kept(folder, options) for folder in folders if options.names is None or folder.name in options.names]
    Console(width=180).print(table(runs))
    good = [run for run in runs if run["verdict"] == "ok" and is_right(run)]
    wrong = [run for run in runs if run["verdict"] == "ok" and not is_right(run)]
    seconds = [run["seconds"] for run in runs]
    processor = [run["processor_seconds"] for run in runs if "processor_seconds" in run]
    print(f"{len(runs)} runs: {len(good)} ok and right, {len(wrong)} ok and wrong; median {np.median(seconds):.1f} s, ")
    most = f"; of the processor {np.median(processor):.1f} and {max(processor):.1f} s" if processor else ""
    print(f"longest {max(seconds):.1f} s{most}")


if __name__ == "__main__":
    main()
