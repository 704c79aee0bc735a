"""One call from a target and a base to an answer, against exact answers."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from tests.problems import BETA_BINOMIAL_PATH, PROBLEMS, bimodal, gaussian, mixture

QUIET: dict[str, Any] = {"progress": False}
FIXED: dict[str, Any] = {"num_draws": 1000, **QUIET}
METHODS = {"gibbs": tc.GibbsTempering, "joint": tc.JointTempering, "simulated": tc.SimulatedTempering}


@pytest.fixture(scope="module")
def bimodal_result():
    problem = bimodal()
    return tc.sample(problem.target, base=problem.base, seed=1, **FIXED, search=False)


QUICK = ("bimodal", "mixture 2-D")  # the others compile as long and say the same


def quick_or_slow(name):
    return name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [quick_or_slow(name) for name in PROBLEMS])
def test_evidence_and_mean_of_every_problem(name):
    problem = PROBLEMS[name]()
    method = tc.GibbsTempering(mover=tc.HMC(num_steps=problem.num_steps))
    result = tc.sample(problem.target, base=problem.base, method=method, seed=3, **FIXED, search=False)
    assert abs(result.log_evidence.z_score(problem.log_evidence)) < 4
    assert abs(result.expectation(problem.function).z_score(problem.mean)) < 4
    assert result.verdict == "ok", [check for check in result.checks if not check.passed]
    assert result.cost.evaluations.total < 1e6


@pytest.mark.slow
@pytest.mark.parametrize("method", ["joint", "simulated"])
@pytest.mark.parametrize("name", [quick_or_slow(name) for name in ("mixture 2-D", "gaussian 5-D", "half-gaussian")])
def test_other_methods_agree(name, method):
    problem = PROBLEMS[name]()
    result = tc.sample(problem.target, base=problem.base, method=METHODS[method](), seed=5, **FIXED, search=False)
    assert abs(result.log_evidence.z_score(problem.log_evidence)) < 4
    assert abs(result.expectation(problem.function).z_score(problem.mean)) < 4


@pytest.mark.slow
@pytest.mark.parametrize("method", [tc.GibbsTempering(mover=tc.NUTS()), tc.JointTempering(mover=tc.NUTS())])
def test_nuts_moves_either_method(method):
    problem = mixture()
    result = tc.sample(problem.target, base=problem.base, method=method, seed=2, num_draws=500, **QUIET, search=False)
    assert abs(result.log_evidence.z_score(problem.log_evidence)) < 4
    assert abs(result.expectation(problem.function).z_score(problem.mean)) < 4


def test_bimodal_finds_both_modes(bimodal_result):
    assert abs(bimodal_result.log_evidence.z_score(0.0)) < 4
    assert abs(bimodal_result.expectation(lambda x: x < 0).z_score(0.6)) < 4
    assert bimodal_result.log_evidence.standard_error < 0.05


def test_untempered_finds_one_mode_and_its_verdict_says_so():
    problem = bimodal()
    result = tc.sample(problem.target, base=problem.base, method=tc.Untempered(), seed=0, **FIXED, search=False)
    position = result.draws.position[..., 0]
    has_been_left, has_been_right = (position < -4).any(axis=1), (position > 4).any(axis=1)
    assert not np.any(has_been_left & has_been_right)  # no chain crosses
    assert has_been_left.any()
    assert has_been_right.any()
    assert result.log_evidence is None
    assert result.verdict == "failed"


@pytest.mark.parametrize("offset", [50.0, pytest.param(-50.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", list(METHODS))
def test_log_zeta_need_not_be_good(method, offset):
    problem = mixture()
    base = tc.BaseFit(problem.base, problem.log_evidence + offset)
    result = tc.sample(problem.target, base=base, method=METHODS[method](), seed=4, **FIXED, search=False)
    assert abs(result.log_evidence.z_score(problem.log_evidence)) < 4
    assert result.log_evidence.standard_error < 0.05
    assert result.verdict == "ok", [check for check in result.checks if not check.passed]


def test_the_papers_own_law_with_its_log_zeta():
    problem = bimodal()
    method = tc.GibbsTempering(law=tc.Continuous())
    result = tc.sample(problem.target, base=problem.base, method=method, seed=0, **FIXED, search=False)
    assert abs(result.log_evidence.z_score(0.0)) < 4


@pytest.mark.slow
def test_a_users_own_prior_of_beta():
    problem = gaussian(3)
    law = tc.Continuous.from_prior(lambda beta: 2.0 * np.sin(3 * beta))
    result = tc.sample(
        problem.target, base=problem.base, method=tc.GibbsTempering(law=law), seed=0, **FIXED, search=False
    )
    assert abs(result.log_evidence.z_score(problem.log_evidence)) < 4


@pytest.mark.slow
def test_the_whole_curve_of_a_prior_to_posterior_path():
    problem = PROBLEMS["beta-binomial"]()
    result = tc.sample(problem.target, base=problem.base, seed=8, num_draws=2000, **QUIET, search=False)
    betas = np.array(list(BETA_BINOMIAL_PATH))
    curve = result.log_partition(betas)
    assert np.all(np.abs(curve.value - np.array(list(BETA_BINOMIAL_PATH.values()))) < 4 * curve.standard_error)
    bounds = result.log_partition_bounds(betas)
    assert np.all(bounds.lower <= curve.value + 4 * curve.standard_error)
    assert np.all(curve.value <= bounds.upper + 4 * curve.standard_error)


@pytest.mark.slow
def test_thermodynamic_integration_beside_the_ratio(bimodal_result):
    assert abs(tc.thermodynamic_integration(bimodal_result).z_score(0.0)) < 4
    problem = gaussian(3)
    ladder = tc.sample(problem.target, base=problem.base, method=tc.SimulatedTempering(), seed=0, **FIXED, search=False)
    assert abs(tc.thermodynamic_integration(ladder).z_score(problem.log_evidence)) < 4


def test_base_expectations_and_divergences_of_gaussians():
    target = tc.Target(lambda x: -0.5 * (x - 1.0) ** 2 / 0.25, 0.0)
    result = tc.sample(target, base=tc.Gaussian.diagonal(0.0, 1.0), seed=0, **FIXED, search=False)
    assert abs(result.base_expectation(lambda x: x).z_score(0.0)) < 4
    assert abs(result.base_expectation(lambda x: x**2).z_score(1.0)) < 4
    forward = np.log(0.5) + (1 + 1) / (2 * 0.25) - 0.5  # KL(N(0, 1) to N(1, 0.5^2))
    backward = np.log(2) + (0.25 + 1) / 2 - 0.5
    assert abs(result.kl_base_to_target.z_score(forward)) < 4
    assert abs(result.kl_target_to_base.z_score(backward)) < 4


def test_target_error_stops_when_reached_and_looks_at_doublings_only():
    problem = mixture()
    result = tc.sample(
        problem.target, base=problem.base, seed=0, num_draws=250, target_error=0.012, **QUIET, search=False
    )
    assert result.log_evidence.standard_error <= 0.012
    assert result.draws.log_ratio.shape[1] in {250 * 2**k for k in range(10)}
    assert abs(result.log_evidence.z_score(problem.log_evidence)) < 4


def test_without_a_length_a_run_ends_at_an_error_of_a_twentieth():
    """The prior of a beta-binomial is far from its posterior: the first draws are not enough, and it goes on."""
    problem = PROBLEMS["beta-binomial"]()
    result = tc.sample(problem.target, base=problem.base, seed=3, **QUIET, search=False)
    assert result.log_evidence.standard_error <= 0.05
    assert result.draws.log_ratio.shape[1] in {1000 * 2**k for k in range(1, 5)}
    assert abs(result.log_evidence.z_score(problem.log_evidence)) < 4


@pytest.mark.slow
def test_swapping_base_and_target_flips_the_sign():
    first = tc.Gaussian.diagonal(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    second = tc.Gaussian.diagonal(np.array([1.0, 0.0]), np.array([0.5, 1.5]))
    constant = 3.0
    there = tc.sample(
        tc.Target(lambda x, c: second.log_density(x) + c, np.zeros(2), constant),
        base=first,
        seed=0,
        **FIXED,
        search=False,
    )
    back = tc.sample(
        tc.Target(lambda x, c: first.log_density(x) - c, np.zeros(2), constant),
        base=second,
        seed=1,
        **FIXED,
        search=False,
    )
    total = there.log_evidence + back.log_evidence
    assert abs(total.z_score(0.0)) < 4


@pytest.mark.slow
def test_positions_of_any_structure():
    def log_density(position):
        return -0.5 * jnp.sum((position["a"] - 1.0) ** 2) - 0.5 * jnp.sum(position["b"][1] ** 2) / 4

    start = {"a": np.zeros((2, 2)), "b": (np.float64(0.0) * np.ones(0), np.zeros(3))}
    base = tc.Gaussian.diagonal(start, 1.5)
    result = tc.sample(tc.Target(log_density, start), base=base, seed=0, num_draws=500, **QUIET, search=False)
    truth = 3.5 * np.log(2 * np.pi) + 3 * np.log(2.0)
    assert abs(result.log_evidence.z_score(truth)) < 4
    assert result.parameters["a"].shape == (16, 500, 2, 2)


def test_data_are_leaves_and_share_one_program():
    from thermocline.engine.program import advance

    def log_density(x, data):
        return -0.5 * jnp.sum((x - data) ** 2)

    base = tc.Gaussian.diagonal(np.zeros(2), 2.0)
    options = {"base": base, "num_chains": 4, "num_warmup": 50, "num_draws": 20, "progress": False}
    tc.sample(tc.Target(log_density, np.zeros(2), np.zeros(2)), **options, search=False)
    compiled = advance._cache_size()
    tc.sample(tc.Target(log_density, np.zeros(2), np.ones(2)), **options, search=False)
    assert advance._cache_size() == compiled


def test_single_precision_is_an_option():
    problem = mixture()
    result = tc.sample(
        problem.target, base=problem.base, precision="float32", seed=0, num_draws=500, **QUIET, search=False
    )
    assert result.draws.position.dtype == np.float32
    assert abs(result.log_evidence.z_score(problem.log_evidence)) < 4


def test_nan_gradients_are_rejected_counted_and_reported():
    def log_density(x):
        return jnp.where(x < 3.0, -0.5 * x**2, jnp.nan)  # undefined beyond 3, where 0.1 % of the mass was

    base = tc.Base(jax.scipy.stats.norm.logpdf, lambda key: jnp.minimum(jax.random.normal(key), 2.9))
    result = tc.sample(tc.Target(log_density, 0.0), base=base, seed=0, num_draws=300, **QUIET, search=False)
    assert result.draws.is_nonfinite.any()
    assert np.all(result.draws.position < 3.0)
    assert any(check.name.startswith("non-finite") for check in result.checks)


def test_a_limit_on_evaluations_bounds_the_whole_call_and_is_said():
    """An error of 0.0001 would take far more than is given."""
    problem = bimodal()
    limit = 60_000
    result = tc.sample(problem.target, seed=0, target_error=1e-4, max_evaluations=limit, progress=False)
    assert result.cost.evaluations.total < 1.2 * limit  # the last round is known by what the one before took
    assert result.log_evidence.standard_error > 1e-4
    assert abs(result.log_evidence.value - problem.log_evidence) < 4 * result.log_evidence.standard_error
    assert result.search.cut_short_by == "max_evaluations"
    with pytest.raises(tc.ThermoclineError, match="must be positive"):
        tc.sample(problem.target, max_evaluations=0)
