"""`tc.sample` on the models that fill the galleries of PyMC and NumPyro, against long runs of NumPyro's own NUTS.

Every model is written in both front ends with the same names, so that one reference serves both and their evidences
must agree: the last column is z of their difference. References are made once and kept beside the runs.

    python -m studies.galleries [--names NAME ...] [--front-ends numpyro pymc] [--seed 0] [--out build/galleries]
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import thermocline as tc
from studies.finding_runs import TooLongError, ended_after
from studies.galleries_data import GALLERIES
from studies.posteriordb import Run, against_reference, is_right, line, measures, worst
from studies.tables import store
from thermocline.support.precision import computing_in

SAME_POSTERIOR = {"schools": "schools_noncentred"}  # in coordinates that NUTS explores well
FRONT_ENDS = ("numpyro", "pymc")
NUM_DRAWS, NUM_CHAINS = 4000, 4
HEADER = ("model", "parameters", "NumPyro", "s", "PyMC", "s", "log Z", "z of the other's", "worst z of a mean")
MOST_DRAWS = {"ode": 1000}  # where a gradient is dear


def target_of(name: str, front_end: str) -> tc.Target:
    from studies import galleries_numpyro, galleries_pymc

    return {"numpyro": galleries_numpyro, "pymc": galleries_pymc}[front_end].target_of(name)


def reference(name: str, folder: Path) -> dict[str, dict[str, float]]:
    """Means and deviations by NumPyro's NUTS, of every number that is compared, counted from one as Stan does."""
    from studies.galleries_numpyro import MODELS

    name = SAME_POSTERIOR.get(name, name)
    path, gallery = folder / f"reference_{name}.json", GALLERIES[name]
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        made = nuts(MODELS[name], gallery.data, gallery.compared, MOST_DRAWS.get(name, NUM_DRAWS))
        path.write_text(json.dumps(made, indent=1))
    known = json.loads(path.read_text())
    seconds, ess = known["seconds"], known["ess"]
    print(f"reference {name}: {seconds:.0f} s, {known['divergences']} divergences, least ESS {ess:.0f}")
    return known["scalars"]


def nuts(model: Callable[..., None], data: dict[str, Any], compared: Sequence[str], num_draws: int) -> dict[str, Any]:
    """Means and deviations of the compared sites, or of all, by four chains of NumPyro's NUTS."""
    from numpyro.diagnostics import effective_sample_size
    from numpyro.infer import MCMC, NUTS

    began = time.perf_counter()
    with computing_in("float64"):
        kernel = NUTS(model, target_accept_prob=0.95)
        runs: dict[str, Any] = {"num_warmup": num_draws // 2, "num_samples": num_draws, "num_chains": NUM_CHAINS}
        sampler = MCMC(kernel, **runs, chain_method="vectorized", progress_bar=False)
        sampler.run(jax.random.key(1), **data)
        draws = {site: np.asarray(values) for site, values in sampler.get_samples(group_by_chain=True).items()}
        num_divergences = int(np.sum(sampler.get_extra_fields()["diverging"]))
    scalars, least = {}, np.inf
    for site in compared or draws:
        for place in np.ndindex(draws[site].shape[2:]):
            values = draws[site][(..., *place)]
            deviation, effective = float(values.std()), float(effective_sample_size(values))
            if deviation > 0:
                least = min(least, effective)
                stem = f"{site}[{','.join(str(i + 1) for i in place)}]" if place else site
                error = deviation / effective**0.5
                scalars[stem] = {"mean": float(values.mean()), "sd": deviation, "mean_error": error}
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "divergences": num_divergences, "ess": least, "scalars": scalars}


