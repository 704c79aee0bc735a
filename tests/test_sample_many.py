"""Many targets in one program: exact sums, results that do not depend on company, and sentences for bad input."""

import re
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import thermocline as tc
from thermocline import ManyResults
from thermocline.checks.many import check_sum
from thermocline.records import Estimate, sum_of

NUMBER, DIMENSION = 10, 3


def log_density(position, datum):
    white = (position["x"] - datum["mean"]) / datum["widths"]
    return datum["constant"] - 0.5 * white @ white - 0.5 * position["y"] ** 2


def encoder(datum):
    """Off in mean and too wide."""
    mean = {"x": datum["mean"] + 0.4, "y": 0.3 * jnp.ones(())}
    return tc.Gaussian(mean, 1.3 * jnp.append(datum["widths"], 1.0))


ORIGIN = {"x": np.zeros(DIMENSION), "y": np.zeros(())}
TARGET = tc.Target(log_density, ORIGIN)


def data_of(number=NUMBER):
    generator = np.random.default_rng(0)
    mean, widths = generator.normal(size=(number, DIMENSION)), generator.uniform(0.5, 2, size=(number, DIMENSION))
    return {"mean": mean, "widths": widths, "constant": 10 * generator.normal(size=number)}


def truths_of(data):
    return data["constant"] + np.log(data["widths"]).sum(axis=1) + 0.5 * (DIMENSION + 1) * np.log(2 * np.pi)


def run(data, **options) -> ManyResults:
    arguments = {"base": encoder, "seed": 1, "num_warmup": 200, "num_draws": 300, "progress": False, **options}
    return tc.sample_many(TARGET, data, **arguments)


def assert_same(first: tc.Result, second: tc.Result):
    for name, one, other in zip(first.draws._fields, first.draws, second.draws, strict=True):
        assert np.array_equal(one, other), name
    assert first.log_evidence == second.log_evidence


@pytest.fixture(scope="module")
def results():
    return run(data_of())


def test_each_and_the_sum_are_right(results):
    truths, each = truths_of(data_of()), results.log_evidences
    assert np.all(np.abs(each.value - truths) < 5 * each.standard_error)
    assert abs(results.log_evidence.z_score(truths.sum())) < 4
    assert results.log_evidence.value == pytest.approx(each.value.sum())
    assert results.log_evidence.standard_error == pytest.approx(np.sqrt(np.sum(each.standard_error**2)))
    assert abs(results.bias.value) < results.log_evidence.standard_error


def test_it_is_a_sequence_of_results(results):
    assert len(results) == NUMBER
    assert len(list(results)) == NUMBER
    one = results[-1]
    assert isinstance(one, tc.Result)
    assert one.log_evidence.value == results.log_evidences.value[-1]
    assert set(one.parameters) == {"x", "y"}
    assert abs(one.expectation(lambda p: p["x"][0]).z_score(data_of()["mean"][-1, 0])) < 4
    part = results[2:5]
    assert isinstance(part, ManyResults)
    assert part.log_evidence.value == pytest.approx(results.log_evidences.value[2:5].sum())
    assert_same(part[0], results[2])
    assert_same(results[[7, 2]][1], results[2])
    with pytest.raises(IndexError, match="there are 10 targets"):
        results[10]


@pytest.mark.slow
def test_a_target_alone_agrees_with_sample(results):
    datum = {name: leaf[3] for name, leaf in data_of().items()}
    target = replace(TARGET, data=datum)
    base = tc.Gaussian({"x": datum["mean"] + 0.4, "y": np.asarray(0.3)}, 1.3 * np.append(datum["widths"], 1.0))
    options = {"num_chains": 4, "num_warmup": 200, "num_draws": 300, "progress": False}
    alone = tc.sample(target, base=base, seed=0, **options, search=False).log_evidence
    many = results[3].log_evidence
    error = np.hypot(alone.standard_error, many.standard_error)
    assert abs(alone.value - many.value) < 4 * error
    assert many.standard_error < 3 * alone.standard_error


def test_draws_do_not_depend_on_the_others(results):
    """Bit for bit: alone, among ten, and among forty, which are two groups."""
    few, many = (
        run({name: np.resize(leaf, (n, *leaf.shape[1:])) for name, leaf in data_of().items()}) for n in (3, 40)
    )
    assert len(many) == 40
    for place in range(3):
        assert_same(few[place], results[place])
        assert_same(many[place], results[place])
    assert many.log_evidences.value[32] != many.log_evidences.value[2]  # the same target, with keys of its own


def test_chunks_do_not_change_the_draws(results):
    assert_same(run(data_of(), chunk_size=37)[4], results[4])


