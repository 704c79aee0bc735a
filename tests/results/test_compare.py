"""Models side by side: exact probabilities within their errors, errors that are right, and reasons to refuse."""

from dataclasses import replace

import numpy as np
import pytest
from jax.tree_util import Partial
from scipy import stats

import thermocline as tc
from tests import problems
from thermocline.records import Draws, Estimate
from thermocline.results.compare import Comparison

PRIORS = {"narrow": (10.0, 10.0), "skewed": (2.0, 5.0), "flat": (1.0, 1.0)}


@pytest.fixture(scope="module")
def results() -> dict[str, tc.Result]:
    """Three priors for one hundred flips of a coin; their parameters are among the data of the targets."""
    found, first = {}, problems.beta_prior(1.0, 1.0)
    for name, (a, b) in PRIORS.items():
        numbers = np.float64(a), np.float64(b)
        base = tc.Base(Partial(first.log_density.func, *numbers), Partial(first.sample.func, *numbers))  # one program
        method = tc.GibbsTempering(law=tc.Continuous())
        target = problems.beta_bernoulli(a, b).target
        options = {"num_chains": 8, "num_warmup": 200, "num_draws": 500, "progress": False}
        found[name] = tc.sample(target, base=base, method=method, **options, search=False)
    return found


@pytest.fixture(scope="module")
def comparison(results) -> tc.Comparison:
    return tc.compare(results, despite=("data", "verdict"))


def exact(prior=(1, 1, 1)):
    weights = np.exp([problems.beta_bernoulli(*pair).log_evidence + 70 for pair in PRIORS.values()]) * prior
    return dict(zip(PRIORS, weights / weights.sum(), strict=True))


def test_probabilities_are_exact_within_their_errors(comparison):
    assert comparison.ranking == ["narrow", "flat", "skewed"]
    for name, truth in exact().items():
        estimate = comparison.probability(name)
        assert 0 < estimate.standard_error < 0.05
        assert abs(estimate.value - truth) < 4 * estimate.standard_error, name
    assert sum(estimate.value for estimate in comparison.probabilities.values()) == pytest.approx(1)


def test_prior_weights_enter(results):
    weighted = tc.compare(results, prior={"narrow": 1, "skewed": 6, "flat": 3}, despite=["data", "verdict"])
    for name, truth in exact((0.1, 0.6, 0.3)).items():
        estimate = weighted.probability(name)
        assert abs(estimate.value - truth) < 4 * estimate.standard_error, name


def test_bayes_factors_are_differences_with_the_errors_of_both(comparison):
    factor = comparison.log_bayes_factor("narrow", "skewed")
    assert abs(factor.z_score(-70.221009 + 71.445086)) < 4
    both = [comparison.log_evidences[name].standard_error for name in ("narrow", "skewed")]
    assert factor.standard_error == pytest.approx(np.hypot(*both))
    assert comparison.log_bayes_factor("flat", "flat") == Estimate(0.0, 0.0, np.inf)


def test_errors_of_probabilities_are_those_of_simulated_evidences():
    """Unequal errors, and a model that hardly counts: the delta method against a million simulated evidences."""
    given = {"a": Estimate(-3.0, 0.05, 1e9), "b": Estimate(-3.4, 0.02, 1e9), "c": Estimate(-6.0, 0.1, 1e9)}
    comparison = tc.Comparison(given, dict.fromkeys(given, float(np.log(1 / 3))))
    generator = np.random.default_rng(0)
    logs = np.stack([generator.normal(e.value, e.standard_error, 1_000_000) for e in given.values()])
    simulated = np.exp(logs - np.logaddexp.reduce(logs))
    for i, name in enumerate(given):
        assert comparison.probability(name).standard_error == pytest.approx(simulated[i].std(), rel=0.01)
        assert comparison.probability_interval(name) == pytest.approx(
            np.quantile(simulated[i], [0.025, 0.975]), rel=0.01
        )


def test_intervals_of_near_certain_models_stay_within_bounds():
    given = {"a": Estimate(0.0, 1.0, 4.0), "b": Estimate(-9.0, 1.0, 4.0)}
    low, high = tc.Comparison(given, dict.fromkeys(given, float(np.log(0.5)))).probability_interval("a")
    reach = stats.t.ppf(0.975, 8) * np.sqrt(2)
    assert (low, high) == pytest.approx(tuple(stats.logistic.cdf([9 - reach, 9 + reach])))
    assert 0 < low < high < 1


