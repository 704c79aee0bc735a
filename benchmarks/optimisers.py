"""Seconds and rows that optimisers take on an evaluator: SciPy's L-BFGS-B, lane by lane or in threads, and ours."""

import argparse
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

import thermocline as tc
from thermocline.evaluator import Evaluator
from thermocline.fits.curvature import are_optima, curvature_at
from thermocline.fits.lbfgs import maximise

Optimiser = Callable[[Evaluator, np.ndarray], np.ndarray]  # from starts to ends, one a row
STAN_MODEL = """
data { int N; int K; matrix[N, K] x; array[N] int<lower=0, upper=1> y; }
parameters { vector[K] slope; real<lower=0> scale; }
model { scale ~ exponential(1); slope ~ normal(0, scale); y ~ bernoulli_logit(x * slope); }
"""


class Problem(NamedTuple):
    """A target and where to start."""

    name: str
    target: tc.Target
    starts: np.ndarray


class Rendezvous:
    """An evaluator for one row a thread: the last thread to come evaluates for all that wait."""

    def __init__(self, evaluate: Evaluator, number: int) -> None:
        self.evaluate, self.number = evaluate, number
        self.condition = threading.Condition()
        self.waiting: dict[int, np.ndarray] = {}
        self.done: dict[int, tuple[float, np.ndarray]] = {}

    def __call__(self, lane: int, position: np.ndarray) -> tuple[float, np.ndarray]:
        with self.condition:
            self.waiting[lane] = position
            self._meet()
            self.condition.wait_for(lambda: lane in self.done)
            return self.done.pop(lane)

    def leave(self) -> None:
        """One thread fewer to wait for."""
        with self.condition:
            self.number -= 1
            self._meet()

    def _meet(self) -> None:
        if not self.waiting or len(self.waiting) < self.number:
            return
        values, gradients = self.evaluate(np.stack(list(self.waiting.values())))
        self.done.update(zip(self.waiting, zip(values, gradients, strict=True), strict=True))
        self.waiting.clear()
        self.condition.notify_all()


def scipy_end(ask: Callable[[np.ndarray], tuple[float, np.ndarray]], start: np.ndarray) -> np.ndarray:
    """SciPy's L-BFGS-B to the end of what it can do: its own tolerances are in units of the coordinates."""

    def loss(position: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = ask(position)
        return -float(value), -np.asarray(gradient)

    options = {"maxcor": 10, "maxiter": 200, "maxfun": 1000, "ftol": 1e-13, "gtol": 0.0}
    return minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x


def one_after_another(evaluate: Evaluator, starts: np.ndarray) -> np.ndarray:
    def ask(position: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = evaluate(position[None])
        return value[0], gradient[0]

    return np.stack([scipy_end(ask, start) for start in starts])


def in_threads(evaluate: Evaluator, starts: np.ndarray) -> np.ndarray:
    meeting, ends = Rendezvous(evaluate, len(starts)), np.empty_like(starts)

    def run(lane: int) -> None:
        try:
            ends[lane] = scipy_end(lambda position: meeting(lane, position), starts[lane])
        finally:
            meeting.leave()

    threads = [threading.Thread(target=run, args=(lane,)) for lane in range(len(starts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends


def in_lock_step(evaluate: Evaluator, starts: np.ndarray) -> np.ndarray:
    return maximise(evaluate, starts).position


def logistic_log_density(x, data):
    logits = data["x"] @ x
    return jnp.sum(data["y"] * logits - jnp.logaddexp(0.0, logits)) - 0.125 * jnp.sum(x**2)


def gaussian_log_density(x, data):
    return -0.5 * jnp.sum((data["whitening"] @ x) ** 2)


def problems(with_stan: bool) -> list[Problem]:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(500, 24)) * np.exp(0.5 * generator.normal(size=24))
    y = (generator.uniform(size=500) < 1 / (1 + np.exp(-x @ generator.normal(size=24)))).astype(float)
    logistic = tc.Target(logistic_log_density, np.zeros(24), {"x": x, "y": y})
    scales = np.logspace(-3, 3, 24)
    root = scales[:, None] * (generator.normal(size=(24, 24)) / np.sqrt(24) + np.eye(24))
    gaussian = tc.Target(gaussian_log_density, np.ones(24), {"whitening": np.linalg.inv(root)})
    many = 3 * generator.normal(size=(64, 24))
    found = [
        Problem("logistic, 1 start", logistic, np.zeros((1, 24))),
        Problem("logistic, 64 starts", logistic, many),
        Problem("Gaussian, 1e-3 to 1e3, 1 start", gaussian, many[:1]),
        Problem("Gaussian, 1e-3 to 1e3, 64 starts", gaussian, many),
    ]
    if with_stan:
        path = Path("build/benchmark_optimisers.stan")
        path.parent.mkdir(exist_ok=True)
        path.write_text(STAN_MODEL)
        data = {"N": 500, "K": 24, "x": x, "y": y.astype(int)}
        stan = tc.from_stan(str(path), data)
        starts = 0.5 * generator.normal(size=(16, 25))
        found += [Problem("Stan, 1 start", stan, starts[:1]), Problem("Stan, 16 starts", stan, starts)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stan", action="store_true", help="a Stan model too; compiling it takes a minute")
    arguments = parser.parse_args()
    optimisers: dict[str, Optimiser] = {
        "SciPy, one after another": one_after_another,
        "SciPy, in threads": in_threads,
        "lock step": in_lock_step,
    }
    print(f"{'problem':34}{'optimiser':26}{'seconds':>9}{'rows':>8}{'optima':>8}{'lowest end':>12}")
    for problem in problems(arguments.stan):
        evaluate = Evaluator(problem.target)
        ends, seconds, rows = {}, {}, {}
        for name, optimiser in optimisers.items():
            optimiser(evaluate, problem.starts)  # compiles
            before, times = evaluate.num_rows, []
            for _ in range(arguments.rounds):
                began = time.perf_counter()
                ends[name] = optimiser(evaluate, problem.starts)
                times.append(time.perf_counter() - began)
            seconds[name], rows[name] = min(times), (evaluate.num_rows - before) // arguments.rounds
        values = {name: evaluate.values(end) for name, end in ends.items()}
        best = max(value.max() for value in values.values())
        for name, end in ends.items():
            share = are_optima(curvature_at(evaluate, end), evaluate(end)[1]).mean()
            row = f"{seconds[name]:9.4f}{rows[name]:8d}{share:8.0%}{values[name].min() - best:12.2g}"
            print(f"{problem.name:34}{name:26}{row}", flush=True)


if __name__ == "__main__":
    main()
