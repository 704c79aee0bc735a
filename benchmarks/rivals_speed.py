"""Time per gradient of every method, beside the core's HMC step: what it costs to be another method.

All move equally many points side by side (chains, replicas or particles) on the 28-dimensional relaxation of
`leapfrog.py`, in double precision, through the run loop's own program. A ratio is a method's time per gradient over
that of Gibbs tempering, within rounds in which all took turns: the median with its quartiles.

    python benchmarks/rivals_speed.py [--rounds 15] [--out FILE]
"""

import argparse
import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import thermocline as tc
from benchmarks.boltzmann import relaxation
from benchmarks.common import ratio, take_turns
from thermocline.engine.batch import Batch, Paths
from thermocline.engine.prepare import draw_bases
from thermocline.engine.program import BEFORE_ALL, advance, first_tuning, mesh_of, waiting
from thermocline.engine.streams import run_keys
from thermocline.movers import metric_of
from thermocline.paths import Path as TemperedPath
from thermocline.support.precision import cast

WIDTH = 96  # points moved side by side
NUM_REPLICAS, NUM_TEMPERATURES = 12, 24
HMC = tc.HMC(step_size=0.3)
REFERENCE, WANTED = "GibbsTempering", 1.2


class Candidate(NamedTuple):
    """A method, its chains, and the steps that take about as long as everybody else's."""

    method: Any
    num_chains: int
    num_steps: int


CANDIDATES = {
    REFERENCE: Candidate(tc.GibbsTempering(HMC), WIDTH, 60),
    "Untempered": Candidate(tc.Untempered(HMC), WIDTH, 60),
    "JointTempering": Candidate(tc.JointTempering(HMC), WIDTH, 60),
    "SimulatedTempering": Candidate(tc.SimulatedTempering(HMC), WIDTH, 60),
    "ParallelTempering": Candidate(tc.ParallelTempering(HMC, num_replicas=NUM_REPLICAS), WIDTH // NUM_REPLICAS, 60),
    "AnnealedImportance": Candidate(tc.AnnealedImportance(HMC, num_temperatures=NUM_TEMPERATURES), WIDTH, 3),
    "SequentialMonteCarlo": Candidate(tc.SequentialMonteCarlo(HMC, num_particles=WIDTH), 1, WIDTH),
    "TemperedTransitions": Candidate(tc.TemperedTransitions(HMC, num_temperatures=NUM_TEMPERATURES), WIDTH, 2),
}


def make_path() -> TemperedPath:
    target = relaxation()
    dimension = np.size(target.initial_position)
    base = tc.Gaussian.diagonal(np.zeros(dimension), np.full(dimension, 3.0))
    return cast(TemperedPath(target, base, jnp.zeros(())), "float64")


def program_of(candidate: Candidate, path: TemperedPath) -> tuple[Any, int]:
    """The compiled loop of this method from its start, and the gradients it takes."""
    streams, method, paths = np.zeros((1, 2), np.uint32), cast(candidate.method, "float64"), Paths.of_one(path)
    positions, log_ratio = draw_bases(streams, paths, 256)
    metric = jax.tree.map(lambda leaf: leaf[None], metric_of(np.full(path.dimension, 3.0)))
    tuning = first_tuning(method, metric, np.asarray(log_ratio))
    chains, num_steps = np.arange(candidate.num_chains, dtype=np.uint32), candidate.num_steps
    batch = Batch(paths, tuning, streams, chains, positions[:, : candidate.num_chains])
    batch = replace(batch, states=waiting(method, batch))
    keys = run_keys(streams[0], batch.streams, batch.chains)
    run = partial(advance, keys, method, capacity=num_steps, mesh=mesh_of(batch))
    batch = replace(batch, states=run(batch, BEFORE_ALL, 0)[0])
    program = partial(run, batch, 0, num_steps)
    return program, int(program()[1].num_gradients.sum())


def main(num_rounds: int = 15, out: Path | None = None) -> dict[str, float]:
    """Print microseconds a gradient and the ratios."""
    with jax.enable_x64(True):
        path = make_path()
        programs = {name: program_of(candidate, path) for name, candidate in CANDIDATES.items()}
        seconds = take_turns({name: program for name, (program, _) in programs.items()}, num_rounds=num_rounds)
    each = {name: seconds[name] / programs[name][1] for name in programs}
    ratios = {name: ratio(each[name], each[REFERENCE]) for name in each if name != REFERENCE}
    table = Table("method", "microseconds a gradient", f"over {REFERENCE}", f"wanted ≤ {WANTED}")
    for name, values in each.items():
        beside = ratios.get(name)
        verdict = "" if beside is None else "yes" if beside.median <= WANTED else "NO"
        table.add_row(name, f"{1e6 * np.median(values):.2f}", "" if beside is None else str(beside), verdict)
    Console(width=100).print(table)
    if out is not None:
        out.write_text(json.dumps({name: value._asdict() for name, value in ratios.items()}, indent=1) + "\n")
    return {name: value.median for name, value in ratios.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    main(options.rounds, options.out)
