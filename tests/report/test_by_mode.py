"""By mode, and numbers as people read them: draws, summaries and plots of one mode; nothing that looks like a bug."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from tests import problems
from thermocline.checks import Check
from thermocline.records import Estimate, SearchRecord
from thermocline.report.summary import checks_table, divergence, met_modes, modes_table, with_interval


def constrain(position):
    return {"x": position["x"], "square": position["x"][0] ** 2}


@pytest.fixture(scope="module")
def result() -> tc.Result:
    """Two modes along the first axis, 0.7 and 0.3 or so, at a distance of six."""
    problem = problems.mixture(2, distance=6.0)
    data = problem.target.data
    target = tc.Target(
        lambda p, d: problems.mixture_log_density(p["x"], d),
        {"x": np.zeros(2)},
        data,
        constrain,
        prior=tc.Gaussian.diagonal({"x": np.zeros(2)}, {"x": np.full(2, 4.0)}),
        name="two hills",
    )
    base = tc.Gaussian.diagonal({"x": np.zeros(2)}, {"x": np.array([4.0, 1.5])})
    return tc.sample(target, base=base, num_chains=4, num_warmup=100, num_draws=300, progress=False)


def test_modes_are_described_by_their_draws_heaviest_first(result):
    masses = [mode.mass.value for mode in result.modes]
    assert masses == sorted(masses, reverse=True)
    assert len(masses) == 2
    for number, mode in enumerate(result.modes, start=1):
        draws = result.posterior(4000, mode=number)
        error = draws["x"].std(axis=0) / np.sqrt(len(draws["x"]))
        assert np.all(np.abs(draws["x"].mean(axis=0) - mode.mean["x"]) < 4 * error)
        squares = (draws["square"] - draws["square"].mean()) ** 2
        error = squares.std() / np.sqrt(squares.size) / (2 * draws["square"].std())
        assert abs(draws["square"].std() - mode.deviation["square"]) < 3 * error
        assert np.abs(draws["x"][:, 0] - mode.location["x"][0]).max() < 6.0  # of no other mode
    both = sum(mode.mass.value * mode.mean["x"][0] for mode in result.modes)
    whole = result.expectation(lambda p: p["x"][0])
    assert abs(both - whole.value) < 5 * whole.standard_error


def test_a_mode_that_is_not_there_is_refused(result):
    for mode in (0, 3, "mode 1"):
        with pytest.raises(tc.ThermoclineError, match=r"result\.modes has 2, numbered from 1"):
            result.posterior(mode=mode)


def test_the_summary_of_a_mode_is_of_that_mode(result):
    text = result.summary(mode=2)
    assert "Parameters within mode 2" in text
    assert "mode 1" not in text
    of_mode = result.weighing_of(2).describe(result.components()["x[0]"])
    assert str(of_mode.mean) in text
    assert np.isclose(of_mode.mean.value, result.modes[1].mean["x"][0], rtol=1e-9)


def test_plots_return_axes_and_open_no_window(result):
    mpl = pytest.importorskip("matplotlib")
    mpl.use("agg")
    assert len(result.plot_modes()) == 2
    assert len(result.plot_temperature()) == 3
    grid = result.plot_pair(["x", "square"], mode=1)
    assert grid.shape == (3, 3)
    assert [axes.get_xlabel() for axes in grid[2]] == ["x[0]", "x[1]", "square"]
    with pytest.raises(tc.ThermoclineError, match=r"no parameter 'z'; there are square, x\[0\]"):
        result.plot_pair(["z"])
    mpl.pyplot.close("all")


def test_the_first_screen_says_what_was_asked_and_answered(result, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    text = result.report(tmp_path / "report.html").read_text()
    head = text[: text.index("<nav>")]
    assert "<h1>two hills</h1>" in head
    assert result.info.date in head
    assert "log Z, the logarithm of the evidence" in head
    assert "Were all modes found?" in head
    assert "2 modes found" in head
    assert "Grey outlines are the prior" in text
    assert "<td>sampling</td>" in text  # the cost by phase


def test_a_run_that_was_cut_short_says_so(result, tmp_path):
    pytest.importorskip("jinja2")
    told = "Within max_seconds=1 the error of log Z came down to 0.5, where 0.05 was wanted."
    cut = replace(result, info=replace(result.info, cut_short=told))
    assert "partial" in cut.summary()
    assert told in cut.report(tmp_path / "cut.html").read_text()
    assert "partial" not in result.summary()


def test_new_data_are_drawn_beside_those_observed(result, tmp_path):
    pytest.importorskip("jinja2")
    generator = np.random.default_rng(0)
    few, many = generator.normal(size=5), generator.normal(size=200)
    pairs = {name: (seen, generator.normal(size=(50, seen.size))) for name, seen in (("few", few), ("many", many))}
    text = replace(result, predictive=pairs).report(tmp_path / "new.html").read_text()
    assert "few: what was observed, and 90% of 50 sets of new data" in text
    assert "number of observations" in text


def test_prior_and_new_data_are_stored(result, tmp_path):
    kept = replace(result, predictive={"y": (np.ones(3), np.zeros((4, 3)))})
    kept.save(tmp_path / "run.nc")
    loaded = tc.load(tmp_path / "run.nc")
    assert np.array_equal(loaded.prior_parameters["square"], result.prior_parameters["square"])
    assert loaded.predictive["y"][1].shape == (4, 3)
    assert loaded.info.model == "two hills"
    assert np.allclose(loaded.modes[1].mean["x"], result.modes[1].mean["x"])


def test_modes_without_a_draw_are_counted_not_listed(result):
    lost = replace(
        result.modes[1],
        mass=Estimate(0.0, 0.0, 10.0),
        mass_by_importance=Estimate(np.nan, np.nan, np.nan),
        mean={name: np.full(np.shape(value), np.nan) for name, value in result.modes[1].mean.items()},
    )
    some = replace(result)
    some.__dict__["modes"] = (result.modes[0], lost)
    assert met_modes(some) == result.modes[:1]
    table = modes_table(some)
    assert len(table.rows) == 1
    assert "1 more was found by the search, in which no draw fell." in table.notes


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(1.0, 0.0, 10.0), "1"),
        (Estimate(-0.0, 0.0, 10.0), "0"),
        (Estimate(5.2, np.inf, 0.0), "5.2 (error unknown)"),
        (Estimate(-0.0001, 0.03, 10.0), "0.000 ± 0.030"),
        (Estimate(1.5, 0.25, 0.0), "1.5 (error unknown)"),
    ],
)
def test_estimates_are_printed_as_people_read_them(estimate, text):
    assert str(estimate) == text


def test_divergences_and_intervals_say_no_more_than_is_known():
    assert divergence(Estimate(-0.00026, 0.0003, np.inf)) == "at most 0.0003"
    assert divergence(Estimate(-1e-16, 1e-19, np.inf)) == "at most 1e-06"
    assert divergence(Estimate(0.5, 0.1, 50.0)) == "0.50 ± 0.10"
    assert with_interval(Estimate(1.0, 0.01, np.inf)) == "1.000 ± 0.010  (95% interval 0.980 to 1.020)"
    assert with_interval(Estimate(1.0, np.nan, 0.0)) == "1 (error unknown)"


def test_a_table_of_checks_has_no_infinite_number():
    values = (np.inf, -np.inf, np.nan, 1.278e5, 6.912e-5)
    rows = checks_table(tuple(Check("a", value, 1.0, "ok", "") for value in values)).rows
    assert [row[1] for row in rows] == ["far above", "far below", "", "127,800", "7e-05"]


def test_effective_numbers_do_not_exceed_the_draws(result):
    number = len(result.log_weight)
    sizes = [result.weighing.describe(pair).effective_size for pair in result.components().values()]
    assert max(sizes) <= number
    named = {check.name: check.value for check in result.checks}
    assert named["effective weights (target)"] <= result.draws.log_ratio.size
    checked = {name for name in named if name.startswith(("effective size", "R-hat"))}
    assert not any("square" in name for name in checked)  # it is not what was sampled


def test_a_search_that_has_no_bound_says_so():
    record = SearchRecord(1000, 50, 0, 0.5, 0, 10, 1.0)
    assert "100" not in str(record).split(";")[1]
    assert "new modes were still being found" in str(record)


def test_a_parameter_that_people_know_by_another_number_is_named_apart():
    from thermocline.results.weighing import as_sampled

    x = jnp.ones((2, 3))
    assert list(as_sampled({"a": x, "s": x, "z": x}, {"a": x, "s": 2 * x})) == ["a", "unconstrained s", "z"]
