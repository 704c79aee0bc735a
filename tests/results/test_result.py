"""What a result says: numbers with known answers, a summary for people, and a reason where there is no number."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import thermocline as tc
from tests import problems
from thermocline.records import Draws
from thermocline.results.result import systematic_resample
from thermocline.results.weighing import Weighing

EXACT = stats.beta(2 + 50, 5 + 50)
LIMIT = 4  # standard errors


@pytest.fixture(scope="module")
def result() -> tc.Result:
    """A tempered run whose target is a Beta law, from its prior; the paper's law of beta, quick to compile."""
    problem = problems.beta_bernoulli(2.0, 5.0)
    return tc.sample(
        problem.target,
        base=problem.base,
        method=tc.GibbsTempering(law=tc.Continuous()),
        num_chains=8,
        num_warmup=100,
        num_draws=200,
        progress=False,
        search=False,
    )


@pytest.fixture(scope="module")
def untempered() -> tc.Result:
    problem = problems.gaussian(2)
    return tc.sample(
        problem.target,
        base=problem.base,
        method=tc.Untempered(),
        num_chains=4,
        num_warmup=100,
        num_draws=50,
        progress=False,
        search=False,
    )


def shortened(result: tc.Result, num_draws: int) -> tc.Result:
    """The result as if it had stopped early."""
    return replace(
        result,
        draws=Draws(*(leaf[:, :num_draws] for leaf in result.draws)),
        parameters={name: values[:, :num_draws] for name, values in result.parameters.items()},
        unconstrained={name: values[:, :num_draws] for name, values in result.unconstrained.items()},
    )


def assert_near(estimate: tc.Estimate, exact: object) -> None:
    assert np.all(np.asarray(estimate.standard_error) > 0)
    assert np.all(np.abs(np.asarray(estimate.value) - exact) < LIMIT * np.asarray(estimate.standard_error)), estimate


def test_log_evidence_is_exact_within_its_error(result):
    assert abs(result.log_evidence.z_score(-71.445086)) < LIMIT


def test_expectation_of_a_vector_is_elementwise(result):
    estimate = result.expectation(lambda p: jnp.stack([p, p**2, (p > 0.5).astype(float)]))
    assert np.shape(estimate.value) == np.shape(estimate.standard_error) == np.shape(estimate.dof) == (3,)
    assert_near(estimate, [EXACT.mean(), EXACT.moment(2), EXACT.sf(0.5)])
    assert estimate.value[0] == result.expectation(lambda p: p).value


def test_expectation_takes_functions_that_jax_cannot_trace(result):
    by_hand = result.expectation(lambda p: np.float64(p) ** 2 if float(p) > 0 else 0.0)
    traced = result.expectation(lambda p: p**2)
    assert by_hand.value == pytest.approx(traced.value, rel=1e-12)


def test_base_expectation_is_the_prior_mean(result):
    assert_near(result.base_expectation(lambda p: p), 2 / 7)


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_quantile_is_exact_within_its_error(result, probability):
    assert_near(result.quantile(lambda p: p, probability), EXACT.ppf(probability))


def test_interval_holds_the_probability_asked_for(result):
    interval = result.interval(lambda p: p, 0.8)
    assert_near(interval.lower, EXACT.ppf(0.1))
    assert_near(interval.upper, EXACT.ppf(0.9))
    with pytest.raises(ValueError, match="probability"):
        result.quantile(lambda p: p, 1.0)


def test_posterior_draws_are_equally_weighted(result):
    draws = result.posterior(4000)["x"]
    mean = result.expectation(lambda p: p)
    resampling = draws.std() / np.sqrt(draws.size)
    assert draws.shape == (4000,)
    assert abs(draws.mean() - EXACT.mean()) < LIMIT * np.hypot(mean.standard_error, resampling)
    assert abs(draws.mean() - mean.value) < LIMIT * resampling
    share = result.expectation(lambda p: p > 0.5)
    error = np.hypot(share.standard_error, 0.5 / np.sqrt(draws.size))
    assert abs(np.mean(draws > 0.5) - EXACT.sf(0.5)) < LIMIT * error


