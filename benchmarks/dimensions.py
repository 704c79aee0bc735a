"""Cost and peak memory by dimension: a Gaussian of known scales, its evidence and posterior, base given or looked for.

Each run is a process of its own. Where a base is given it has independent coordinates of deviations one part in a
thousand too large. The error of the posterior is the largest of a mean, in standard errors of so many draws.

    python -m benchmarks.dimensions [--dimensions 10 100 1000 10000] [--given]
"""

import argparse
import json
import subprocess
import sys
import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.memory import peak_megabytes

NUM_DRAWS = 1000  # of the posterior
COLUMNS = ("verdict", "log Z - exact", "worst mean, errors", "evaluations", "seconds", "search", "peak MB")


def run_once(dimension: int, *, is_given: bool) -> dict[str, Any]:
    """One call, in this process."""
    import jax.numpy as jnp

    import thermocline as tc

    mean, scales = np.linspace(-3, 3, dimension), np.exp(np.linspace(-2, 2, dimension))
    target = tc.Target(lambda x, d: -0.5 * jnp.sum(((x - d[0]) / d[1]) ** 2), np.zeros(dimension), (mean, scales))
    base = tc.Gaussian.diagonal(mean, 1.001 * scales) if is_given else None
    began = time.monotonic()
    result = tc.sample(target, base=base, progress=False)
    draws = result.posterior(NUM_DRAWS)["x"]
    seconds, exact = time.monotonic() - began, np.sum(np.log(scales)) + 0.5 * dimension * np.log(2 * np.pi)
    assert result.log_evidence is not None
    worst = np.max(np.abs(draws.mean(axis=0) - mean) / scales) * np.sqrt(NUM_DRAWS)
    off = f"{result.log_evidence.value - exact:+.1e} ± {result.log_evidence.standard_error:.1e}"
    spent = f"{result.cost.evaluations.total:,}", f"{seconds:.1f}", f"{result.cost.seconds.base:.1f}"
    return dict(zip(COLUMNS, (result.verdict, off, f"{worst:.1f}", *spent, f"{peak_megabytes():,.0f}"), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dimensions", type=int, nargs="*", default=[10, 100, 1000, 10_000])
    parser.add_argument("--given", action="store_true", help="with a base, where the black box looks for one otherwise")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run_once(options.dimensions[0], is_given=options.given)))
        return
    table = Table("D", *COLUMNS)
    for dimension in options.dimensions:
        command = [sys.executable, "-m", "benchmarks.dimensions", "--one", "--dimensions", str(dimension)]
        command += ["--given"] if options.given else []
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        table.add_row(f"{dimension:,}", *found.values())
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
