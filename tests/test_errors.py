"""Unusual input that is good, and what sampling leaves alone; `test_bad_input.py` has the input that is not."""

import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc

BASE = tc.Gaussian.diagonal({"x": np.zeros(2), "scale": 0.0}, 1.0)
SHORT = {"num_chains": 2, "num_warmup": 4, "num_draws": 4, "progress": False}
START = {"x": np.array([0.5, -1.0]), "scale": 0.25}


def log_density(position):
    return -0.5 * jnp.sum(position["x"] ** 2) - 0.5 * position["scale"] ** 2


TARGET = tc.Target(log_density, START)


def test_a_mean_of_integers_is_the_same_base():
    result = tc.sample(tc.Target(lambda x: -0.5 * x**2, 0.5), base=tc.Gaussian.diagonal(0, 1), **SHORT, search=False)
    assert np.all(np.isfinite(result.draws.position))


class Plain:
    """Both methods, on an ordinary class."""

    def log_density(self, position):
        return BASE.log_density(position)

    def sample(self, key):
        return BASE.sample(key)


def test_anything_with_the_two_methods_is_a_base():
    result = tc.sample(TARGET, base=Plain(), **SHORT, search=False)
    assert np.all(np.isfinite(result.draws.position))


@pytest.fixture(scope="module")
def untempered():
    return tc.sample(
        TARGET, base=BASE, method=tc.Untempered(), **{**SHORT, "num_warmup": 40, "num_draws": 200}, search=False
    )


def test_an_untempered_result_has_no_evidence_and_a_check_says_why(untempered):
    assert untempered.log_evidence is None
    assert any("estimates no evidence" in check.advice for check in untempered.checks)
    estimate = untempered.expectation(lambda p: p["scale"])
    assert abs(estimate.z_score(0.0)) < 4


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_sampling_leaves_jax_as_it_was_and_returns_numpy(precision):
    before = dict(jax.config.values)
    result = tc.sample(
        TARGET, base=BASE, method=tc.GibbsTempering(law=tc.Continuous()), precision=precision, **SHORT, search=False
    )
    assert dict(jax.config.values) == before
    assert jax.config.jax_enable_x64 is False
    assert jnp.ones(2).dtype == jnp.float32
    assert isinstance(result.draws.position, np.ndarray)
    assert result.draws.position.dtype == precision
    leaves = jax.tree.leaves((result.draws, result.law, result.continuation))
    assert not any(isinstance(leaf, jax.Array) for leaf in leaves)


def test_importing_changes_nothing_and_sampling_imports_no_arviz():
    code = """
import sys, jax
before = dict(jax.config.values)
import thermocline as tc
assert dict(jax.config.values) == before
target = tc.Target(lambda x: -0.5 * x**2, 0.5)
tc.sample(target, base=tc.Gaussian.diagonal(0.0, 1.0), num_chains=2, num_warmup=4, num_draws=8)
assert dict(jax.config.values) == before and jax.numpy.ones(1).dtype == "float32"
heavy = {"arviz", "matplotlib", "numpyro", "pymc", "pandas"} & set(sys.modules)
assert not heavy, heavy
"""
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == ""


def test_numbers_beyond_all_bounds_are_no_warnings_of_numpy():
    """They have a verdict, which is the news."""
    steep = tc.Target(lambda p: -0.5 * jnp.sum((p["x"] / 1e-150) ** 2) - 0.5 * p["scale"] ** 2, START)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = tc.sample(steep, base=BASE, search=False, **SHORT | {"num_draws": 40})
        assert result.verdict == "failed"
