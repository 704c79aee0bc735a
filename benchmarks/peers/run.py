"""All peers on all problems, one process at a time on one core: every run is kept, and made once.

Seconds are those of the processor, from the start of the process, importing and compiling included: on one core they
are those of the clock of an idle machine, whatever else runs beside. A run that needs more than the limit is ended.

    python -m benchmarks.peers.run [--peers NAME ...] [--problems NAME ...] [--seeds 0] [--limit 60] [--minutes 7]
"""

import argparse
import contextlib
import fcntl
import importlib
import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.peers.environment import FOLDER, REPOSITORY, NotInstalledError, python_of
from benchmarks.peers.problems import PROBLEMS
from studies.tables import commit_now

PEERS = ["ours", "nuts_bridge", "blackjax_smc", "blackjax_persistent", "pymc_smc", "nested_dynesty", "nested_nautilus"]
PEERS += ["nutpie_draws"]  # draws alone, no evidence
SLOWEST = 40  # seconds of the clock for one of the processor: one that sleeps is ended too
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
SHOWN = "log_evidence", "truth", "error", "seconds", "modes", "ended", "said"


def place_of(peer: str, problem: str, seed: int) -> Path:
    return FOLDER / "runs" / peer / f"{problem}_{seed}.json"


def interpreter_of(peer: str) -> str:
    """That of the peer's own environment, which is made where it is missing."""
    module = importlib.import_module(f"benchmarks.peers.{peer}")
    return str(python_of(module.ENVIRONMENT, module.REQUIREMENTS)) if module.ENVIRONMENT else sys.executable


def idlest_core() -> int:
    """That which did least in the last quarter of a second."""

    def idle() -> dict[int, int]:
        lines = Path("/proc/stat").read_text().splitlines()
        return {int(line.split()[0][3:]): int(line.split()[4]) for line in lines if re.match(r"cpu\d", line)}

    before = idle()
    time.sleep(0.25)
    gained = {core: ticks - before[core] for core, ticks in idle().items() if core in os.sched_getaffinity(0)}
    return max(gained, key=lambda core: gained[core])


def run_once(peer: str, problem: str, seed: int, limit: int) -> dict[str, Any]:
    """What the process printed last, or how it ended."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")} | ONE_THREAD
    environment["PYTHONPATH"] = f"{REPOSITORY / 'src'}:{REPOSITORY}" if peer == "ours" else str(REPOSITORY)
    command = [interpreter_of(peer), "-W", "ignore", "-m", "benchmarks.peers.one", peer, problem, str(seed)]

    core = idlest_core()

    def prepare() -> None:
        os.sched_setaffinity(0, {core})
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))

    try:
        done = subprocess.run(
            command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False,
            preexec_fn=prepare, timeout=SLOWEST * limit,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"ended": f"more than {SLOWEST * limit} s of the clock"}
    if done.returncode < 0:
        return {"ended": f"more than {limit} s"}
    if done.returncode:
        return {"ended": "raised", "said": (done.stderr.strip() or "no word").splitlines()[-1][:300]}
    return json.loads(done.stdout.splitlines()[-1])


def kept(peer: str, problem: str, seed: int, limit: int) -> None:
    """Makes a run that is not there yet, unless another process is at it."""
    place = place_of(peer, problem, seed)
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as lock, contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not place.exists():
            make(place, peer, problem, seed, limit)


def make(place: Path, peer: str, problem: str, seed: int, limit: int) -> None:
    about = {"peer": peer, "problem": problem, "seed": seed, "limit": limit, "commit": commit_now()}
    run = about | run_once(peer, problem, seed, limit)
    place.write_text(json.dumps(run))
    print(peer, problem, seed, {name: run[name] for name in SHOWN if name in run}, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peers", nargs="+", default=PEERS, choices=PEERS, metavar="NAME")
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--limit", type=int, default=60, help="seconds of the processor for one run")
    parser.add_argument("--minutes", type=float, help="begin no run after these")
    options = parser.parse_args()
    began = time.monotonic()
    for seed in options.seeds:
        for problem in options.problems:
            for peer in options.peers:
                if options.minutes and time.monotonic() - began > 60 * options.minutes:
                    return
                try:
                    kept(peer, problem, seed, options.limit)
                except NotInstalledError as error:
                    print(error, flush=True)


if __name__ == "__main__":
    main()
