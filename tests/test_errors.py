"""Bad input gets a sentence that names what is wrong and what to do; good input leaves JAX as it was."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from thermocline.pytree import pytree

BASE = tc.Gaussian.diagonal({"x": np.zeros(2), "scale": 0.0}, 1.0)
SHORT = {"num_chains": 2, "num_warmup": 4, "num_draws": 4, "progress": False}
START = {"x": np.array([0.5, -1.0]), "scale": 0.25}


def log_density(position):
    return -0.5 * jnp.sum(position["x"] ** 2) - 0.5 * position["scale"] ** 2


TARGET = tc.Target(log_density, START)


def message_of(target=TARGET, *, kind=tc.ThermoclineError, base=BASE, **options):
    """What `sample` says when it refuses."""
    with pytest.raises(kind) as caught:
        tc.sample(target, base=base, **{**SHORT, **options})
    return str(caught.value)


@pytest.mark.parametrize(("value", "shown"), [(-jnp.inf, "-inf"), (jnp.nan, "nan"), (jnp.inf, "inf")])
def test_a_density_that_is_not_finite_at_the_start_names_position_and_value(value, shown):
    said = message_of(tc.Target(lambda p: jnp.where(p["scale"] > 1, log_density(p), value), START))
    assert f"log density is {shown} at the initial position" in said
    assert "x = [0.5, -1]" in said
    assert "scale = 0.25" in said
    assert "`initial_position` inside the support" in said


def test_a_nan_gradient_at_the_start_names_the_parameter():
    start = {"x": np.array([0.5, -1.0]), "scale": 0.0}
    target = tc.Target(lambda p: log_density(p) + jnp.where(p["scale"] == 0, 0.0, jnp.sqrt(p["scale"])), start)
    said = message_of(target)
    assert "gradient of log density with respect to scale is not finite" in said
    assert "scale = 0" in said
    assert "with respect to x" not in said


def test_a_position_that_is_not_finite_is_named():
    said = message_of(tc.Target(log_density, {"x": np.array([0.5, np.nan]), "scale": 0.0}))
    assert "parameter x is [0.5 nan]" in said
    assert "give finite values" in said


def test_a_target_that_returns_a_vector():
    said = message_of(tc.Target(lambda p: -0.5 * p["x"] ** 2, START))
    assert "(2,)" in said
    assert "one number is needed; sum the log densities" in said


def test_a_target_that_returns_an_integer_or_nothing():
    assert "int" in message_of(tc.Target(lambda p: jnp.sum(p["x"]).astype(int), START))
    assert "one number is needed" in message_of(tc.Target(lambda p: None, START))


def test_a_target_called_with_the_wrong_arguments():
    said = message_of(tc.Target(lambda p, data: log_density(p), START))
    assert "log_density(position) could not be called" in said
    assert "data" in said


def test_discrete_parameters():
    said = message_of(tc.Target(log_density, {"x": np.array([1, 2]), "scale": 0.0}))
    assert "parameter x is of type int" in said
    assert "sum a discrete latent out" in said


@pytest.mark.parametrize("start", [{}, {"x": np.zeros(0)}, []])
def test_an_empty_model(start):
    assert "has no parameters" in message_of(tc.Target(lambda p: jnp.zeros(()), start))


@pytest.mark.parametrize(
    "mean",
    [
        {"x": np.zeros(3), "scale": 0.0},  # another shape
        {"x": np.zeros(2)},  # a parameter missing
        {"x": np.zeros(2), "width": 0.0},  # another name
        np.zeros(3),  # another structure
    ],
)
def test_a_base_that_does_not_live_where_the_target_does(mean):
    said = message_of(base=tc.Gaussian.diagonal(mean, 1.0))
    assert "the base draws positions of shape" in said
    assert "'x': (2,)" in said
    assert "same PyTree as `initial_position`" in said


def test_a_base_whose_scale_does_not_fit_its_mean():
    said = message_of(base=tc.Gaussian(BASE.mean, np.ones(4)))
    assert "base" in said
    assert "4" in said


def test_a_mean_of_integers_is_the_same_base():
    result = tc.sample(tc.Target(lambda x: -0.5 * x**2, 0.5), base=tc.Gaussian.diagonal(0, 1), **SHORT)
    assert np.all(np.isfinite(result.draws.position))


@pytree
class WithoutSample:
    width: float

    def log_density(self, position):
        return log_density(position)


@pytree
class WithoutDensity:
    width: float

    def sample(self, key):
        return START


class Plain:
    """Both methods, on an ordinary class."""

    def log_density(self, position):
        return BASE.log_density(position)

    def sample(self, key):
        return BASE.sample(key)


def test_a_base_without_one_of_its_methods():
    assert "the base has no `sample`" in message_of(base=WithoutSample(1.0))
    assert "the base has no `log_density`" in message_of(base=WithoutDensity(1.0))
    assert "the base has no `sample`" in message_of(base=tc.Base(log_density, None))
    assert "tc.Base(log_density, sample)" in message_of(base=WithoutSample(1.0))


def test_anything_with_the_two_methods_is_a_base():
    result = tc.sample(TARGET, base=Plain(), **SHORT)
    assert np.all(np.isfinite(result.draws.position))


def test_a_base_with_a_vector_for_a_density():
    base = tc.Base(lambda p: -0.5 * p["x"] ** 2, lambda key: START)
    assert "the base's log_density returns" in message_of(base=base)


def test_a_base_that_misses_the_support_altogether():
    target = tc.Target(lambda p: jnp.where(p["scale"] > 50, log_density(p), -jnp.inf), {**START, "scale": 60.0})
    said = message_of(target)
    assert "log density is -inf at all" in said
    assert "misses the target's support" in said


def test_a_target_that_is_nan_where_the_base_draws():
    target = tc.Target(lambda p: log_density(p) + 0 * jnp.log(1.5 - p["scale"]), START)
    said = message_of(target)
    assert "is nan at" in said
    assert "of 2048 draws of the base, first at scale = " in said
    assert "return -inf off the support" in said


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("seed", -1),
        ("seed", 2**32),
        ("seed", 1.5),
        ("seed", "1"),
        ("seed", None),
        ("num_chains", 0),
        ("num_chains", 2.5),
        ("num_warmup", -1),
        ("num_draws", 0),
        ("target_error", 0.0),
        ("target_error", -0.1),
        ("target_error", float("nan")),
        ("target_error", "small"),
        ("chunk_size", 0),
        ("chunk_size", "many"),
        ("precision", "float16"),
        ("precision", 64),
    ],
)
def test_a_bad_option_is_named_with_its_value(option, value):
    said = message_of(**{option: value}, kind=ValueError)
    assert f"{option} is {value!r}" in said
    assert "give" in said or "choose one of float64, float32" in said


def test_an_error_to_aim_at_needs_a_method_with_evidence(monkeypatch):
    monkeypatch.setattr(sys.modules["thermocline.sample"], "MOST_DRAWS", 8)  # lest it run on until it gives up
    assert "evidence" in message_of(method=tc.Untempered(), target_error=0.1)


@pytest.mark.parametrize(
    "law", [tc.Ladder(np.array([0.0, 1.0]), np.zeros(2)), tc.Learned(tc.Ladder(np.array([0.0, 1.0]), np.zeros(2)))]
)
def test_joint_tempering_cannot_climb_a_ladder(law):
    said = message_of(method=tc.JointTempering(law=law))
    assert "cannot use a Ladder; use GibbsTempering" in said


@pytest.fixture(scope="module")
def untempered():
    return tc.sample(TARGET, base=BASE, method=tc.Untempered(), **{**SHORT, "num_warmup": 40, "num_draws": 200})


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda result: result.log_partition([0.5]), "partition function"),
        (lambda result: result.log_partition_bounds([0.5]), "bounds on the partition function"),
        (lambda result: result.beta_marginal([0.5]), "marginal of beta"),
        (lambda result: result.base_expectation(lambda p: p["scale"]), "expectations under the base"),
        (lambda result: result.kl_base_to_target, "KL divergences"),
        (lambda result: result.kl_target_to_base, "KL divergences"),
        (tc.thermodynamic_integration, "thermodynamic integration"),
    ],
)
def test_what_needs_evidence_says_so_on_an_untempered_result(ask, named, untempered):
    with pytest.raises(ValueError, match="stayed at beta = 1") as caught:
        ask(untempered)
    assert named in str(caught.value)
    assert "need a tempered run" in str(caught.value)


def test_an_untempered_result_has_no_evidence_and_a_check_says_why(untempered):
    assert untempered.log_evidence is None
    assert any("estimates no evidence" in check.advice for check in untempered.checks)
    estimate = untempered.expectation(lambda p: p["scale"])
    assert abs(estimate.z_score(0.0)) < 4


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_sampling_leaves_jax_as_it_was_and_returns_numpy(precision):
    before = dict(jax.config.values)
    result = tc.sample(TARGET, base=BASE, method=tc.GibbsTempering(law=tc.Continuous()), precision=precision, **SHORT)
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
