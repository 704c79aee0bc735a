"""Seconds from the start of a process to a base and a mode table, beside NUTS alone (BlackJAX, 4 x 1000).

Logistic regressions; each in a process of its own, one after another, without JAX's persistent cache.

    python -m benchmarks.first_base [--dimensions 5 24 100] [--repeats 3]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

WANTED = 0.35
MODEL = """
import json, sys, time
started, dimension = float(sys.argv[1]), int(sys.argv[2])
import jax, jax.monitoring, jax.numpy as jnp, numpy as np
compiled = []
jax.monitoring.register_event_duration_secs_listener(
    lambda name, seconds, **_: compiled.append(seconds) if name.endswith("backend_compile_duration") else None)
generator = np.random.default_rng(dimension)
x = generator.normal(size=(20 * dimension, dimension))
y = (generator.uniform(size=len(x)) < 1 / (1 + np.exp(-x @ generator.normal(size=dimension) / 2))).astype(float)

def log_density(b, data):
    eta = data["x"] @ b
    return jnp.sum(data["y"] * eta - jnp.logaddexp(0.0, eta)) - b @ b / 8 - dimension / 2 * jnp.log(8 * jnp.pi)
"""
OURS = """
import thermocline as tc
fit = tc.fit_auto(tc.Target(log_density, np.zeros(dimension), {"x": x, "y": y}), seed=0)
print(json.dumps({"seconds": time.time() - started, "compiled": len(compiled), "evaluations": fit.num_gradients}))
"""
NUTS = """
jax.config.update("jax_enable_x64", True)
import blackjax
data = {"x": jnp.asarray(x), "y": jnp.asarray(y)}
density = lambda b: log_density(b, data)

def chain(key, start):
    warm_key, draw_key = jax.random.split(key)
    (state, tuned), _ = blackjax.window_adaptation(blackjax.nuts, density).run(warm_key, start, 1000)
    step = blackjax.nuts(density, **tuned).step

    def one(state, key):
        state, info = step(key, state)
        return state, (state.position, info.num_integration_steps)

    return jax.lax.scan(one, state, jax.random.split(draw_key, 1000))[1]

keys = jax.random.split(jax.random.key(0), 4)
draws, steps = jax.block_until_ready(jax.jit(jax.vmap(chain))(keys, 0.1 * jax.random.normal(keys[0], (4, dimension))))
print(json.dumps({"seconds": time.time() - started, "compiled": len(compiled), "evaluations": int(steps.sum())}))
"""


def run(program: str, dimension: int) -> dict[str, float]:
    """One process; what it printed last."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    command = [sys.executable, "-c", MODEL + program, str(time.time()), str(dimension)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[5, 24, 100])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(f"{'D':>5} {'fit_auto s':>11} {'NUTS s':>8} {'ratio':>6}   compiled  evaluations (wanted: ratio <= {WANTED})")
    for dimension in options.dimensions:
        pairs = [(run(OURS, dimension), run(NUTS, dimension)) for _ in range(options.repeats)]
        ours, nuts = (statistics.median(pair[i]["seconds"] for pair in pairs) for i in (0, 1))
        last = pairs[-1][0]
        print(
            f"{dimension:>5} {ours:>11.2f} {nuts:>8.2f} {ours / nuts:>6.2f}   {last['compiled']:>8} "
            f"{last['evaluations']:>12,}",
            flush=True,
        )


if __name__ == "__main__":
    main()
