"""Host functions as targets: values and both derivatives reach JAX to the last bit, batched where they can be."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from scipy import stats

import thermocline as tc
from thermocline.support.precision import cast, computing_in

MATRIX = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, -0.4], [0.0, -0.4, 3.0]])
CENTRE = np.array([0.2, -1.1, 0.7])
START = {"b": np.array([0.1, 0.4]), "a": 0.3}
RUN = {"num_chains": 4, "num_warmup": 100, "num_draws": 200, "progress": False}
LOG_EVIDENCE = -stats.multivariate_normal(np.zeros(3), np.linalg.inv(MATRIX)).logpdf(np.zeros(3))


class Counted:
    """A Gaussian of a PyTree, for one position or for rows of them; counts its calls."""

    def __init__(self, batched):
        self.batched, self.calls, self.rows = batched, 0, 0

    def __call__(self, position):
        if not self.batched and np.ndim(position["a"]) > 0:
            raise TypeError("one position at a time")
        assert position["a"].dtype == np.float64
        self.calls, self.rows = self.calls + 1, self.rows + np.size(position["a"])
        vector = np.concatenate([np.asarray(position["a"])[..., None], position["b"]], axis=-1) - CENTRE
        slope = -vector @ MATRIX
        value = 0.5 * np.sum(slope * vector, axis=-1)
        return value, {"a": slope[..., 0], "b": slope[..., 1:]}


@pytest.mark.parametrize("batched", [True, False])
def test_derivatives_and_calls(batched):
    function = Counted(batched)
    target = tc.from_numpy(function, START)
    rows = np.random.default_rng(0).normal(size=(5, 3))
    with computing_in("float64"):
        tree = lambda x: {"a": x[0], "b": x[1:]}  # noqa: E731
        before = function.calls
        value, slope = jax.jit(jax.vmap(jax.value_and_grad(lambda x: target(tree(x)))))(rows)
        assert function.calls - before == (1 if batched else 5)
        centred = rows - CENTRE
        np.testing.assert_allclose(value, 0.5 * np.sum(-(centred @ MATRIX) * centred, axis=1), rtol=1e-14)
        np.testing.assert_allclose(slope, -(centred @ MATRIX), rtol=1e-13, atol=1e-14)
        curvature = jax.jit(jax.vmap(jax.hessian(lambda x: target(tree(x)))))(rows)
        np.testing.assert_allclose(curvature, np.broadcast_to(-MATRIX, (5, 3, 3)), atol=1e-8)


def test_a_big_position_keeps_its_precision():
    """A callback outside the precision context would round, or fail, at sizes like these."""
    exact = np.random.default_rng(1).normal(size=20_000)
    target = tc.from_numpy(lambda x: (-0.5 * np.sum((x - exact) ** 2), exact - x), np.zeros(20_000))
    with computing_in("float64"):
        slope = np.asarray(jax.jit(jax.grad(target))(cast(target.initial_position, "float64")))
    np.testing.assert_array_equal(slope, exact)


@pytest.mark.slow
def test_sampled_as_any_target_in_single_precision():
    target = tc.from_numpy(Counted(batched=True), START)
    base = tc.Gaussian.diagonal({"a": 0.0, "b": np.zeros(2)}, 1.5)
    result = tc.sample(target, base=base, precision="float32", **RUN, search=False)
    assert abs(result.log_evidence.z_score(LOG_EVIDENCE)) < 4
    assert set(result.parameters) == {"a", "b"}


class FakeBridgeStan:
    """What BridgeStan's StanModel offers, for a log-normal `sigma` and a 2 x 2 matrix `m` of its powers."""

    def param_unc_names(self):
        return ["sigma"]

    def param_names(self, include_tp=False, include_gq=False):
        made = ["m.1.1", "m.2.1", "m.1.2", "m.2.2"] if include_tp else []
        return ["sigma", *made, *(["fresh"] if include_gq else [])]

    def new_rng(self, seed):
        return np.random.default_rng(seed)

    def param_constrain(self, theta_unc, *, include_tp=False, include_gq=False, rng=None):
        assert include_tp
        made = np.exp(np.array([1.0, 0.0, 1.0, 2.0, 3.0]) * theta_unc[0])
        return np.append(made, rng.normal()) if include_gq else made

    def log_density_gradient(self, theta_unc, *, propto=True, jacobian=True):
        assert not propto
        assert jacobian
        if theta_unc[0] > 8:
            raise RuntimeError("rejected")
        return stats.norm(0.5, 2).logpdf(theta_unc[0]), (0.5 - theta_unc) / 4


