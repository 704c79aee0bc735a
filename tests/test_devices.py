"""Ready for accelerators, as far as a CPU can tell: chains stay on their devices, in single precision, on several."""

import json
import os
import subprocess
import sys
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

import thermocline as tc
from tests.engine.test_batch import SIZED
from thermocline.engine import program

CALLS = {"pure_callback", "io_callback", "debug_callback", "infeed", "outfeed"}
DEVICES = 4


def log_density(x):
    return -0.5 * ((x - 1.0) ** 2).sum()


class CaughtError(Exception):
    """What `advance` was called with."""


def call_of(monkeypatch, target, method) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The function that one compiled program of chains is made of, and what it is called with."""
    compiled: Any = program.advance

    def catch(*arguments, **sizes):
        if type(arguments[1]) is type(method):
            raise CaughtError(arguments, sizes)
        return compiled(*arguments, **sizes)  # a pilot's

    monkeypatch.setattr(program, "advance", catch)
    base = tc.Gaussian.diagonal(np.zeros(2), 2.0)
    with pytest.raises(CaughtError) as caught:
        tc.sample(target, base=base, method=method, num_chains=4, num_draws=8, progress=False, search=False)
    monkeypatch.setattr(program, "advance", compiled)
    return compiled, *caught.value.args


def primitives(jaxpr) -> set[str]:
    """Names of all operations, inner programs included."""
    found = {equation.primitive.name for equation in jaxpr.eqns}
    for equation in jaxpr.eqns:
        for value in jax.tree.leaves(equation.params, is_leaf=lambda leaf: hasattr(leaf, "eqns")):
            inner = getattr(value, "jaxpr", value)
            found |= primitives(inner) if hasattr(inner, "eqns") else set()
    return found


def operations(monkeypatch, target, method) -> set[str]:
    compiled, arguments, sizes = call_of(monkeypatch, target, method)
    with jax.enable_x64(True):
        return primitives(jax.make_jaxpr(partial(compiled.__wrapped__, **sizes))(*arguments).jaxpr)


@pytest.mark.parametrize("name", SIZED)
def test_a_chunk_of_steps_is_one_program_that_asks_nothing_of_the_host(name, monkeypatch):
    found = operations(monkeypatch, tc.Target(log_density, np.zeros(2)), SIZED[name])
    assert "while" in found, "the steps are a loop in the program"
    assert not found & CALLS


def test_a_density_of_the_host_is_seen_to_be_one(monkeypatch):
    """The test above can fail: where the density is NumPy's, steps do ask the host."""
    target = tc.from_numpy(lambda x: (float(log_density(x)), 1.0 - x), np.zeros(2))
    assert "pure_callback" in operations(monkeypatch, target, tc.GibbsTempering())


def test_chains_run_where_transfers_are_forbidden(monkeypatch):
    """With all it needs on the device, a chunk takes nothing from the host.

    Of what goes back JAX sees nothing on a CPU, where it is no copy: the test above says that no call asks for it.
    """
    compiled, (keys, method, block, *steps), sizes = call_of(
        monkeypatch, tc.Target(log_density, np.zeros(2)), tc.GibbsTempering()
    )
    with jax.enable_x64(True):
        given = jax.device_put((keys, method, block, *map(np.asarray, steps)))
        jax.block_until_ready(compiled(*given, **sizes))  # compiled, with its constants
        with jax.transfer_guard("disallow_explicit"):
            states, draws = compiled(*given, **sizes)
            jax.block_until_ready((states, draws))
        with pytest.raises(Exception, match="transfer"), jax.transfer_guard("disallow_explicit"):
            compiled(keys, *given[1:], **sizes)  # the test can fail: keys are still NumPy's
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves((states, draws)))


SCRIPT = """
import json
import jax, jax.numpy as jnp, numpy as np
import thermocline as tc

assert not jax.config.jax_enable_x64 and jax.device_count() == {devices}
means, deviations = np.array([-4.0, 5.0]), np.array([1.0, 0.5])

def log_density(x, shift):
    z = (x[0] - shift - means) / deviations
    modes = jnp.log(jnp.array([0.3, 0.7])) - 0.5 * z**2 - jnp.log(deviations * np.sqrt(2 * np.pi))
    return jnp.logaddexp(modes[0], modes[1]) - 0.5 * x[1] ** 2 - 0.5 * np.log(2 * np.pi) + 2.0

quiet = dict(precision="float32", progress=False)
target = tc.Target(log_density, np.zeros(2), np.asarray(0.0))
base = tc.Gaussian.diagonal(np.zeros(2), 6.0)
runs = {{"black box": tc.sample(target, seed=1, **quiet)}}
for name, method in dict(gibbs=tc.GibbsTempering(), joint=tc.JointTempering(), parallel=tc.ParallelTempering()).items():
    runs[name] = tc.sample(target, seed=1, base=base, method=method, num_chains=8, num_draws=500, **quiet)
many = tc.sample_many(target, np.array([0.0, 0.5, -0.5, 1.0]), base=base, seed=1, num_draws=500, num_chains=8, **quiet)
runs |= {{f"of many, {{i}}": result for i, result in enumerate(many)}}
print(json.dumps({{name: [
    result.log_evidence.z_score(2.0),
    float(result.log_evidence.value) - 2.0,
    float(result.expectation(lambda x: x[0] < 1.0).value),
    str(result.draws.position.dtype),
    result.info.fingerprint.number_of_devices,
    result.verdict,
] for name, result in runs.items()}}))
"""


@pytest.mark.slow
def test_single_precision_on_several_devices():
    environment = os.environ | {
        "JAX_ENABLE_X64": "0",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}",
    }
    program = SCRIPT.format(devices=DEVICES)
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=480)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == 8
    assert found["black box"][-1] == "ok"
    for name, (score, error, share, dtype, devices, _) in found.items():
        assert abs(score) < 4 or abs(error) < 1e-5, (name, score, error)  # a base that is the target has no error
        assert abs(share - 0.3) < 0.1, (name, share)
        assert (dtype, devices) == ("float32", str(DEVICES)), name


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_base_that_is_the_target_passes_every_check_in_single_precision():
    """All that differs is rounding, of which single precision has more."""
    base = tc.Gaussian.diagonal(np.ones(2), 1.0)
    target = tc.Target(log_density, np.zeros(2))
    options = {"num_chains": 8, "num_draws": 200, "progress": False, "search": False}
    result = tc.sample(target, base=base, precision="float32", **options)
    assert abs(float(result.log_evidence.value) - np.log(2 * np.pi)) < 1e-5
    assert [check for check in result.checks if check.status == "failed"] == []