def test_systematic_resampling_keeps_every_count_within_one():
    weight = np.array([0.0, 0.5, 1.5, 3.0, 0.25, 4.75])
    log_weight = np.log(weight, where=weight > 0, out=np.full(6, -np.inf))
    counts = np.bincount(systematic_resample(log_weight, 1000, seed=3), minlength=6)
    assert counts.sum() == 1000
    assert np.all(np.abs(counts - 100 * weight) < 1)
    assert counts[0] == 0


def test_log_partition_joins_base_and_target(result):
    curve = result.log_partition([0.0, 1.0])
    assert curve.value[0] == pytest.approx(0.0, abs=1e-9)
    assert curve.value[1] == pytest.approx(result.log_evidence.value, abs=result.log_evidence.standard_error)
    with pytest.raises(ValueError, match="between 0 and 1"):
        result.log_partition(1.5)


def test_summary_gives_the_answer_first(result):
    lines = result.summary().splitlines()
    assert lines[0].split()[:2] == ["verdict", f"{result.verdict}:"]
    assert lines[1].startswith("log Z")
    assert str(result.log_evidence) in lines[1]
    assert max(map(len, lines)) <= 110
    assert "\x1b" not in result.summary()
    for word in ("KL divergence", "round trips", "GibbsTempering", "8 chains x 200", "seed", "R-hat", "jax"):
        assert word in result.summary(), word


def test_summary_advises_on_what_was_not_passed_and_only_there(result):
    short = shortened(result, 4)
    text = " ".join(short.summary().split())
    assert short.verdict == "failed"
    for check in short.checks:
        assert check.name in text
        assert (check.advice == "") == check.passed
        for said in (text, short._repr_html_().replace("&#x27;", "'")):
            assert (check.advice in said and f"See {check.link}" in said) or check.passed
            assert (check.meaning in said) == any(c.meaning == check.meaning and not c.passed for c in short.checks)


def test_summary_caps_the_parameters_and_says_so(result):
    wide = np.repeat(result.parameters["x"][..., None], 50, axis=-1)
    base = np.repeat(result.base_parameters["x"][..., None], 50, axis=-1)
    text = replace(result, parameters={"many": wide}, base_parameters={"many": base}, template="many").summary()
    assert "many[19]" in text
    assert "many[20]" not in text
    assert "30 more" in text


def test_names_are_shown_as_they_are(result):
    odd = replace(
        result,
        parameters=dict.fromkeys(["<b>", "[red]"], result.parameters["x"]),
        base_parameters=dict.fromkeys(["<b>", "[red]"], result.base_parameters["x"]),
        template={"<b>": "<b>", "[red]": "[red]"},
    )
    assert "<b>" in odd.summary()
    assert "[red]" in odd.summary()
    html = odd._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "http" not in html


def test_repr_is_one_line(result):
    assert repr(result) == f"<Result {result.verdict}: log Z = {result.log_evidence}, 8 chains of 200 draws>"


def test_untempered_result_says_why_it_has_no_evidence(untempered):
    assert untempered.log_evidence is None
    reasons = [check.advice for check in untempered.checks if check.name == "evidence"]
    assert len(reasons) == 1
    assert "beta = 1" in reasons[0]
    assert "log Z" in untempered.summary()
    assert reasons[0] in " ".join(untempered.summary().split())
    assert "no evidence" in repr(untempered)
    with pytest.raises(ValueError, match="stayed at beta = 1"):
        untempered.log_partition(0.5)


def test_untempered_result_survives_saving(untempered, tmp_path):
    untempered.save(tmp_path / "run.nc")
    loaded = tc.load(tmp_path / "run.nc")
    assert loaded.log_evidence is None
    assert loaded.verdict == untempered.verdict
    assert loaded.summary() == untempered.summary()


def test_an_expectation_without_variance_has_no_known_error():
    """The mean of a Cauchy does not exist; that of a bounded function of it, and of a Gaussian, do."""
    generator = np.random.default_rng(0)
    weighing = Weighing(None, np.zeros((4, 2000)), None)
    nothing, cauchy = np.zeros((1, 0)), generator.standard_cauchy(size=(4, 2000))
    assert weighing.mean((nothing, cauchy)).status == "unknown"
    assert weighing.mean((nothing, np.tanh(cauchy))).status == "ok"
    assert weighing.mean((nothing, generator.normal(size=(4, 2000)))).status == "ok"
    assert weighing.mean((nothing, np.ones((4, 2000)))).status == "ok"
