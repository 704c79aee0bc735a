"""A long service: many calls of different shapes in one process. Do memory, threads, files and programs level off?

Every call has a target that is a new function, as a service's requests have, in turn by `sample` and `sample_many`, of
different dimensions, numbers of chains and methods, some with a checkpoint. Printed a minute: calls, resident memory,
memory maps, threads, open files, and functions of targets that are still alive; a figure is written.

    python -m benchmarks.soak [--minutes 60] [--out build/soak]
"""

import argparse
import gc
import shutil
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import thermocline as tc

LAST = 0.5  # of the calls, over which memory must not grow
MOST_GROWTH = 0.05


class Sight(NamedTuple):
    """What a process holds, after so many calls."""

    calls: int
    seconds: float
    megabytes: float
    maps: int
    threads: int
    files: int
    functions: int


def density_of(power: float) -> Callable[..., Any]:
    """A function that no call has seen before."""
    return lambda x, data=0.0: -jnp.sum(jnp.abs(x - data) ** power) / power - jnp.sum(jnp.cos(x))


def one_call(index: int, functions: "weakref.WeakSet[Callable[..., Any]]") -> None:
    """The calls take turns; sizes are small, so that there are many."""
    generator = np.random.default_rng(index)
    size, function = int(generator.integers(1, 6)), density_of(float(generator.uniform(1.5, 3.0)))
    functions.add(function)
    start, base = np.full(size, 0.3), tc.Gaussian.diagonal(np.zeros(size), 1.5)
    lengths: dict[str, Any] = {"num_chains": int(generator.choice([2, 4, 8])), "num_warmup": 20, "progress": False}
    lengths |= {"num_draws": int(generator.integers(8, 60)), "seed": index}
    if index % 4 == 3:
        data = generator.normal(size=(5, size))
        tc.sample_many(tc.Target(function, start), data, base=base, group_size=4, **lengths)
        return
    method = [tc.GibbsTempering(), tc.JointTempering(), tc.AnnealedImportance(num_temperatures=8)][index % 3]
    folder = Path(mkdtemp()) if index % 5 == 0 else None
    given = tc.fit_laplace if index % 7 == 0 else base
    lengths |= {"base": given, "method": method, "checkpoint": folder, "search": False}
    result = tc.sample(tc.Target(function, start), **lengths)
    result.summary()
    if folder is not None:
        result.save(folder / "run.nc")
        tc.load(folder / "run.nc")
        shutil.rmtree(folder)


def sight(calls: int, began: float, functions: "weakref.WeakSet[Callable[..., Any]]") -> Sight:
    """As Linux has it."""
    gc.collect()
    status, process = Path("/proc/self/status").read_text(), Path("/proc/self")
    megabytes = int(status.split("VmRSS:")[1].split()[0]) / 1024
    maps, files = len((process / "maps").read_text().splitlines()), len(list((process / "fd").iterdir()))
    threads = max(int(status.split("Threads:")[1].split()[0]), threading.active_count())
    return Sight(calls, time.monotonic() - began, megabytes, maps, threads, files, len(functions))


def soak(minutes: float, every: float = 15.0) -> list[Sight]:
    """What the process held, now and then."""
    functions: weakref.WeakSet[Callable[..., Any]] = weakref.WeakSet()
    began, shown, calls, sights = time.monotonic(), -np.inf, 0, []
    while time.monotonic() - began < 60 * minutes:
        one_call(calls, functions)
        calls += 1
        if time.monotonic() - shown > every:
            shown = time.monotonic()
            sights.append(sight(calls, began, functions))
            print("  ".join(f"{name} {value:,.0f}" for name, value in sights[-1]._asdict().items()), flush=True)
    return [*sights, sight(calls, began, functions)]


def growth(sights: list[Sight]) -> dict[str, float]:
    """Of every count, its mean over the last quarter of the calls over that of the quarter before, less one."""
    half = [each for each in sights if each.calls > LAST * sights[-1].calls]
    first, last = half[: len(half) // 2], half[len(half) // 2 :]
    names = ("megabytes", "maps", "threads", "files")
    mean = lambda some, name: np.mean([getattr(each, name) for each in some])  # noqa: E731
    return {name: float(mean(last, name) / mean(first, name) - 1) for name in names}


def figure(sights: list[Sight], path: Path) -> None:
    """Everything against the number of calls."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    names = ("megabytes", "maps", "threads", "files", "functions")
    _, axes = plt.subplots(1, len(names), figsize=(15, 3), layout="constrained")
    for axis, name in zip(axes, names, strict=True):
        axis.plot([each.calls for each in sights], [getattr(each, name) for each in sights], ".-", ms=3)
        axis.set(xlabel="calls", title=name, ylim=(0, None))
    plt.savefig(path, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--out", type=Path, default=Path("build") / "soak")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    seen = soak(options.minutes)
    figure(seen, options.out / "soak.png")
    grown = growth(seen)
    print("growth over the last half: " + ", ".join(f"{name} {value:+.1%}" for name, value in grown.items()))
    sys.exit(max(grown.values()) > MOST_GROWTH)
