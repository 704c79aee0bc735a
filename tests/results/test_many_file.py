"""The results of many targets outside the session: a file, ArviZ, a page, and the command."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import thermocline as tc
from tests.test_sample_many import NUMBER, TARGET, assert_same, data_of, run
from thermocline.cli import app

MODEL = """
import jax.numpy as jnp, numpy as np, thermocline as tc
def log_density(x, datum):
    return -0.5 * jnp.sum(((x - datum["mean"]) / datum["width"]) ** 2)
target = tc.Target(log_density, np.zeros(2), {"mean": np.zeros(2), "width": np.ones(2)})
"""


@pytest.fixture(scope="module")
def results():
    """With different numbers of draws, as each stops at its own error."""
    return run(data_of(), num_draws=200, target_error=0.02)


@pytest.fixture(scope="module")
def stored(results, tmp_path_factory):
    path = tmp_path_factory.mktemp("many") / "many.nc"
    results.save(path)
    return path


def test_a_loaded_copy_answers_the_same(results, stored):
    copy = tc.load(stored)
    assert isinstance(copy, tc.ManyResults)
    assert copy.log_evidence == results.log_evidence
    assert copy.bias == results.bias
    assert copy.checks == results.checks
    assert np.array_equal(copy.verdicts, results.verdicts)
    assert copy.summary() == results.summary()
    for place in range(NUMBER):
        assert_same(copy[place], results[place])
        assert copy[place].checks == results[place].checks
    one, other = copy[3], results[3]
    assert one.expectation(lambda p: p["x"]).value == pytest.approx(other.expectation(lambda p: p["x"]).value)
    assert one.info == other.info
    assert np.array_equal(one.log_partition(0.5).value, other.log_partition(0.5).value)


def test_a_loaded_target_goes_on_by_itself(results, stored):
    from dataclasses import replace

    target = replace(TARGET, data={name: leaf[3] for name, leaf in data_of().items()})
    first, second = (tc.extend(many[3], target, num_draws=20, progress=False) for many in (results, tc.load(stored)))
    assert_same(first, second)
    with pytest.raises(tc.ThermoclineError, match="loaded results do not hold their targets"):
        tc.extend(tc.load(stored), progress=False)


def test_some_of_them_are_saved_under_their_own_numbers(results, tmp_path):
    results[[7, 2]].save(tmp_path / "two.nc")
    two = tc.load(tmp_path / "two.nc")
    assert two.index.tolist() == [7, 2]
    assert_same(two[0], results[7])
    assert "target 7" in two.summary()


def test_other_tools_read_the_file(results, stored):
    import xarray

    with xarray.open_datatree(stored, engine="h5netcdf") as tree:
        assert tree["posterior"]["x"].dims[:3] == ("target", "chain", "draw")
        assert tree["evidence"]["verdict"].values.tolist() == results.verdicts.tolist()
        assert tree.attrs["log_evidence"] == results.log_evidence.value


def test_arviz_has_a_leading_target_dimension(results):
    data = results.to_arviz()
    longest = results.runs.by_target.num_draws.max()
    assert data.posterior["x"].shape == (NUMBER, 4, longest, 3)
    mean, deviation = (getattr(data.posterior["y"], name)(("chain", "draw")).values for name in ("mean", "std"))
    for place in range(NUMBER):
        exact = results[place].expectation(lambda p: p["y"])
        error = deviation[place] / np.sqrt(4 * results.runs.by_target.num_draws[place])  # of so many resampled draws
        assert abs(mean[place] - exact.value) < 4 * error


def test_a_parameter_may_be_called_as_a_dimension_is(tmp_path):
    target = tc.Target(lambda p, datum: -0.5 * jnp.sum((p["target"] - datum) ** 2), {"target": np.zeros(2)})
    base = tc.Gaussian.diagonal({"target": np.zeros(2)}, 1.5)
    some = tc.sample_many(target, np.zeros((3, 2)), base=base, num_warmup=20, num_draws=20, progress=False)
    some.save(tmp_path / "many.nc")
    copy = tc.load(tmp_path / "many.nc")
    assert np.array_equal(copy[1].parameters["target"], some[1].parameters["target"])


def test_without_positions_there_is_no_file(tmp_path):
    lean = run(data_of(), num_draws=50, num_warmup=20, positions=False)
    with pytest.raises(tc.ThermoclineError, match="positions=True"):
        lean.save(tmp_path / "lean.nc")
    with pytest.raises(tc.ThermoclineError, match="positions=True"):
        lean.to_arviz()


def test_the_page_names_the_worst_targets(results, tmp_path):
    page = results.report(tmp_path / "many.html").read_text()
    for words in ("Which targets are the worst?", "joint log Z", "<svg", str(results.log_evidence), "target 0"):
        assert words in page
    assert "joint log Z" in results._repr_html_()


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_the_command_runs_a_model_on_a_data_file(suffix, tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    data = {"mean": np.array([[0.0, 1.0], [2.0, 0.0]]), "width": np.array([[1.0, 2.0], [0.5, 1.0]])}
    file = tmp_path / f"data{suffix}"
    if suffix == ".npz":
        np.savez(file, **data)
    else:
        file.write_text(json.dumps({name: leaf.tolist() for name, leaf in data.items()}))
    out, page = tmp_path / "many.nc", tmp_path / "many.html"
    words = ["run", f"{tmp_path / 'model.py'}:target", "--data", str(file), "--num-draws", "100", "--no-progress"]
    done = CliRunner().invoke(app, [*words, "--out", str(out), "--report", str(page), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    truths = np.log(2 * np.pi) + np.log(data["width"]).sum(axis=1)
    assert np.all(np.abs(np.array(found["log_evidences"]["value"]) - truths) < 0.2)
    assert page.exists()
    shown = CliRunner().invoke(app, ["summary", str(out)])
    assert "2, each by itself" in shown.stdout


def test_bad_data_files_get_a_sentence(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "ragged.json").write_text('{"mean": [[1, 2], [3]]}')
    (tmp_path / "data.csv").write_text("1,2")
    for name, sentence in (
        ("none.npz", "there is no file"),
        ("ragged.json", "rows must have equal lengths"),
        ("data.csv", "neither .npz nor .json"),
    ):
        words = ["run", f"{tmp_path / 'model.py'}:target", "--data", str(tmp_path / name)]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 2
        assert sentence in done.output
