"""A result that was saved and loaded is the same result; other tools can read it."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from thermocline.records import RunInfo
from thermocline.results import storage
from thermocline.results.export import data_tree, resampled_in_order, stored_names

RUN: dict[str, Any] = {"num_chains": 4, "num_warmup": 100, "progress": False}
POSITION = {"a/b": np.zeros(2), "pair": (0.0, 0.0), "": {"<b>": 0.0}}
BASE = tc.Gaussian.diagonal(POSITION, 1.5)


def log_density(position, data):
    first, second = position["pair"]
    return -0.5 * (jnp.sum(position["a/b"] ** 2) + first**2 + (second - data["centre"]) ** 2 + position[""]["<b>"] ** 2)


def constrain(position):
    """Real and boolean parameters, some under names that netCDF and xarray reserve."""
    return {
        "chain": jnp.exp(position["a/b"]),
        "pair": position["pair"],
        "deep": [{"draw": position[""]["<b>"] > 0}],
        "v": position["a/b"],
        "v_dim_0": position["pair"][0],
    }


TARGET = tc.Target(log_density, POSITION, {"centre": 1.0}, constrain)


def second_of_pair(draw):
    return draw["pair"][1]


def same(first: Any, second: Any) -> bool:
    """Equal trees: structure, types and every bit."""
    if isinstance(first, RunInfo):
        return first == second
    pairs = [tuple(map(np.asarray, pair)) for pair in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)]
    return jax.tree.structure(first) == jax.tree.structure(second) and all(
        (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()) for a, b in pairs
    )


@pytest.fixture(scope="module")
def result() -> tc.Result:
    return tc.sample(TARGET, base=BASE, num_draws=50, **RUN, search=False)


@pytest.fixture(scope="module")
def longer() -> tc.Result:
    return tc.sample(TARGET, base=BASE, num_draws=100, **RUN, search=False)


@pytest.fixture(scope="module")
def path(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "run.nc"
    result.save(path)
    return path


def test_a_loaded_result_is_the_same_to_the_last_bit(result, path):
    loaded = tc.load(path)
    for part in (
        "draws",
        "parameters",
        "unconstrained",
        "template",
        "law",
        "schedule",
        "log_zeta",
        "base_draws",
        "info",
        "continuation",
        "mode_table",
        "mode_locations",
    ):
        assert same(getattr(loaded, part), getattr(result, part)), part
    assert loaded.log_support == result.log_support


def test_a_loaded_result_gives_the_same_answers(result, path):
    loaded = tc.load(path)
    assert loaded.log_evidence == result.log_evidence
    assert loaded.verdict == result.verdict
    assert loaded.expectation(second_of_pair) == result.expectation(second_of_pair)
    assert loaded.checks == result.checks
    assert same(loaded.posterior(64), result.posterior(64))
    assert same(tuple(loaded.log_partition([0.1, 1.0])), tuple(result.log_partition([0.1, 1.0])))
    assert loaded.summary() == result.summary()


def test_a_loaded_result_can_be_saved_again(path, tmp_path):
    tc.load(path).save(tmp_path / "again.nc")
    again, once = tc.load(tmp_path / "again.nc"), tc.load(path)
    assert same(again.continuation, once.continuation)
    assert [file.name for file in tmp_path.iterdir()] == ["again.nc"]


def test_extend_gives_the_draws_of_a_longer_run(result, longer):
    extended = tc.extend(result, TARGET, num_draws=50, progress=False)
    assert same(extended.draws, longer.draws)
    assert same(extended.continuation, longer.continuation)
    assert extended.log_evidence == longer.log_evidence


def test_extend_after_load_gives_the_draws_of_a_longer_run(path, longer):
    extended = tc.extend(tc.load(path), TARGET, num_draws=50, progress=False)
    assert same(extended.draws, longer.draws)
    assert same(extended.parameters, longer.parameters)


def test_extend_refuses_another_target(result):
    other = tc.Target(log_density, POSITION, {"centre": 1.0 + 1e-9}, constrain)
    with pytest.raises(tc.ThermoclineError, match="another target: its data differ"):
        tc.extend(result, other, progress=False)


def test_extend_asks_for_a_base_made_of_functions(result, longer, tmp_path):
    base = tc.Base(result.continuation.base.log_density, result.continuation.base.sample)
    replace(result, continuation=result.continuation._replace(base=base)).save(tmp_path / "run.nc")
    loaded = tc.load(tmp_path / "run.nc")
    assert isinstance(loaded.continuation.base, storage.Opaque)
    assert loaded.checks == result.checks
    with pytest.raises(tc.ThermoclineError, match="base="):
        tc.extend(loaded, TARGET, progress=False)
    extended = tc.extend(loaded, TARGET, base=BASE, num_draws=50, progress=False)
    assert same(extended.draws, longer.draws)


def test_names_and_structure_survive(result, path):
    loaded = tc.load(path)
    assert set(loaded.unconstrained) == {"a/b", "pair.0", "pair.1", ".<b>"}
    assert list(loaded.parameters) == ["chain", "deep.0.draw", "pair.0", "pair.1", "v", "v_dim_0"]
    assert loaded.parameters["deep.0.draw"].dtype == bool
    assert loaded.template == result.template
    assert isinstance(loaded.template["pair"], tuple)
    assert isinstance(loaded.template["deep"], list)
    assert np.allclose(loaded.parameters["chain"], np.exp(loaded.unconstrained["a/b"]), rtol=1e-12)
    assert jax.tree.structure(loaded.continuation.base.mean) == jax.tree.structure(POSITION)


def test_stored_names_are_distinct_and_legal():
    names = ["a/b", "a__b", "a__b_", "chain", "draw", "x", "x_dim_0", "", ".", "<b>", "tab\t", "θ", "mu[1]"]
    stored = stored_names(names)
    assert len(set(stored.values())) == len(names)
    assert not {"chain", "draw", "diagnostic", "x_dim_0"} & set(stored.values())
    assert all("/" not in name and (name[0].isalnum() or name[0] == "_") for name in stored.values())
    assert (stored["x"], stored["θ"], stored["mu[1]"]) == ("x", "θ", "mu[1]")


class Pair(NamedTuple):
    first: Any
    second: Any


def a_function(u):
    return u


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        0.1,
        np.inf,
        "text",
        (1, [2.5, (None,)]),
        {"a": 1, "b": {2: ()}},
        tc.GibbsTempering(tc.NUTS(step_size=0.25), tc.Ladder(np.linspace(0, 1, 3), np.zeros(3))),
        tc.JointTempering(control_map=tc.Logistic(2.0), mass=1.5),
        tc.Gaussian({"x": np.float32(1.0), "y": (np.zeros((2, 0)), np.arange(3))}, np.ones(4)),
    ],
)
def test_what_is_encoded_is_decoded(value):
    arrays: dict[str, np.ndarray] = {}
    decoded = storage.decode(storage.encode(value, arrays), arrays)
    assert type(decoded) is type(value)
    assert same(decoded, value)


@pytest.mark.parametrize(
    ("value", "description"),
    [
        (tc.JointTempering(control_map=tc.Monotone(a_function)), "JointTempering"),
        (tc.Base(a_function, a_function), "Base"),
        (tc.Gaussian(Pair(0.0, 1.0), np.ones(2)), "Gaussian"),
        (Pair(1, 2), "Pair"),
        (a_function, "function"),
    ],
)
def test_code_of_the_user_is_left_out(value, description):
    arrays: dict[str, np.ndarray] = {}
    decoded = storage.decode(storage.encode(value, arrays), arrays)
    assert isinstance(decoded, storage.Opaque)
    assert decoded.description == description


def test_only_our_own_records_can_come_back():
    for name in ("os.system", "subprocess.Popen", "checkpoint.Checkpoint", "builtins.eval"):
        assert isinstance(storage.decode({"class": name, "fields": {}}, {}), storage.Opaque)


def test_arviz_reads_the_file(path, result):
    arviz = pytest.importorskip("arviz", minversion="0.23")
    read = arviz.from_netcdf(path)
    assert {"posterior", "sample_stats", "weighted_posterior"} <= set(read.groups())
    table = arviz.summary(read)
    ours, theirs = result.expectation(second_of_pair), table.loc["pair.1"]
    assert abs(theirs["mean"] - ours.value) < 3 * np.hypot(ours.standard_error, theirs["mcse_mean"])
    assert len(table) == 8


def test_to_arviz_has_equal_weights_and_our_diagnostics(result):
    arviz = pytest.importorskip("arviz", minversion="0.23")
    from thermocline.estimators.convergence import pseudo_values, r_hat

    data = result.to_arviz()
    assert data.posterior["v"].shape == result.parameters["v"].shape
    assert len(arviz.summary(data, var_names=["v"])) == 2
    values, log_weight = result.parameters["v"][..., 1], result.draws.log_weight_target
    ours = data.diagnostics["v"].sel(v_dim_0=1)
    mean = result.expectation(lambda draw: draw["v"][1])
    assert float(ours.sel(diagnostic="mean")) == pytest.approx(mean.value, rel=1e-12)
    assert float(ours.sel(diagnostic="standard_error")) == pytest.approx(mean.standard_error, rel=1e-9)
    spread = result.expectation(lambda draw: (draw["v"][1] - mean.value) ** 2).value
    assert float(ours.sel(diagnostic="ess")) == pytest.approx(spread / mean.standard_error**2, rel=1e-9)
    assert float(ours.sel(diagnostic="r_hat")) == r_hat(pseudo_values(values, log_weight))
    assert data.attrs["verdict"] == result.verdict
    assert data.attrs["log_evidence"] == result.log_evidence.value


def test_arviz_plots_it(result):
    arviz = pytest.importorskip("arviz", minversion="0.23")
    import matplotlib

    matplotlib.use("agg")
    data = result.to_arviz()
    traces = arviz.plot_trace(data, var_names=["v", "pair.1"])
    assert traces.shape == (2, 2)
    pairs = arviz.plot_pair(data, var_names=["v", "pair.1"], divergences=True)
    assert pairs.shape == (2, 2)
    matplotlib.pyplot.close("all")


def test_what_arviz_writes_it_reads_again(result, tmp_path):
    arviz = pytest.importorskip("arviz", minversion="0.23")
    data = result.to_arviz()
    arviz.to_netcdf(data, str(tmp_path / "arviz.nc"))
    again = arviz.from_netcdf(tmp_path / "arviz.nc")
    assert set(again.groups()) == set(data.groups())
    for group in data.groups():
        for name, values in data[group].data_vars.items():
            assert np.array_equal(values, again[group][name], equal_nan=True), (group, name)
    assert again.attrs["log_evidence"] == result.log_evidence.value


def test_data_tree_has_the_same_layout(result, path):
    import xarray

    tree = data_tree(result)
    assert set(tree.children) == {"posterior", "sample_stats", "weighted_posterior", "draws", "diagnostics"}
    assert tree["posterior"]["v"].dims == ("chain", "draw", "v_dim_0")
    assert set(tree["sample_stats"].data_vars) == {
        "acceptance_rate",
        "diverging",
        "inverse_temperature",
        "log_ratio",
        "log_weight_target",
        "log_weight_base",
    }
    with xarray.open_datatree(path, engine="h5netcdf") as stored:
        assert set(stored.children) == set(tree.children) | {"unconstrained", "thermocline"}
        xarray.testing.assert_identical(stored["posterior"].to_dataset(), tree["posterior"].to_dataset())


def test_sample_stats_belong_to_the_draws_beside_them(result):
    tree = data_tree(result)
    index = resampled_in_order(result)
    log_ratio = np.concatenate([result.base_draws.log_ratio, result.draws.log_ratio.ravel()])
    assert np.array_equal(tree["posterior"]["v"], result.pool["v"][index])
    assert np.array_equal(tree["sample_stats"]["log_ratio"], log_ratio[index])
    is_base = index < result.base_draws.log_ratio.size
    assert 0 < is_base.mean() < 1
    assert np.array_equal(np.isnan(tree["sample_stats"]["acceptance_rate"]), is_base)
    assert np.all(tree["sample_stats"]["inverse_temperature"].values[is_base] == 0)