def test_other_data_are_refused_unless_overridden(results):
    sound = {name: with_verdict_ok(result) for name, result in results.items()}
    with pytest.raises(tc.ThermoclineError, match=r"data of narrow, skewed, flat are not the same.*despite='data'"):
        tc.compare(sound)
    notes = tc.compare(sound, despite="data").notes
    assert len(notes) == 1
    assert notes[0].startswith("Compared although: the data")


def with_verdict_ok(result: tc.Result) -> tc.Result:
    """A copy whose checks are not asked."""
    copy = replace(result)
    copy.__dict__["checks"] = ()
    return copy


def of_same_data(result: tc.Result, **info) -> dict[str, tc.Result]:
    """Two sound results about the same data, the second with more in its info."""
    return {
        "one": with_verdict_ok(result),
        "other": with_verdict_ok(replace(result, info=replace(result.info, **info))),
    }


def test_a_verdict_that_is_not_ok_is_refused_unless_overridden(results):
    few = replace(results["flat"], draws=Draws(*(leaf[:, :4] for leaf in results["flat"].draws)))
    few = replace(few, parameters={}, unconstrained={})
    pair = {"good": with_verdict_ok(results["flat"]), "few <b>": few}
    with pytest.raises(tc.ThermoclineError, match=r"verdict is not ok for few <b> \((suspect|failed)\)"):
        tc.compare(pair)
    with pytest.raises(tc.ThermoclineError, match="despite='verdict'"):
        tc.compare(pair, despite="data")
    assert "few &lt;b&gt;" in tc.compare(pair, despite="verdict")._repr_html_()


def test_improper_pieces_are_refused_unless_overridden(results):
    pair = of_same_data(results["flat"], caveats=("the prior of x is flat",))
    with pytest.raises(tc.ThermoclineError, match=r"other: the prior of x is flat.*despite='caveats'"):
        tc.compare(pair)
    assert "the prior of x is flat" in tc.compare(pair, despite="caveats").summary()


def test_targets_without_data_are_compared_with_a_note(results):
    from thermocline.support import fingerprint

    info = replace(results["flat"].info, observations=fingerprint.of_arrays(None))
    bare = with_verdict_ok(replace(results["flat"], info=info))
    assert "could not be checked" in tc.compare({"a": bare, "b": bare}).notes[0]
    assert tc.compare(of_same_data(results["flat"])).notes == ()


def test_the_table_has_a_row_a_model_best_first(comparison):
    lines = comparison.summary().splitlines()
    best, *others = comparison.ranking
    words = [line.split() for line in lines]
    rows = [line for line in words if line and line[0] in PRIORS]
    assert [line[0] for line in rows if line[1] != "over"] == comparison.ranking
    assert [line[:3] for line in rows if line[1] == "over"] == [[best, "over", other] for other in others]
    assert comparison._repr_html_().count("<tr>") == 4 + 3
    assert "Kass and Raftery (1995)" in comparison.summary()
    assert repr(comparison.summary()) == comparison.summary().rstrip("\n")
    assert "narrow" in repr(comparison)
    assert comparison.as_dict()["models"]["flat"]["probability"]["value"] == comparison.probability("flat").value


@pytest.mark.parametrize(
    ("difference", "error", "word"),
    [  # twice the log Bayes factor: 2, 6 and 10 part the words of Kass and Raftery
        (0.9, 1e-3, "not worth more than a bare mention"),
        (1.1, 1e-3, "positive"),
        (2.9, 1e-3, "positive"),
        (3.1, 1e-3, "strong"),
        (5.1, 1e-3, "very strong"),
        (4.9, 0.5, "strong to very strong"),
        (0.5, 0.5, "undecided"),
        (-0.5, 1e-3, "against it"),
    ],
)
def test_a_bayes_factor_has_its_interval_and_a_word(difference, error, word):
    evidences = {"a": Estimate(difference, error, np.inf), "b": Estimate(0.0, 0.0, np.inf)}
    both = Comparison(evidences, dict.fromkeys("ab", np.log(0.5)))
    assert both.strength("a", "b") == word
    value, low, high = both.bayes_factor("a", "b")
    assert value == pytest.approx(np.exp(difference))
    assert (low, high) == pytest.approx(tuple(np.exp(difference + np.array([-1, 1]) * 1.959964 * error)), rel=1e-5)


def test_the_plot_shows_every_model(comparison):
    pytest.importorskip("matplotlib")
    left, right = comparison.plot()
    assert [label.get_text() for label in left.get_yticklabels()] == comparison.ranking[::-1]
    assert [bar.get_width() for bar in right.patches] == [
        comparison.probability(name).value for name in comparison.ranking[::-1]
    ]
