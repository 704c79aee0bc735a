"""What `tc.sample(target, seed)` says on generated targets that nobody has seen, against the truth.

Each run leaves a file of JSON, and a run whose file exists is not made again. Programs are forgotten before every run:
seconds are those of a cold start after the import. z is of log Z through its t law; for mixtures the truth is that of
the modes found, log Z plus the log of their share. With `--seeds-from COMMIT` seeds come from the hash of a commit;
`--store` puts the table by family into docs/calibration.md.

    python -m studies.unseen [--families NAME ...] [--number 30] [--seeds-from COMMIT | --first-seed 0]
        [--out DIR] [--seconds 120] [--store]
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import thermocline as tc
from studies.finding import seeds_of
from studies.finding_runs import TooLongError, ended_after, lost_modes, true_modes
from studies.tables import store
from studies.targets import FAMILIES, GeneratedTarget, generate
from thermocline.evaluator import Evaluator

WRONG = 4.0  # errors
MIXTURES = "gaussian mixture", "t mixture", "spike and slab", "label switching"  # of which modes have masses
NORMAL_QUARTILES = 1.349  # interquartile range of a standard normal

Run = dict[str, Any]


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES), metavar="NAME")
    parser.add_argument("--number", type=int, default=30, help="of targets a family")
    seeds = parser.add_mutually_exclusive_group()
    seeds.add_argument("--seeds-from", metavar="COMMIT")
    seeds.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("build/unseen"))
    parser.add_argument("--seconds", type=float, default=120.0, help="after which a run is ended")
    parser.add_argument("--store", action="store_true", help="the table, for the documents")
    options = parser.parse_args(given)
    options.mixtures = options.number
    return options


def run_once(generated: GeneratedTarget, longest: float) -> Run:
    """One call, and what is asked of it; running out of time and raising are results too."""
    run: Run = {"family": generated.family, "seed": generated.seed}
    run |= {"dimension": generated.dimension, "log_volume_spread": generated.log_volume_spread}
    jax.clear_caches()
    began = time.perf_counter()
    try:
        with ended_after(longest), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = tc.sample(generated.target, seed=generated.seed % 2**31, progress=False)
            verdict = result.verdict
        run["seconds"] = time.perf_counter() - began
    except TooLongError:
        return run | {"status": "timeout", "seconds": time.perf_counter() - began}
    except Exception as error:  # noqa: BLE001
        sentence = f"{type(error).__name__}: {error}".splitlines()[0]
        return run | {"status": "raised", "seconds": time.perf_counter() - began, "message": sentence}
    return run | {"status": verdict} | measures(generated, result)


def measures(generated: GeneratedTarget, result: tc.Result) -> Run:
    """The answer against the truth of the modes found, and what the checks and the search said."""
    evaluate, estimate, table = Evaluator(generated.target), result.log_evidence, result.mode_table
    assert estimate is not None
    assert table is not None
    endings = true_modes(generated, evaluate)
    lost = lost_modes(endings, table.location, evaluate)
    share_lost = sum(ending.mass for ending in lost) if generated.family in MIXTURES else 0.0
    truth = generated.log_evidence + np.log1p(-min(share_lost, 1 - 1e-9))
    return {
        "num_modes": len(endings),
        "num_lost": len(lost),
        "lost_masses": [ending.mass for ending in lost],
        "difference": estimate.value - truth,
        "standard_error": estimate.standard_error,
        "z": estimate.z_score(truth),
        "evaluations": int(result.cost.evaluations.total),
        "phases": result.cost.seconds.shown(),
        "num_draws": int(result.draws.log_ratio.shape[1]),
        "blind_spot": table.search.blind_spot,
        "failed": [f"{check.name} {check.value:.3g}" for check in result.checks if not check.passed],
        "notes": list(result.info.notes),
    }


def kept(folder: Path, family: str, seed: int, longest: float) -> Run:
    """The run of its file, or a new one."""
    path = folder / f"{family.replace(' ', '-')}_{seed}.json"
    if path.exists():
        return json.loads(path.read_text())
    run = run_once(generate(family, seed), longest)
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(run))
    print(line(run), flush=True)
    return run


def line(run: Run) -> str:
    head = f"{run['family']} {run['seed']}: D {run['dimension']}, V {run['log_volume_spread']:.1f}, {run['status']}"
    if "z" not in run:
        return f"{head} after {run['seconds']:.1f} s {run.get('message', '')}"
    answer = f"off {run['difference']:+.4f} ± {run['standard_error']:.4f}, z {run['z']:+.1f}"
    lost = f"lost {run['num_lost']} of {run['num_modes']}, {run['seconds']:.1f} s, {run['num_draws']} draws"
    return f"{head}, {answer}, {lost}, {'; '.join(run['failed'])}"


def is_wrong(run: Run) -> bool:
    return run["status"] == "ok" and abs(run["z"]) > WRONG


COLUMNS = "family", "runs", "ok", "ok, right", "ok, > 4 errors", "ok, lost a mode", "median s", "IQR of z / 1.349"


def rows_of(runs: list[Run]) -> list[list[str]]:
    """By family, and all."""
    rows = []
    for name in [*dict.fromkeys(run["family"] for run in runs), "all"]:
        some = [run for run in runs if name in ("all", run["family"])]
        ok = [run for run in some if run["status"] == "ok"]
        lost = sum(run["num_lost"] > 0 for run in ok)
        spread = np.subtract(*np.quantile([run["z"] for run in ok], [0.75, 0.25])) / NORMAL_QUARTILES if ok else np.nan
        right, wrong = sum(not is_wrong(run) for run in ok), sum(map(is_wrong, ok))
        median = np.median([run["seconds"] for run in some])
        rows.append([*map(str, (name, len(some), len(ok), right, wrong, lost)), f"{median:.1f}", f"{spread:.2f}"])
    return rows


def table(runs: list[Run]) -> Table:
    made = Table(*COLUMNS)
    for row in rows_of(runs):
        made.add_row(*row)
    return made


def main(given: list[str] | None = None) -> None:
    options = arguments(given)
    runs = [
        kept(options.out, family, seed, options.seconds)
        for index in range(options.number)
        for family in options.families
        for seed in [seeds_of(options, family)[index]]
    ]
    if options.store:
        seeds = f" --seeds-from {options.seeds_from}" if options.seeds_from else ""
        store("unseen", f"python -m studies.unseen --number {options.number}{seeds}", COLUMNS, rows_of(runs))
    console = Console(width=140)
    console.print(table(runs))
    for title, chosen in (
        ("ok and wrong", [run for run in runs if is_wrong(run)]),
        ("ok, and a mode of more than 1 % lost", [r for r in runs if r["status"] == "ok" and r["num_lost"]]),
        ("not ok", [run for run in runs if run["status"] != "ok"]),
    ):
        console.print(f"{title}: {len(chosen)}")
        for run in chosen:
            console.print("  " + line(run), highlight=False)


if __name__ == "__main__":
    main()
