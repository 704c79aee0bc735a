"""A cold start compiles few programs: counted in a fresh process, on a logistic regression in 24 dimensions."""

import json
import subprocess
import sys

MOST_PROGRAMS = {"fit_auto": 2, "sample": 3}  # in all; version 0.1 took 51
PROGRAM = """
import json
import jax, jax.monitoring, jax.numpy as jnp, numpy as np
import thermocline as tc

events = []
jax.monitoring.register_event_duration_secs_listener(lambda name, seconds, **_: events.append(name))
generator = np.random.default_rng(0)
x = generator.normal(size=(500, 24))
y = (generator.uniform(size=500) < 1 / (1 + np.exp(-x @ generator.normal(size=24) / 2))).astype(float)

def log_density(b, data):
    eta = data["x"] @ b
    return jnp.sum(data["y"] * eta - jnp.logaddexp(0.0, eta)) - b @ b / 8 - 12 * jnp.log(8 * jnp.pi)

def num_compiled():
    return sum(name.endswith("backend_compile_duration") for name in events)

target = tc.Target(log_density, np.zeros(24), {"x": x, "y": y})
fit = tc.fit_auto(target, seed=0)
counts = {"fit_auto": num_compiled()}
result = tc.sample(target, seed=0, base=fit, progress=False)
print(json.dumps(counts | {"sample": num_compiled(), "verdict": result.verdict}))
"""


def test_few_programs_are_compiled():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=300)
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts.pop("verdict") == "ok"
    assert {name: counts[name] for name, most in MOST_PROGRAMS.items() if counts[name] > most} == {}
