"""Peak memory of a run against its number of draws and of warm-up steps; it must not grow with the latter."""

import argparse
import resource
import subprocess
import sys

import numpy as np
from rich.console import Console
from rich.table import Table

NUM_CHAINS, DIMENSION = 16, 32
LENGTHS = (1_000, 4_000, 16_000)


def peak_megabytes() -> float:
    """Largest resident memory of this process so far."""
    unit = 1e6 if sys.platform == "darwin" else 1e3  # getrusage counts bytes on macOS, kilobytes on Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def run_once(num_warmup: int, num_draws: int) -> None:
    """Sample a Gaussian of many dimensions in this process and print its peak memory."""
    import thermocline as tc

    target = tc.Target(lambda x: -0.5 * x @ x, np.zeros(DIMENSION))
    base = tc.Gaussian.diagonal(np.zeros(DIMENSION), 2.0)
    tc.sample(target, base=base, method=tc.GibbsTempering(tc.HMC(num_steps=1, jitter=0.0)), num_chains=NUM_CHAINS,
              num_warmup=num_warmup, num_draws=num_draws, progress=False)
    print(peak_megabytes())


def peak_of(num_warmup: int, num_draws: int) -> float:
    """Peak megabytes of a fresh process that makes one run."""
    command = [sys.executable, __file__, "--warmup", str(num_warmup), "--draws", str(num_draws)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> dict[str, list[float]]:
    """Print peak megabytes for runs that grow in one of the two lengths."""
    shortest = LENGTHS[0]
    peaks = {
        "warm-up": [peak_of(length, shortest) for length in LENGTHS],
        "draws": [peak_of(shortest, length) for length in LENGTHS],
    }
    bytes_a_draw = 8 * NUM_CHAINS * (DIMENSION + 8)
    table = Table("peak megabytes", *(f"{length:,}" for length in LENGTHS), "growth")
    table.add_row("warm-up steps", *(f"{peak:.0f}" for peak in peaks["warm-up"]),
                  f"{peaks['warm-up'][-1] - peaks['warm-up'][0]:+.0f}")
    table.add_row("draws a chain", *(f"{peak:.0f}" for peak in peaks["draws"]),
                  f"{peaks['draws'][-1] - peaks['draws'][0]:+.0f}")
    console = Console(width=100)
    console.print(table)
    stored = bytes_a_draw * (LENGTHS[-1] - shortest) / 1e6
    copies = (peaks["draws"][-1] - peaks["draws"][0]) / stored
    console.print(f"the other length stays at {shortest:,}; {NUM_CHAINS} chains in {DIMENSION} dimensions. "
                  f"The added draws are {stored:.0f} megabytes, held {copies:.1f} times over at the peak",
                  soft_wrap=True)
    return peaks


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warmup", type=int)
    parser.add_argument("--draws", type=int)
    options = parser.parse_args()
    if options.draws is None:
        main()
    else:
        run_once(options.warmup, options.draws)
