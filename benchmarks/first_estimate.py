"""Seconds from the start of a Python process to the first estimate, cold and with JAX's compilation cache warm."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

WANTED_COLD = 15.0
CHILD = """
import json, sys, time
started = float(sys.argv[1])
interpreter = time.time() - started
import numpy as np
import jax.numpy as jnp
from jax.scipy.stats import norm
import thermocline as tc
imported = time.time() - started

def log_density(x):
    return jnp.logaddexp(jnp.log(0.6) + norm.logpdf(x, -8.0, 1.0), jnp.log(0.4) + norm.logpdf(x, 8.0, 2.0))

deviation = np.sqrt(0.6 * 65 + 0.4 * 68 - 1.6**2)
base = tc.BaseFit(tc.Gaussian.diagonal(-1.6, deviation), 0.0)
result = tc.sample(tc.Target(log_density, 0.0), seed=0, base=base, progress=False)
evidence, verdict = result.log_evidence, result.verdict
print(json.dumps({
    "interpreter": interpreter, "import": imported - interpreter, "sample": result.cost.seconds.shown(),
    "total": time.time() - started, "processor": time.process_time(), "evidence": str(evidence), "verdict": verdict,
}))
"""


class Parts(NamedTuple):
    """Where the seconds of one process went; `other` is every program but the chains' own, and the estimators."""

    interpreter: float
    imports: float
    compile_chains: float
    run_chains: float
    other: float
    total: float
    processor: float  # seconds of all threads: what a busy machine does not inflate much
    evidence: str
    verdict: str


def run_process(cache: Path | None) -> Parts:
    """One fresh process with default settings; `cache` is the folder of the persistent compilation cache."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    if cache is not None:
        environment |= {
            "JAX_COMPILATION_CACHE_DIR": str(cache),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
    command = [sys.executable, "-c", CHILD, repr(time.time())]
    finished = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    seen = json.loads(finished.stdout.splitlines()[-1])
    sample = seen["sample"]
    running = sample["warm-up"] + sample["sampling"]
    known = seen["interpreter"] + seen["import"] + sample["compile"] + running
    return Parts(seen["interpreter"], seen["import"], sample["compile"], running, seen["total"] - known, seen["total"],
                 seen["processor"], seen["evidence"], seen["verdict"])


def medians(runs: list[Parts]) -> list[str]:
    """Median seconds of each part."""
    return [f"{statistics.median(values):.1f}" for values in zip(*(run[:7] for run in runs), strict=True)]


def main(num_rounds: int = 3) -> dict[str, float]:
    """Print the parts, medians over processes; cold and warm ones take turns."""
    cold, warm = [], []
    with tempfile.TemporaryDirectory() as folder:
        run_process(Path(folder))  # fills the cache
        for _ in range(num_rounds):
            cold.append(run_process(None))
            warm.append(run_process(Path(folder)))
    table = Table("seconds", *(name.replace("_", " ") for name in Parts._fields[:7]))
    table.add_row("cold", *medians(cold))
    table.add_row("warm cache", *medians(warm))
    console = Console(width=100)
    console.print(table)
    total = {name: statistics.median(run.total for run in runs) for name, runs in (("cold", cold), ("warm", warm))}
    console.print(f"log Z = {cold[0].evidence} ({cold[0].verdict}) {total['cold']:.1f} s after a cold start "
                  f"(wanted: at most {WANTED_COLD:g}), {total['warm']:.1f} s with a warm cache; "
                  f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", soft_wrap=True)
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    main(parser.parse_args().rounds)