def test_without_positions_the_evidence_and_the_checks_are_the_same(results):
    lean = run(data_of(), positions=False)
    assert lean.stacked("position").size == 0
    assert np.array_equal(lean.log_evidences.value, results.log_evidences.value)
    assert np.array_equal(lean.verdicts, results.verdicts)
    assert lean[1].checks == results[1].checks
    assert lean[1].parameters == {}
    assert "log Z" in lean[1].summary()
    assert lean[1].kl_base_to_target == results[1].kl_base_to_target
    with pytest.raises(tc.ThermoclineError, match="positions=True"):
        lean[1].expectation(lambda p: p["y"])


def test_without_positions_a_run_can_go_on_and_is_checked_again(results):
    lean = tc.extend(run(data_of(), positions=False), num_draws=100, progress=False)
    full = tc.extend(results, num_draws=100, progress=False)
    assert np.array_equal(lean.log_evidences.value, full.log_evidences.value)
    some, every = ({check.name: check for check in many.checks_of(1)} for many in (lean, full))
    about = "base moments", "R-hat", "effective size", "weight on stuck chains"
    of_parameters = {name for name in every if name.startswith(about)}
    assert set(every) - set(some) <= of_parameters
    assert all(some[name] == every[name] for name in set(some) & set(every))


def test_one_target_that_is_not_a_number_fails_alone(results):
    data = data_of()
    data["mean"][4, 1] = np.nan
    with pytest.warns(tc.ThermoclineWarning, match="target 4: log density is NaN"):
        some = run(data)
    assert some.verdicts[4] == "failed"
    assert some.verdict == "failed"
    assert "target 4" in some[4].checks[0].advice
    assert np.isnan(some.log_evidence.value)
    assert_same(some[3], results[3])
    rest = some[some.verdicts != "failed"]
    assert len(rest) >= NUMBER - 2
    assert np.isfinite(rest.log_evidence.value)
    assert "target 4" in some.summary()


def test_no_target_that_is_a_number_is_an_error():
    data = data_of()
    data["mean"][:] = np.nan
    with pytest.raises(tc.ThermoclineError, match="no target can be sampled; target 0"):
        run(data)


def test_a_base_with_a_leading_axis(results):
    data = data_of()
    widths = np.concatenate([data["widths"], np.ones((NUMBER, 1))], axis=1)
    base = tc.Gaussian({"x": data["mean"] + 0.4, "y": np.full(NUMBER, 0.3)}, 1.3 * widths)
    log_zeta = truths_of(data) + 1.0
    some = run(data, base=tc.BaseFit(base, log_zeta))
    assert np.array_equal(some.runs.by_target.log_zeta, log_zeta)
    assert abs(some.log_evidence.z_score(truths_of(data).sum())) < 4


def test_a_run_can_go_on(results):
    target = replace(TARGET, data={name: leaf[3] for name, leaf in data_of().items()})
    longer = tc.extend(results[3], target, num_draws=900, progress=False)
    assert longer.draws.log_ratio.shape == (4, 1200)
    assert longer.log_evidence.standard_error < results[3].log_evidence.standard_error


@pytest.mark.slow
def test_one_base_for_all_and_targets_with_an_edge():
    """-inf below the datum: the base's mass above it enters the evidence, with its error."""
    edges = np.linspace(-1, 1, 5)
    target = tc.Target(lambda x, edge: jnp.where(x > edge, -0.5 * x**2, -jnp.inf), 2.0)
    base, method = tc.Gaussian.diagonal(0.0, 1.0), tc.GibbsTempering(law=tc.Continuous())
    some = tc.sample_many(target, edges, base=base, method=method, num_warmup=0, num_draws=200, progress=False)
    truths = 0.5 * np.log(2 * np.pi) + norm.logsf(edges)
    assert some[3].continuation.base.mean.shape == ()
    assert np.all(np.abs(some.log_evidences.value - truths) < 5 * some.log_evidences.standard_error)


@pytest.mark.slow
def test_a_method_without_evidence_and_another_group_size():
    """Another width of the program changes rounding only."""
    some, other = (run(data_of(), method=tc.Untempered(), num_warmup=0, group_size=size) for size in (16, 4))
    assert np.array_equal(some.runs.by_target.seed, other.runs.by_target.seed)
    assert np.allclose(some.stacked("position")[:, :, :20], other.stacked("position")[:, :, :20], rtol=1e-6)
    assert some.log_evidence is None
    assert some.log_evidences is None
    assert some[2].log_evidence is None
    assert "none" in some.summary()


