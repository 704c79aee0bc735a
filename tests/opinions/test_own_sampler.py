"""The density of (x, u) with other people's samplers: exact answers, draws of any form, and no false trust."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.stats import norm

import thermocline as tc
from tests.problems import mixture
from thermocline.support.precision import computing_in

PROBLEM = mixture(2)  # 0.7 and 0.3, of scales 1 and 0.8, six apart
LENGTHS = {"num_warmup": 400, "num_draws": 1500, "num_chains": 4}


def blackjax_nuts(extended):
    """BlackJAX's warm-up and NUTS, in the single precision that users have."""
    import blackjax

    def chain(key, position):
        warm, key = jax.random.split(key)
        adaptation: Any = blackjax.window_adaptation(blackjax.nuts, extended.log_density)
        (state, parameters), _ = adaptation.run(warm, position, LENGTHS["num_warmup"])
        step = blackjax.nuts(extended.log_density, **parameters).step

        def one(state, key):
            state, info = step(key, state)
            return state, (state.position, info.is_divergent, info.num_integration_steps)

        return jax.lax.scan(one, state, jax.random.split(key, LENGTHS["num_draws"]))[1]

    keys = jax.random.split(jax.random.key(0), LENGTHS["num_chains"])
    draws, diverging, num_steps = jax.jit(jax.vmap(chain))(keys, extended.initial_positions(LENGTHS["num_chains"]))
    assert draws["u"].dtype == jnp.float32
    return draws, {"diverging": diverging, "num_gradients": num_steps}


def numpyro_nuts(extended):
    numpyro = pytest.importorskip("numpyro")
    moves = numpyro.infer.NUTS(potential_fn=extended.potential)
    lengths = {"num_warmup": LENGTHS["num_warmup"], "num_samples": LENGTHS["num_draws"]}
    run = numpyro.infer.MCMC(moves, **lengths, num_chains=4, chain_method="vectorized", progress_bar=False)
    run.run(jax.random.key(1), init_params=extended.initial_positions(4), extra_fields=("diverging",))
    return run.get_samples(group_by_chain=True), {"diverging": run.get_extra_fields(group_by_chain=True)["diverging"]}


def nutpie_nuts(extended):
    nutpie = pytest.importorskip("nutpie")
    lengths = {"tune": LENGTHS["num_warmup"], "draws": LENGTHS["num_draws"], "chains": LENGTHS["num_chains"]}
    return nutpie.sample(extended.to_nutpie(), **lengths, seed=3, cores=1, progress_bar=False), {}


@pytest.mark.parametrize("nuts", [blackjax_nuts, numpyro_nuts, nutpie_nuts])
def test_somebody_elses_nuts_gives_the_exact_answers(nuts):
    extended = tc.extended(PROBLEM.target, base=PROBLEM.base, progress=False)
    draws, told = nuts(extended)
    result = extended.result(draws, **told, progress=False)
    data = PROBLEM.target.data
    truth = np.exp(data["log_weights"]) @ data["means"]
    for estimate in (result.log_evidence, result.log_evidence_chains):
        assert estimate.standard_error < 0.05
        assert abs(estimate.z_score(PROBLEM.log_evidence)) < 4
    assert abs(result.expectation(PROBLEM.function).z_score(PROBLEM.mean)) < 4
    assert np.all(np.abs(result.expectation(lambda x: x).z_score(truth)) < 4)
    assert result.verdict == "ok", [check for check in result.checks if not check.passed]
    assert len(result.modes) == 2
    assert any(check.name.startswith("divergent") for check in result.checks)
    share = np.mean(result.posterior(2000)["x"][:, 0] > 0)
    assert abs(share - PROBLEM.mean) < 4 * result.expectation(PROBLEM.function).standard_error + 1e-3


def log_density(p, data):
    """Names that clash, and a tree within the tree."""
    return log_normal(p["u"], 0.0) + log_normal(p["u_"], 0.0) + log_normal(p["in"]["a"], data).sum() + 1.5


def log_normal(x, log_scale):
    return -0.5 * (x / jnp.exp(log_scale)) ** 2 - log_scale - 0.5 * jnp.log(2 * jnp.pi)


START = {"u": 0.1, "u_": 0.2, "in": {"a": np.array([0.2, 0.3])}}
SCALES = np.array([0.5, 2.0, 1.0, 1.0])  # in.a, u, u_: the order of JAX


@pytest.fixture(scope="module")
def clashing():
    """Log Z = 1.5; the base is twice as wide as the target."""
    target = tc.Target(log_density, START, np.log(np.array([0.5, 2.0])))
    base = tc.BaseFit(tc.Gaussian.diagonal(jax.tree.map(np.zeros_like, START), 2 * SCALES), 1.0)
    return tc.extended(target, base=base, progress=False, control_map=lambda u: jax.nn.sigmoid(u / 3))


def exact_draws(extended, num_draws=400, seed=0):
    """Draws of (x, u) as any sampler would have them: of the base, resampled by N, and u left at zero."""
    base = extended.ground.base_draws()
    weight = np.asarray(jax.vmap(extended.law.log_mass)(base.log_ratio), float)
    generator = np.random.default_rng(seed)
    chosen = generator.choice(len(weight), (2, num_draws), p=np.exp(weight) / np.exp(weight).sum())
    rows = base.position[chosen]
    return {"in.a": rows[..., :2], "u": rows[..., 2], "u_": rows[..., 3], "u__": np.zeros((2, num_draws))}


