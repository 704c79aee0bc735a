"""Seconds from the start of a process to log Z with an error, beside NUTS (BlackJAX, 4 x 1000) and bridge sampling.

Logistic regressions in 5, 24 and 100 dimensions, a non-centred hierarchy and a Poisson regression of 10,000 rows; each
in a process of its own, one after another, without JAX's persistent cache. Bridge sampling is Meng and Wong's (1996)
from a Gaussian fitted to the first half of the draws, on the second, with the error of Frühwirth-Schnatter (2004).

    python -m benchmarks.cost [--models NAME ...] [--repeats 1] [--store]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

from studies.tables import store

SHOWN = "model", "seconds", "NUTS + bridge", "ratio", "log Z", "by NUTS + bridge", "verdict"
WANTED_MEDIAN, WANTED_EACH = 0.6, 1.0
BEGIN = """
import json, sys, time
started, model = float(sys.argv[1]), sys.argv[2]
import jax, jax.numpy as jnp, numpy as np
generator = np.random.default_rng(7)
"""
LOGISTIC = """
x = generator.normal(size=(20 * dimension, dimension))
y = (generator.uniform(size=len(x)) < 1 / (1 + np.exp(-x @ generator.normal(size=dimension) / 2))).astype(float)
data = {"x": x, "y": y}

def log_density(b, data):
    eta = data["x"] @ b
    return jnp.sum(data["y"] * eta - jnp.logaddexp(0.0, eta)) - b @ b / 8 - dimension / 2 * jnp.log(8 * jnp.pi)
"""
HIERARCHY = """
groups, rows = 20, 15
dimension = groups + 3
effect = 1.5 + 0.7 * generator.normal(size=groups)
data = {"y": effect[:, None] + generator.normal(size=(groups, rows))}

def log_density(p, data):
    mu, log_tau, log_sigma, z = p[0], p[1], p[2], p[3:]
    normal = lambda x, scale: -0.5 * (x / scale) ** 2 - jnp.log(scale) - 0.5 * jnp.log(2 * jnp.pi)
    prior = normal(mu, 5.0) + normal(log_tau, 1.0) + normal(log_sigma, 1.0) + jnp.sum(normal(z, 1.0))
    means = mu + jnp.exp(log_tau) * z
    return prior + jnp.sum(normal(data["y"] - means[:, None], jnp.exp(log_sigma)))
"""
POISSON = """
dimension = 10
x = generator.normal(size=(10_000, dimension)) / 3
data = {"x": x, "y": generator.poisson(np.exp(0.3 + x @ generator.normal(size=dimension) / 2)).astype(float)}

def log_density(b, data):
    eta = 0.3 + data["x"] @ b
    likelihood = data["y"] * eta - jnp.exp(eta) - jax.scipy.special.gammaln(data["y"] + 1)
    return jnp.sum(likelihood) - b @ b / 2 - dimension / 2 * jnp.log(2 * jnp.pi)
"""
MODELS = {
    "logistic 5": "dimension = 5" + LOGISTIC,
    "logistic 24": "dimension = 24" + LOGISTIC,
    "logistic 100": "dimension = 100" + LOGISTIC,
    "hierarchy": HIERARCHY,
    "poisson": POISSON,
}
OURS = """
import thermocline as tc
result = tc.sample(tc.Target(log_density, np.zeros(dimension), data), seed=0, progress=False)
answer = {"value": result.log_evidence.value, "error": result.log_evidence.standard_error, "verdict": result.verdict}
print(json.dumps(answer | {"seconds": time.time() - started, "evaluations": int(result.cost.evaluations.total)}))
"""
BRIDGE = """
jax.config.update("jax_enable_x64", True)
import blackjax
from scipy.special import logsumexp
data = jax.tree.map(jnp.asarray, data)
density = lambda b: log_density(b, data)

def chain(key, start):
    warm_key, draw_key = jax.random.split(key)
    (state, tuned), _ = blackjax.window_adaptation(blackjax.nuts, density).run(warm_key, start, 1000)
    step = blackjax.nuts(density, **tuned).step

    def one(state, key):
        state, info = step(key, state)
        return state, (state.position, state.logdensity, info.num_integration_steps)

    return jax.lax.scan(one, state, jax.random.split(draw_key, 1000))[1]