def test_a_bridgestan_model():
    target = tc.from_stan(FakeBridgeStan())
    with computing_in("float64"):
        position = {"sigma": jax.numpy.asarray(np.log(2.0))}
        shown = jax.jit(target.shown)(position)
        np.testing.assert_allclose(shown["m"], [[1, 4], [2, 8]], rtol=1e-12)
        again, other = (target.shown({"sigma": jax.numpy.asarray(np.log(x))})["fresh"] for x in (2.0, 3.0))
        assert shown["fresh"] == again != other
        assert float(target({"sigma": jax.numpy.asarray(9.0)})) == -np.inf
        np.testing.assert_allclose(jax.grad(target)(position)["sigma"], (0.5 - np.log(2)) / 4)
    assert "BridgeStan" in target.caveats[0]


SEVERAL = """
import numpy as np, jax, thermocline as tc
from thermocline.paths import Path
from thermocline.engine.program import chain_mesh
assert len(jax.devices()) == 2
target = tc.from_numpy(lambda x: (-0.5 * np.sum(x**2), -x), np.ones(2))
base = tc.Gaussian.diagonal(np.zeros(2), 1.5)
traced = tc.Target(lambda x: -0.5 * (x @ x), np.ones(2))
print(*(chain_mesh(4, Path(one, base, jax.numpy.asarray(0.0))).size for one in (target, traced)))
"""
SAMPLED = """
result = tc.sample(target, base=base, num_chains=4, num_warmup=20, num_draws=40, progress=False)
"""


@pytest.mark.parametrize("code", [SEVERAL, pytest.param(SEVERAL + SAMPLED, marks=pytest.mark.slow)])
def test_of_several_devices_a_host_target_uses_one(code):
    """Callbacks were seen to hang on more."""
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    command = [sys.executable, "-c", code]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.split() == ["1", "2"]


def test_importing_and_using_front_ends_leaves_settings_alone():
    code = """
import os, sys, jax
before = dict(jax.config.values)
import thermocline as tc
optional = {"numpyro", "pymc", "pytensor", "httpstan"} & set(sys.modules)
assert not optional, optional
import pymc as pm
with pm.Model() as model:
    pm.Normal("y", pm.Normal("x"), observed=[1.0, 2.0])
tc.from_pymc(model)
assert dict(jax.config.values) == before
assert "XLA_FLAGS" not in os.environ
"""
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    command = [sys.executable, "-c", code]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment)
    assert finished.returncode == 0, finished.stderr


def test_arrays_that_a_single_precision_program_holds():
    """A user who ran another sampler first has such programs; JAX would hand out their rounded constants."""
    import numpyro
    import numpyro.distributions as dist
    import pymc as pm

    values, index = np.arange(5.0) + 0.1, np.array([0, 2, 2, 4, 1])
    held = jax.jit(lambda x: x + values + index)
    held(1.0)

    def model(y, group):
        level = numpyro.sample("level", dist.Normal(0, 1).expand([5]))
        numpyro.sample("y", dist.Normal(level[group] * y, 1), obs=y)

    with pm.Model() as same:
        pm.Normal("y", pm.Normal("level", 0, 1, shape=5)[index] * values, 1, observed=values)
    exact = stats.norm(0, 1).logpdf(np.zeros(5)).sum() + stats.norm(0, 1).logpdf(values).sum()
    for target in (tc.from_numpyro(model, values, index), tc.from_pymc(same)):
        with computing_in("float64"):
            inside = cast(target, "float64")
            np.testing.assert_allclose(jax.jit(inside)(inside.initial_position), exact, rtol=1e-14)