def test_names_never_clash(clashing):
    assert clashing.control == "u__"
    shapes = {name: leaf.shape for name, leaf in clashing.initial_position.items()}
    assert shapes == {"in.a": (2,), "u": (), "u_": (), "u__": ()}
    starts = clashing.initial_positions(5)
    assert starts["in.a"].shape == (5, 2)
    assert np.all(np.isfinite(jax.jit(jax.vmap(clashing.log_density))(starts)))


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_density_is_the_papers_in_either_precision(clashing, precision):
    values, u = np.array([-0.4, 1.1, 0.7, 0.2]), 1.2
    beta = 1 / (1 + np.exp(-u / 3))
    base, target = norm.logpdf(values, scale=2 * SCALES).sum(), norm.logpdf(values, scale=SCALES).sum() + 1.5
    expected = base + beta * (target - 1.0 - base) + np.log(beta * (1 - beta) / 3)
    with computing_in(precision):
        place = jnp.asarray(values)
        position = {"in.a": place[:2], "u": place[2], "u_": place[3], "u__": jnp.asarray(u)}
        density, slope = jax.jit(jax.value_and_grad(clashing.log_density))(position)
        assert density.dtype == slope["in.a"].dtype == precision
        potential = jax.jit(clashing.potential)(position)
    np.testing.assert_allclose(density, expected, rtol=1e-5 if precision == "float32" else 1e-12)
    assert potential == pytest.approx(-float(density), rel=1e-6)
    np.testing.assert_allclose(slope["u"], -values[2] * (beta + (1 - beta) / 4), rtol=1e-5)


def test_draws_of_any_form_are_one_result(clashing):
    import arviz
    import xarray

    draws = jax.tree.map(jnp.float32, exact_draws(clashing))
    flat = jax.jit(jax.vmap(jax.vmap(lambda position: ravel_pytree(position)[0])))(draws)
    dataset = arviz.convert_to_dataset(jax.tree.map(np.asarray, draws))
    turned = dataset.transpose("draw", ..., "chain")
    statistics = xarray.Dataset({"diverging": (("chain", "draw"), np.zeros((2, 400), bool))})
    group = arviz.InferenceData(posterior=dataset, sample_stats=statistics)
    expected = clashing.result(draws, search=False, progress=False)
    assert abs(expected.log_evidence.z_score(1.5)) < 4
    for form in (flat, dataset, turned, group):
        again = clashing.result(form, search=False, progress=False)
        np.testing.assert_array_equal(again.draws.position, expected.draws.position)
        assert again.log_evidence == expected.log_evidence
    assert any("divergent" in check.name for check in again.checks)  # those of `sample_stats`
    assert not any("divergent" in check.name for check in expected.checks)  # nobody told
    assert any("diverging=" in note for note in expected.info.notes)


def test_a_saved_result_is_the_same_and_cannot_go_on(clashing, tmp_path):
    result = clashing.result(exact_draws(clashing), search=False, progress=False)
    result.save(tmp_path / "own.nc")
    loaded = tc.load(tmp_path / "own.nc")
    assert loaded.log_evidence == result.log_evidence
    assert loaded.checks == result.checks
    assert loaded.summary() == result.summary()
    for one in (result, loaded):
        with pytest.raises(tc.ThermoclineError, match="loop outside the library"):
            tc.extend(one, clashing.ground.path.target, progress=False)


def test_draws_of_something_else_fail():
    """Of the target alone, as plain NUTS gives them where it finds both modes: they say nothing of the base."""
    extended = tc.extended(PROBLEM.target, base=PROBLEM.base, progress=False)
    generator, data = np.random.default_rng(0), PROBLEM.target.data
    which = (generator.uniform(size=(4, 1000)) > 0.7).astype(int)
    x = data["means"][which] + data["scales"][which][..., None] * generator.normal(size=(4, 1000, 2))
    wrong = extended.result({"x": x, "u": generator.normal(size=(4, 1000))}, search=False, progress=False)
    assert wrong.verdict == "failed"


def test_a_density_of_the_host_has_its_gradient():
    target = tc.from_numpy(lambda x: (-0.5 * np.sum(x**2), -x), np.array([1.0, 2.0]))
    extended = tc.extended(target, base=tc.Gaussian.diagonal(np.zeros(2), 3.0), progress=False)
    slope = jax.jit(jax.grad(extended.log_density))(extended.initial_position)
    np.testing.assert_allclose(slope["x"], -np.array([1.0, 2.0]) * (0.5 + 0.5 / 9), rtol=1e-5)


def test_mistakes_are_named(clashing):
    draws = exact_draws(clashing)
    wrong = [
        (draws | {"u": draws["u"][0]}, r"draws of u have shape \(400,\)"),
        ({name: values for name, values in draws.items() if name != "u__"}, "draws lack u__"),
        (np.zeros((2, 400, 4)), r"\(chain, draw, 5\)"),
        (draws | {"in.a": draws["in.a"] * np.nan}, "no draws of extended.log_density"),
    ]
    for given, message in wrong:
        with pytest.raises(tc.ThermoclineError, match=message):
            clashing.result(given, search=False, progress=False)
    with pytest.raises(tc.ThermoclineError, match="one a draw"):
        clashing.result(draws, diverging=np.zeros(3), search=False, progress=False)
    with pytest.raises(tc.ThermoclineError, match="a position has"):
        clashing.log_density({"u": 0.0})
    with pytest.raises(tc.ThermoclineError, match="Ladder"):
        tc.extended(PROBLEM.target, base=PROBLEM.base, law=tc.Ladder(np.array([0.0, 1.0]), np.zeros(2)))
