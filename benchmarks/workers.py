"""Workers: what they cost, what they compile, what travels, and how seconds fall with their number.

python -m benchmarks.workers [--targets 1000] [--workers 1 2 4] [--dear 0.05]

`sample_many` on logistic regressions (24 coefficients, 500 observations each), with none and with so many processes,
all with one thread each; then one target whose density takes `--dear` seconds. Every run is a second one: programs are
compiled. CPU seconds of the workers and of the coordinator, bytes and tasks are little disturbed by what else runs on
the machine; elapsed seconds are.
"""

import argparse
import os
import pickle
import subprocess
import sys
import time
from functools import cache
from typing import Any

import numpy as np

DIMENSION, NUM_ROWS = 24, 500


@cache
def regression() -> tuple[Any, np.ndarray]:
    """A target, the same object each time so that its programs are, and its design."""
    import jax.numpy as jnp

    import thermocline as tc

    design = np.random.default_rng(0).normal(size=(NUM_ROWS, DIMENSION)) / 4

    def log_density(x: Any, y: Any) -> Any:
        logit = design @ x
        return jnp.sum(y * logit - jnp.logaddexp(0.0, logit)) - 0.5 * x @ x

    return tc.Target(log_density, np.zeros(DIMENSION)), design


def regressions(number: int) -> tuple[Any, Any, Any]:
    """A target, its data, and a base for each."""
    import thermocline as tc

    (target, design), generator = regression(), np.random.default_rng(1)
    chance = 1 / (1 + np.exp(-(generator.normal(size=(number, DIMENSION)) / 2) @ design.T))
    observed = (generator.uniform(size=chance.shape) < chance).astype(float)
    return target, observed, tc.Gaussian(np.zeros(DIMENSION), 0.8 * np.eye(DIMENSION))


def many(number: int, workers: Any) -> Any:
    import thermocline as tc

    target, data, base = regressions(number)
    lengths: dict[str, Any] = {"num_warmup": 100, "num_draws": 100}
    return tc.sample_many(target, data, base=base, progress=False, workers=workers, positions=True, **lengths)


def dear(seconds: float, workers: Any) -> Any:
    """A host function that sleeps, as a simulation elsewhere would."""
    import thermocline as tc

    def value_and_grad(x: Any) -> Any:
        time.sleep(seconds)
        return -0.5 * x @ x, -x

    target, base = tc.from_numpy(value_and_grad, np.zeros(2)), tc.Gaussian(np.zeros(2), 1.1 * np.eye(2))
    lengths: dict[str, Any] = {"num_chains": 16, "num_warmup": 4, "num_draws": 8}
    method = tc.GibbsTempering(tc.HMC(0.5, num_steps=2), tc.Continuous())
    return tc.sample(target, base=base, method=method, progress=False, search=False, workers=workers, **lengths)


def none(number: int) -> None:
    """In a process of its own, with the threads of a worker."""
    many(number, None)
    began, cpu = time.monotonic(), time.process_time()
    many(number, None)
    print(f"none     elapsed {time.monotonic() - began:7.1f} s, CPU {time.process_time() - cpu:7.1f} s", flush=True)


class Noting:
    """A client that notes the bytes it sends: those of tasks, and those that tasks share."""

    def __init__(self, client: Any) -> None:
        self.client, self.tasks, self.shared = client, [], []

    def submit(self, function: Any, *given: Any, **options: Any) -> Any:
        from thermocline.engine.workers import compute

        (self.tasks if function is compute else self.shared).append(sum(len(p) for p in given if type(p) is bytes))
        return self.client.submit(function, *given, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)