def run_once(name: str, front_end: str, options: argparse.Namespace) -> Run:
    """One model in one front end; running out of time and raising are results too."""
    run: Run = {"name": f"{name} {front_end}"}
    known = reference(name, options.out)
    began, cpu = time.perf_counter(), time.process_time()
    try:
        target = target_of(name, front_end)
        with ended_after(options.seconds), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = tc.sample(target, seed=options.seed, progress=False)
            run["verdict"] = result.verdict
        run |= {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
    except TooLongError:
        return run | {"verdict": "timeout", "seconds": time.perf_counter() - began}
    except Exception as error:  # noqa: BLE001
        sentence = f"{type(error).__name__}: {error}".splitlines()[0]
        return run | {"verdict": "raised", "seconds": time.perf_counter() - began, "message": sentence}
    posterior = result.to_arviz().posterior
    kept = {site: posterior[site].dims[2:] == dims for site, dims in GALLERIES[name].dims.items()}
    run |= measures(result) | {"dims": all(kept.values()), "search": str(result.search)}
    return run | against_reference(result, known)


def kept(name: str, front_end: str, options: argparse.Namespace) -> Run:
    """The run of its file, or a new one."""
    path = options.out / f"{name}_{front_end}_{options.seed}.json"
    if not path.exists():
        run = run_once(name, front_end, options)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(run))
    run = json.loads(path.read_text())
    print(line(run), flush=True)
    return run


def apart(first: Run, second: Run) -> str:
    """Z of the difference of two evidences."""
    if "log_evidence" not in first or "log_evidence" not in second:
        return ""
    (one, error, _), (other, other_error, _) = first["log_evidence"], second["log_evidence"]
    return f"{(one - other) / np.hypot(error, other_error):+.1f}"


def table(runs: dict[tuple[str, str], Run]) -> Table:
    heads = ("model", "D", "verdict", "right", "dims", "s", "CPU s", "evaluations", "log Z", "mean |z|")
    made = Table(*heads, "deviation |z| beyond 5 %", "worst ratio", "front ends, z of log Z")
    for (name, front_end), run in runs.items():
        if "scalars" not in run:
            made.add_row(run["name"], "", run["verdict"], "no", "", f"{run['seconds']:.0f}", *[""] * 7)
            continue
        value, error, _ = run["log_evidence"]
        mean_z, deviation_z, ratio = worst(run)
        other = runs.get((name, "pymc"), {}) if front_end == "numpyro" else {}
        made.add_row(
            *(run["name"], str(run["dimension"]), run["verdict"], "yes" if is_right(run) else "no"),
            *("kept" if run["dims"] else "LOST", f"{run['seconds']:.0f}", f"{run['cpu']:.0f}"),
            f"{run['evaluations']:,}",
            *(f"{value:.3f} ± {error:.3f}", f"{mean_z:.1f}", f"{deviation_z:.1f}", f"{ratio:.3f}", apart(run, other)),
        )
    return made


def told(run: Run) -> tuple[str, str]:
    """A verdict, with a word where the moments are wrong, and the seconds."""
    is_wrong = "scalars" in run and not is_right(run)
    return run["verdict"] + (", wrong" if is_wrong else ""), f"{run['seconds']:.0f}"


def row(name: str, runs: dict[tuple[str, str], Run]) -> list[str]:
    """A model in both front ends."""
    first, second = (runs[name, front_end] for front_end in FRONT_ENDS)
    measured = [run for run in (first, second) if "scalars" in run]
    if not measured:
        return [name, "", *told(first), *told(second), "", "", ""]
    value, error, _ = measured[0]["log_evidence"]
    numbers = f"{value:.3f} ± {error:.3f}", apart(first, second), f"{max(worst(run)[0] for run in measured):.1f}"
    return [name.replace("_", " "), str(measured[0]["dimension"]), *told(first), *told(second), *numbers]


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--names", nargs="+", choices=list(GALLERIES), default=list(GALLERIES), metavar="NAME")
    parser.add_argument("--front-ends", nargs="+", choices=FRONT_ENDS, default=FRONT_ENDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("build/galleries"))
    parser.add_argument("--seconds", type=float, default=300.0, help="after which a run is ended")
    options = parser.parse_args(given)
    asked = [(name, front_end) for name in options.names for front_end in options.front_ends]
    runs = {(name, front_end): kept(name, front_end, options) for name, front_end in asked}
    Console(width=190).print(table(runs))
    good = [run for run in runs.values() if run["verdict"] == "ok" and is_right(run)]
    wrong = [run for run in runs.values() if run["verdict"] == "ok" and not is_right(run)]
    print(f"{len(runs)} runs: {len(good)} ok and right, {len(wrong)} ok and wrong")
    if len(asked) == len(GALLERIES) * len(FRONT_ENDS):
        store("galleries", "python -m studies.galleries", HEADER, [row(name, runs) for name in GALLERIES])


if __name__ == "__main__":
    main()