keys = jax.random.split(jax.random.key(0), 4)
starts = 0.1 * jax.random.normal(keys[0], (4, dimension))
draws, heights, steps = map(np.asarray, jax.jit(jax.vmap(chain))(keys, starts))
fitted, kept = draws[:, :500].reshape(-1, dimension), draws[:, 500:].reshape(-1, dimension)
mean, root = fitted.mean(axis=0), np.linalg.cholesky(np.cov(fitted.T))
log_determinant = np.log(np.diag(root)).sum()

def log_proposal(rows):
    white = np.linalg.solve(root, (rows - mean).T)
    return -0.5 * np.sum(white**2, axis=0) - log_determinant - dimension / 2 * np.log(2 * np.pi)

drawn = mean + generator.normal(size=kept.shape) @ root.T
ratio_kept = heights[:, 500:].ravel() - log_proposal(kept)
ratio_drawn = np.asarray(jax.jit(jax.vmap(density))(drawn)) - log_proposal(drawn)

def autocorrelation_time(values):
    centred = values - values.mean()
    spectrum = np.fft.rfft(centred, 2 * values.shape[1], axis=1)
    covariance = np.mean(np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, : values.shape[1]], axis=0)
    pairs = (covariance[0::2] + covariance[1::2]) / covariance[0]
    last = np.argmax(pairs < 0) if (pairs < 0).any() else len(pairs)
    return max(2 * pairs[:last].sum() - 1, 1 / 50)

number, value = len(ratio_kept), 0.0
effective = number / autocorrelation_time(heights[:, 500:])
share = effective / (effective + number)
for _ in range(1000):
    top = logsumexp(ratio_drawn - np.logaddexp(np.log(share) + ratio_drawn, np.log1p(-share) + value))
    bottom = logsumexp(-np.logaddexp(np.log(share) + ratio_kept, np.log1p(-share) + value))
    value, before = top - bottom, value
    if abs(value - before) < 1e-12:
        break
of_drawn = np.exp(ratio_drawn - value - np.logaddexp(np.log(share) + ratio_drawn - value, np.log1p(-share)))
of_kept = np.exp(-np.logaddexp(np.log(share) + ratio_kept - value, np.log1p(-share)))
time_kept = autocorrelation_time(of_kept.reshape(4, -1))
variance = of_drawn.var() / of_drawn.mean() ** 2 / number + time_kept * of_kept.var() / of_kept.mean() ** 2 / number
answer = {"value": float(value), "error": float(np.sqrt(variance)), "evaluations": int(steps.sum()) + number}
print(json.dumps(answer | {"seconds": time.time() - started}))
"""


def run(program: str, model: str) -> dict[str, float]:
    """One process; what it printed last."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    command = [sys.executable, "-c", BEGIN + MODELS[model] + program, str(time.time()), model]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS), metavar="NAME")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--store", action="store_true", help="the table, for docs/choosing.md (`make tables`)")
    options = parser.parse_args()
    print(f"wanted: ratio <= {WANTED_MEDIAN} in the median, <= {WANTED_EACH} each, at an error no larger")
    ratios, rows = [], []
    for model in options.models:
        pairs = [(run(OURS, model), run(BRIDGE, model)) for _ in range(options.repeats)]
        ours, bridge = (min(pair[i]["seconds"] for pair in pairs) for i in (0, 1))
        ratios.append(ours / bridge)
        first, second = pairs[0]
        said = (f"{each['value']:.3f} ± {each['error']:.4f}" for each in (first, second))
        rows.append([model, f"{ours:.1f}", f"{bridge:.1f}", f"{ours / bridge:.2f}", *said, first["verdict"]])
        print(
            f"{model:>13}: ours {ours:5.1f} s, {first['value']:.3f} ± {first['error']:.4f}, {first['verdict']}, "
            f"{first['evaluations']:,} evaluations; NUTS + bridge {bridge:5.1f} s, {second['value']:.3f} ± "
            f"{second['error']:.4f}, {second['evaluations']:,}; ratio {ours / bridge:.2f}",
            flush=True,
        )
    print(f"median ratio {statistics.median(ratios):.2f}")
    if options.store:
        store("cost", "python -m benchmarks.cost", SHOWN, rows)


if __name__ == "__main__":
    main()