def travelled(number: int, client: Any) -> None:
    """What goes to tasks and what comes back, in bytes."""
    from thermocline.engine.workers import Workers

    class Weighing(Workers):
        """A runner that notes what it gets."""

        got: list[int] = []  # noqa: RUF012

        def _result(self, task: Any) -> Any:
            found = super()._result(task)
            self.got.append(len(pickle.dumps(found)))
            return found

    note = Noting(client)
    runner = Weighing(note)
    result = many(number, runner)
    steps = result.runs.by_target.num_draws.mean()
    print(
        f"{len(note.tasks)} tasks, {np.mean(note.tasks) / 1e3:.0f} kB to each, {np.mean(runner.got) / 1e3:.0f} back; "
        f"{len(note.shared)} shared pieces, {np.sum(note.shared) / 1e3:.0f} kB in all; {steps:.0f} draws a chain",
        flush=True,
    )


def programs() -> int:
    """Compiled in this process."""
    from thermocline.engine.prepare import _log_ratios
    from thermocline.engine.program import advance
    from thermocline.evaluator import _evaluate

    made: Any = advance, _evaluate, _log_ratios
    return sum(program._cache_size() for program in made)


def shared_out(number: int, num_workers: int, seconds: float) -> None:
    from thermocline.engine.workers import on_workers

    with on_workers(num_workers) as runner:
        client: Any = runner.client  # pyright: ignore[reportFunctionMemberAccess]
        many(min(number, 64), runner)
        before, began, cpu = sum(client.run(time.process_time).values()), time.monotonic(), time.process_time()
        many(number, runner)
        elapsed, here = time.monotonic() - began, time.process_time() - cpu
        there = sum(client.run(time.process_time).values()) - before
        print(
            f"{num_workers:<8} elapsed {elapsed:7.1f} s, CPU of workers {there:7.1f} s, "
            f"of the coordinator {here:7.1f} s, programs a worker {max(client.run(programs).values())}",
            flush=True,
        )
        if num_workers == 1:
            travelled(number, client)
            began, cpu = time.monotonic(), time.process_time()
            client.gather(client.map(lambda i: i, range(2000), pure=False))
            rate = 2000 / (time.monotonic() - began)
            print(f"empty tasks: {rate:.0f} a second, {(time.process_time() - cpu) / 2:.2f} ms of CPU each", flush=True)
        began = time.monotonic()
        dear(seconds, runner)
        print(f"{num_workers:<8} one target, {seconds} s a density: {time.monotonic() - began:.1f} s", flush=True)


def simulated(num_workers: int, seconds: float = 0.5, tasks_each: int = 8) -> None:
    """The scheduler alone: so many workers, threads of this process, whose tasks sleep and carry what blocks carry."""
    from distributed import Client, LocalCluster

    payload, options = os.urandom(100_000), {"processes": False, "dashboard_address": ":0", "silence_logs": 60}

    def task(payload: bytes) -> bytes:
        time.sleep(seconds)
        return payload

    with LocalCluster(n_workers=num_workers, threads_per_worker=1, **options) as cluster, Client(cluster) as client:
        began, cpu = time.monotonic(), time.process_time()
        number = tasks_each * num_workers
        for future in [client.submit(task, payload, pure=False) for _ in range(number)]:
            future.result()
        elapsed, spent = time.monotonic() - began, time.process_time() - cpu
        share = seconds * tasks_each / elapsed
        print(f"simulated {num_workers} workers: {number / elapsed:.0f} tasks a second, {share:.0%} of the ideal, "
              f"{1000 * spent / number:.1f} ms of CPU a task", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=1000)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--dear", type=float, default=0.05)
    parser.add_argument("--none", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.none:
        none(given.targets)
        return
    from thermocline.engine.workers import THREADS, XLA_THREADS

    print(f"{given.targets} targets, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    command = [sys.executable, "-m", "benchmarks.workers", "--none", "--targets", str(given.targets)]
    subprocess.run(command, check=True, env={**os.environ, **THREADS, "XLA_FLAGS": XLA_THREADS})
    for number in (4, 25):
        simulated(number)
    for number in given.workers:
        shared_out(given.targets, number, given.dear)


if __name__ == "__main__":
    main()
