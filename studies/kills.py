"""Kills: random `kill -9` of runs with a checkpoint, with and without workers; the same call must lose nothing.

python -m studies.kills [--kills 200] [--seed 0]

Four runs take turns: `sample` (a search, pilots, chains, a table of modes, `save`) and `sample_many` (searches and
chains), each without workers and with two. A run is killed at a moment that is uniform over as long as it takes when
nobody disturbs it, and started again with the same call, until it ends; then its draws are compared bit for bit with
those of a run that nobody killed. Processes that outlive a killed run for long are counted as left over.
"""

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
JOBS = ("sample", "sample_many")
BEGUN = "begun"
PATIENCE = 60.0  # seconds until a process counts as left over


def banana(x: Any, shift: Any) -> Any:
    import jax.numpy as jnp

    one = -0.5 * ((x[0] - shift) ** 2 / 4 + (x[1] - x[0] ** 2 / 4) ** 2 * 8 + x[2] ** 2)
    other = -0.5 * jnp.sum((x - jnp.array([14.0, -6.0, 4.0])) ** 2)
    return jnp.logaddexp(one, other)


def run(job: str, num_workers: int, folder: str | None) -> Any:
    """A result, by the call that a killed one is resumed with too."""
    import thermocline as tc

    options: dict[str, Any] = {"checkpoint": folder, "workers": num_workers or None, "progress": False, "seed": 5}
    options |= {"chunk_size": 10}
    if job == "sample":
        target = tc.Target(banana, np.ones(3), np.zeros(()))
        return tc.sample(target, num_chains=8, num_warmup=100, num_draws=200, **options)
    return tc.sample_many(tc.Target(banana, np.ones(3)), np.arange(3.0), num_warmup=60, num_draws=80, **options)


def digest(result: Any) -> str:
    """Of every bit of the draws."""
    found = hashlib.sha256()
    for one in [result] if hasattr(result, "draws") else list(result):
        for leaf in one.draws:
            found.update(np.ascontiguousarray(leaf).tobytes())
    return found.hexdigest()[:16]


def child(job: str, num_workers: int, folder: str) -> None:
    print(BEGUN, flush=True)
    result = run(job, num_workers, folder or None)
    result.save(Path(folder or tempfile.mkdtemp()) / "run.nc")
    print(digest(result), flush=True)


def started(job: str, num_workers: int, folder: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "studies.kills", "--child", job, str(num_workers), folder]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if line != BEGUN:
        raise RuntimeError(f"{job} did not start: {line}")
    return process


def ended(process: subprocess.Popen[str]) -> str:
    """What it printed last."""
    output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"a run ended with {process.returncode} and nobody had killed it")
    return output.split()[-1]


def stage(folder: Path) -> str:
    """How far a run has come, by what it has kept."""
    if (folder / "run.nc.tmp").exists():
        return "save"
    if list(folder.rglob("draws_*.npz")):
        return "sampling or later"
    if list(folder.rglob("state.npz")):
        return "warm-up"
    return "between" if list(folder.glob("search/*.npz")) else "search and pilots"


def session(number: int) -> list[int]:
    """Processes of a session that are alive, whoever their parent is."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == number and fields[0] != "Z":
            found.append(int(entry.parent.name))
    return found


def left_over(number: int) -> int:
    limit = time.monotonic() + PATIENCE
    while session(number) and time.monotonic() < limit:
        time.sleep(0.1)
    return len(session(number))


class Tally:
    """What was seen of one kind of run."""

    def __init__(self, job: str, num_workers: int) -> None:
        self.job, self.num_workers = job, num_workers
        began, process = time.monotonic(), started(job, num_workers, "")
        self.whole, self.seconds = ended(process), time.monotonic() - began
        self.kills, self.runs, self.differing, self.left, self.stages = 0, 0, 0, 0, Counter()
        self.folder = Path(tempfile.mkdtemp())

    def kill_once(self, generator: np.random.Generator) -> None:
        """One more kill, or a run that came to its end before it."""
        process = started(self.job, self.num_workers, str(self.folder))
        try:
            process.wait(generator.uniform(0, self.seconds))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            self.kills += 1
            self.stages[stage(self.folder)] += 1
            self.left += left_over(process.pid)
        else:
            self.end(process)

    def end(self, process: subprocess.Popen[str] | None = None) -> None:
        """Draws compared with those of the run that nobody killed; the next begins anew."""
        process = started(self.job, self.num_workers, str(self.folder)) if process is None else process
        self.runs, self.differing = self.runs + 1, self.differing + (ended(process) != self.whole)
        self.folder = Path(tempfile.mkdtemp())

    def __str__(self) -> str:
        where = ", ".join(f"{name} {number}" for name, number in sorted(self.stages.items()))
        return (
            f"{self.job:<12} workers {self.num_workers}: {self.kills} kills ({where}), {self.runs} runs ended, "
            f"{self.differing} with other draws, {self.left} processes left over"
        )


def study(num_kills: int, kinds: list[tuple[str, int]], seed: int) -> list[Tally]:
    generator = np.random.default_rng(seed)
    tallies = [Tally(*kind) for kind in kinds]
    while sum(tally.kills for tally in tallies) < num_kills:
        min(tallies, key=lambda tally: tally.kills).kill_once(generator)
    for tally in tallies:
        tally.end()
        print(tally, flush=True)
    return tallies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child[0], int(given.child[1]), given.child[2])
        return
    tallies = study(given.kills, [(job, number) for job in JOBS for number in (0, 2)], given.seed)
    sys.exit(int(any(tally.differing or tally.left for tally in tallies)))


if __name__ == "__main__":
    main()
