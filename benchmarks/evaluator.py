"""Rows a second of the evaluator at different widths, beside a bare compiled `vmap(value_and_grad)` of as many rows.

python -m benchmarks.evaluator
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import thermocline as tc
from thermocline import evaluator
from thermocline.evaluator import Evaluator
from thermocline.support.precision import computing_in

NUM_ROWS = (16, 64, 256, 4096)
WIDTHS = ((16, 64), (16, 256), (32, 512), (64, 1024))
REPEATS = 15


def logistic(b, data):
    eta = data["x"] @ b
    return jnp.sum(data["y"] * eta - jnp.logaddexp(0.0, eta)) - 0.5 * b @ b


def mixture(x, data):
    return jax.nn.logsumexp(-0.5 * jnp.sum((x - data["means"]) ** 2, axis=1) / data["scales"])


def targets() -> dict[str, tc.Target]:
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(500, 24)), generator.integers(2, size=500).astype(float)
    means = generator.normal(size=(5, 10)) * 4
    return {
        "logistic regression, 24-D": tc.Target(logistic, np.zeros(24), {"x": x, "y": y}),
        "mixture of 5, 10-D": tc.Target(mixture, np.zeros(10), {"means": means, "scales": np.linspace(0.5, 2, 5)}),
    }


def seconds(function: Callable[[], Any]) -> float:
    function()
    best = np.inf
    for _ in range(REPEATS):
        began = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - began)
    return best


def rates_of(evaluate: Callable[[np.ndarray], Any], rows: dict[int, np.ndarray]) -> list[float]:
    """Thousand rows a second, by their number."""
    return [number / seconds(partial(evaluate, batch)) / 1e3 for number, batch in rows.items()]


def main() -> None:
    for name, target in targets().items():
        print(name, "(thousand rows a second)")
        print(f"{'rows at once':>16s}" + "".join(f"{number:>10d}" for number in NUM_ROWS))
        dimension = np.size(target.initial_position)
        rows = {number: np.random.default_rng(1).normal(size=(number, dimension)) for number in NUM_ROWS}
        for widths in WIDTHS:
            evaluator.WIDTHS = widths
            rates = rates_of(Evaluator(target), rows)
            print(f"{widths!s:>16s}" + "".join(f"{rate:10.1f}" for rate in rates))
        with computing_in("float64"):
            bare = jax.jit(jax.vmap(jax.value_and_grad(target)))
            rates = rates_of(lambda batch: jax.block_until_ready(bare(batch)), rows)  # noqa: B023
        print(f"{'bare':>16s}" + "".join(f"{rate:10.1f}" for rate in rates))


if __name__ == "__main__":
    main()