def test_the_summary_names_targets(results):
    text = results.summary()
    assert f"{NUMBER}, each by itself" in text
    assert str(results.log_evidence) in text
    shown = [int(number) for number in re.findall(r"^ *target (\d+) ", text, re.MULTILINE)]
    assert len(shown) == len(set(shown)) == min(NUMBER, 10)
    assert int(np.argmax(results.log_evidences.standard_error)) in shown  # the worst of those with one verdict


def test_what_chance_gives_to_one_among_many_is_not_held_against_all(results):
    passed = [tuple(replace(check, status="ok") for check in results.checks_of(i)) for i in range(NUMBER)]

    def verdict(name, value, status):
        changed = tuple(replace(c, value=value, status=status) if c.name.endswith(name) else c for c in passed[0])
        return replace(results, known_checks=dict(enumerate([changed, *passed[1:]]))).verdict

    assert verdict("(p)", 9e-4, "suspect") == "ok"
    assert verdict("(p)", 1e-7, "failed") == "suspect"
    assert verdict("(p)", 1e-12, "failed") == "failed"
    assert verdict("degrees of freedom of the error", 3, "suspect") == "ok"
    assert verdict("returns to the base", 6, "suspect") == "suspect"
    assert verdict("returns to the base", 1, "failed") == "failed"


def test_the_sum_has_checks_of_its_own():
    """A difference between halves, or a bias, that no single target shows."""
    joint, none = Estimate(0.0, 1.0, 500.0), Estimate(0.0, 0.1, 99.0)

    def statuses(first, bias):
        return [check.status for check in check_sum(joint, Estimate(first, 1.4, 500.0), joint, bias)]

    assert statuses(0.0, none) == ["ok", "ok", "ok"]
    assert statuses(7.0, none) == ["ok", "suspect", "ok"]
    assert statuses(0.0, Estimate(-1.2, 0.1, 99.0)) == ["ok", "ok", "suspect"]


def test_degrees_of_freedom_of_a_sum():
    joint = sum_of(Estimate(np.array([1.0, 2.0]), np.array([0.3, 0.4]), np.array([10.0, 20.0])))
    assert (joint.value, joint.standard_error) == (3.0, pytest.approx(0.5))
    assert joint.dof == pytest.approx(0.25**2 / (0.09**2 / 10 + 0.16**2 / 20))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"constant": 1.0}, "data constant is a single number, without a leading axis"),
        ({"constant": np.zeros(7)}, r"different lengths \(constant 7, mean 10, widths 10\)"),
        ({"mean": np.zeros((NUMBER, 2))}, "could not be called for target 0"),
        ({"constant": np.zeros((NUMBER, 2))}, "log_density returns .* where one number is needed"),
    ],
)
def test_bad_data_get_a_sentence(change, sentence):
    with pytest.raises(tc.ThermoclineError, match=sentence):
        run(data_of() | change)


@pytest.mark.parametrize(
    ("base", "sentence"),
    [
        (lambda datum: tc.Gaussian(datum["mean"], datum["widths"]), r"wrong for target 0, .* of shape \{'x': \(3,\)\}"),
        (lambda datum: datum["mean"], "wrong for target 0, .* has no `log_density`"),
        (lambda datum: datum["nothing"], "failed for target 0: .*test_sample_many.py, line .*KeyError"),
        (lambda target, seed: None, "A fit of a whole target is no function of a datum"),
        (lambda datum: tc.BaseFit(encoder(datum), datum["mean"]), r"log_zeta of shape \(3,\) for target 0"),
        (lambda datum: tc.Base(lambda x: jnp.sum(x["x"] - datum["mean"]), lambda key: ORIGIN), "hold on to the datum"),
        (tc.Gaussian({"x": np.zeros((4, DIMENSION)), "y": np.zeros(4)}, np.ones((4, 4))), "one for each of 10 targets"),
        (tc.Gaussian({"x": np.zeros((10, 2)), "y": np.zeros(10)}, np.ones((10, 4))), "wrong for target 0"),
        (tc.BaseFit(tc.Gaussian.diagonal(ORIGIN, 1.0), np.zeros(3)), r"log_zeta has shape \(3,\)"),
        ("a base", "base is 'a base', which has no `log_density`"),
    ],
)
def test_bad_bases_get_a_sentence(base, sentence):
    with pytest.raises(tc.ThermoclineError, match=sentence):
        run(data_of(), base=base)


def test_bad_options_get_a_sentence():
    with pytest.raises(tc.ThermoclineError, match="group_size is 0"):
        run(data_of(), group_size=0)
    with pytest.raises(tc.ThermoclineError, match="the data are empty"):
        run({name: leaf[:0] for name, leaf in data_of().items()})
    with pytest.raises(tc.ThermoclineError, match="pass positions=False"):
        run(data_of(), num_draws=1_000_000_000)
