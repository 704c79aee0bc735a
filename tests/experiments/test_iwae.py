"""The image experiment in small: two latents, so that log p(image) is known by quadrature, and every stage run."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.iwae import claims, figure, run, stages
from experiments.iwae.model import Autoencoder, importance_bound, initial, load, save
from thermocline.support.precision import cast

NUMBER, REPEATS = 4, 16
DRAWS = {"gibbs": 200, "joint": 600, "simulated": 200}  # joint moves slowly in u
SETTINGS = stages.Settings(NUMBER, REPEATS, DRAWS, (20,), 20, ())  # one schedule: the bounds share its program


def tiny_model() -> Autoencoder:
    """A random decoder of 784 pixels, strong enough that the encoder, also random, is a poor guess."""
    model = initial(jax.random.key(3), jnp.full(784, 0.3), num_hidden=6, num_latents=2)
    first, second, output = model.decoder
    return model._replace(decoder=(first, second, output._replace(weights=1.5 * output.weights)))


def exact_log_likelihoods(model: Autoencoder, images: np.ndarray) -> np.ndarray:
    grid = np.linspace(-6, 6, 121)
    latents = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    with jax.enable_x64(True):
        model = cast(model, "float64")
        values = [jax.nn.logsumexp(model.log_joint(jnp.asarray(latents), jnp.asarray(image))) for image in images]
        return np.array(values) + 2 * np.log(grid[1] - grid[0])


@pytest.fixture(scope="module")
def problem():
    return stages.pose("mnist", tiny_model(), NUMBER)


@pytest.fixture(scope="module")
def exact(problem):
    return exact_log_likelihoods(tiny_model(), problem.data["image"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("stages")


@pytest.fixture(scope="module")
def found(problem, folder):
    return stages.run_all(problem, SETTINGS, folder)


@pytest.mark.slow
def test_bounds_hold_the_exact_value_between_them(found, exact):
    bounds = found["bounds"]
    assert np.all(bounds["lower"] < exact + 4 * bounds["lower_error"] + 1e-3)
    assert np.all(bounds["upper"] > exact - 4 * bounds["upper_error"] - 1e-3)
    assert np.all(bounds["upper"] - bounds["lower"] < 1)


@pytest.mark.slow
def test_annealed_runs_agree_with_quadrature(found, exact):
    stage = found["annealed-20"]
    assert np.all(np.abs(stage["value"] - exact) < 5 * stage["error"])


@pytest.mark.slow
@pytest.mark.parametrize("method", DRAWS)
def test_chains_agree_with_quadrature(found, exact, method):
    stage = found[method]
    final = stage["value"][:, :, -1]
    error = final.std(axis=1, ddof=1) / np.sqrt(REPEATS)
    assert np.all(np.abs(final.mean(axis=1) - exact) < 5 * error + 0.02)  # a chain's own bias is of order 1/draws
    assert np.all(error < 0.2)
    assert np.all(np.abs(stage["pooled"] - exact) < 1)
    assert stage["num_draws"][-1] == DRAWS[method]


def test_the_importance_weighted_bound_closes(exact, problem):
    bound = importance_bound(jax.random.key(5), tiny_model(), jnp.asarray(problem.data["image"]), 20_000)
    assert np.all(np.abs(np.asarray(bound) - exact) < 0.2)
    assert problem.data["log_zeta"].mean() < exact.mean() + 0.1  # from few samples it is a bound on average


@pytest.mark.slow
def test_stages_are_read_back(found, problem, folder, monkeypatch):
    def fail(*_):
        raise AssertionError("computed again")

    for name in ("run_bounds", "run_annealed", "run_chains"):
        monkeypatch.setattr(stages, name, fail)
    again = stages.run_all(problem, SETTINGS, folder)
    for stage, arrays in found.items():
        for name, array in arrays.items():
            assert np.array_equal(array, again[stage][name]), (stage, name)
    with pytest.raises(AssertionError, match="computed again"):
        stages.run_all(problem, SETTINGS._replace(bounds=30), folder)


@pytest.mark.slow
def test_tables_and_figure_come_from_the_stages(found, problem, tmp_path):
    timing = {"numbers": np.array([1, 4]), "annealed": np.array([0.1, 0.2]), "gibbs": np.array([0.01, 0.04])}
    both, problems = {"mnist": found | {"parallel": timing}, "omniglot": found}, {"mnist": problem, "omniglot": problem}
    tables = run.report(both, SETTINGS)
    numbers = run.numbers_of(both, SETTINGS)
    run.store(run.FOLDER, tmp_path, numbers, tables)
    figure.draw(tmp_path / "figure.png", problems, both)
    readme = (tmp_path / "README.md").read_text()
    assert all(table in readme for table in tables.values())
    assert "| Gibbs CT draw | 10.0 (10.00) | 40.0 (10.00) |" in tables["parallel"]
    again = json.loads((tmp_path / "result.json").read_text())
    assert again["mnist"]["bounds"] == numbers["mnist"]["bounds"]
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_time_to_reach_counts_from_the_last_excursion():
    value = np.array([[[-3.0, 0.0, -3.0, 0.05, 0.0]], [[-3.0, 0.0, -3.0, 0.05, 0.0]]]).transpose(1, 0, 2)
    stage = {
        "value": value,
        "num_draws": np.array([1, 2, 3, 4, 5]),
        "seconds": np.array(10.0),
        "warmup_seconds": np.array(0.0),
    }
    runs = {"seconds": np.array(7.0), "value": np.array([-1.0]), "error": np.array([0.1])}
    bounds = {"lower": np.array([-0.1]), "upper": np.array([0.1])}
    stage_names = dict.fromkeys(figure.CURVES, stage)
    reached = claims.time_to_reach({"bounds": bounds, "annealed-5": runs, **stage_names}, 0.2)
    assert reached["Gibbs CT"] == pytest.approx(4.0)  # the fourth of five prefixes, with two runs sharing ten seconds
    assert reached["AIS"] == np.inf


def test_a_claim_is_not_decided_by_runs_that_are_too_short():
    def stages_with(gibbs, joint):
        """Mean errors after 1, 2, ..., 5 seconds; annealed runs are right after 7."""
        chains = {"num_draws": np.arange(1, 6), "seconds": np.array(10.0), "warmup_seconds": np.array(0.0)}
        values = {"gibbs": gibbs, "joint": joint}
        found = {name: chains | {"value": np.tile(value, (1, 2, 1))} for name, value in values.items()}
        runs = {"seconds": np.array(7.0), "value": np.array([0.0]), "error": np.array([0.1])}
        return found | {"annealed-5": runs, "bounds": {"lower": np.array([-0.1]), "upper": np.array([0.1])}}

    early, late, never = np.array([0.0] * 5), np.array([-3.0] * 4 + [0.0]), np.array([-3.0] * 5)
    assert claims.is_longer(stages_with(early, late), "joint CT", "Gibbs CT", 2.0) is True
    assert claims.is_longer(stages_with(late, early), "joint CT", "Gibbs CT", 2.0) is False
    assert claims.is_longer(stages_with(early, never), "joint CT", "Gibbs CT", 2.0) is True
    assert claims.is_longer(stages_with(late, never), "joint CT", "Gibbs CT", 2.0) is None
    assert claims.is_longer(stages_with(never, never), "joint CT", "Gibbs CT", 1.0) is None
    assert claims.is_similar(stages_with(late, late))[1] is True
    assert claims.is_similar(stages_with(early, late))[1] is False
    assert claims.is_similar(stages_with(never, late))[1] is None
    assert claims.verdict([None, None]) == "not decided by runs of this length"
    assert [claims.verdict(held) for held in ([True, None], [True, False], [False])] == [
        "holds", "holds in part", "does not hold here",
    ]  # fmt: skip


def test_weights_survive_half_precision(tmp_path):
    model = tiny_model()
    save(tmp_path / "model.npz", model)
    again = load(tmp_path / "model.npz")
    assert jax.tree.structure(again) == jax.tree.structure(model)
    for one, other in zip(jax.tree.leaves(model), jax.tree.leaves(again), strict=True):
        assert np.allclose(one, other, rtol=1e-3, atol=1e-6)
