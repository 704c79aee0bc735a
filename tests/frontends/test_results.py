"""What a front end knows of its model is in the result: names, axes, caveats and pointwise log likelihoods."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from tests.frontends.conjugate import CASES, stan_target
from tests.frontends.test_conjugate import NO_COMPILER
from thermocline.bases import check_base
from thermocline.engine.batch import Paths
from thermocline.engine.prepare import draw_bases
from thermocline.evaluator import Evaluator
from thermocline.frontends import stan_library
from thermocline.paths import Path
from thermocline.results.assemble import of_observations
from thermocline.support.precision import cast, computing_in

RUN = {"num_chains": 4, "num_warmup": 200, "num_draws": 400, "progress": False}
Y = np.array([[0.4, 1.2, -0.3], [0.9, 1.7, 0.6]])
CAVEATS = {"numpyro": ("Not a model's.",), "pymc": ()}
DAYS, SITES = ("Mon", "Tue"), ("a", "b", "c")


def numpyro_model(y):
    import numpyro
    import numpyro.distributions as dist

    scale = numpyro.sample("scale", dist.HalfNormal(2.0))
    with numpyro.plate("site", 3):
        level = numpyro.sample("level", dist.Normal(0, 1))
        with numpyro.plate("day", 2):
            numpyro.deterministic("double", 2 * level + jnp.zeros_like(y))
            numpyro.sample("y", dist.Normal(level, scale), obs=y)


def pymc_model():
    import pymc as pm

    with pm.Model(coords={"day": DAYS, "site": SITES}) as model:
        scale = pm.HalfNormal("scale", 2.0)
        level = pm.Normal("level", 0, 1, dims="site")
        pm.Deterministic("double", 2 * level + np.zeros((2, 1)), dims=("day", "site"))
        pm.Normal("y", level, scale, observed=Y, dims=("day", "site"))
    return model


def exact_log_evidence():
    """The level integrates out by hand; the scale by quadrature."""
    from scipy import integrate, stats

    def likelihood(scale):
        covariance = np.ones((2, 2)) + scale**2 * np.eye(2)
        return np.exp(stats.multivariate_normal(np.zeros(2), covariance).logpdf(Y.T).sum()) * stats.halfnorm(
            scale=2
        ).pdf(scale)

    return np.log(integrate.quad(likelihood, 0, np.inf, epsabs=1e-14)[0])


@pytest.fixture(scope="module", params=["numpyro", "pymc"])
def sampled(request):
    target = tc.from_numpyro(numpyro_model, Y) if request.param == "numpyro" else tc.from_pymc(pymc_model())
    assert target.caveats == ()
    target = replace(target, caveats=CAVEATS[request.param])
    start = target.initial_position
    base = tc.Gaussian.diagonal(jax.tree.map(lambda leaf: np.full(np.shape(leaf), 0.3), start), 0.7)
    return request.param, target, tc.sample(target, base=base, **RUN, search=False)


def test_names_shapes_dims_coords_and_evidence(sampled):
    front_end, _, result = sampled
    assert {name: values.shape[2:] for name, values in result.parameters.items()} == {
        "scale": (),
        "level": (3,),
        "double": (2, 3),
    }
    assert np.all(result.parameters["scale"] > 0)
    np.testing.assert_allclose(result.parameters["double"][..., 1, :], 2 * result.parameters["level"])
    posterior = result.to_arviz().posterior
    assert posterior["level"].dims == ("chain", "draw", "site")
    assert posterior["double"].dims == ("chain", "draw", "day", "site")
    assert list(posterior.coords["site"].values) == (list(SITES) if front_end == "pymc" else [0, 1, 2])
    assert abs(result.log_evidence.z_score(exact_log_evidence())) < 4


def test_a_caveat_is_said_beside_the_evidence_and_is_no_verdict(sampled):
    front_end, _, result = sampled
    assert result.caveats == CAVEATS[front_end]
    assert result.verdict == "ok"
    answer = result.summary().split("Modes")[0]
    assert all(" ".join(caveat.split()[:3]) in answer for caveat in result.caveats)


def test_draws_of_the_prior_and_new_data_come_with_it(sampled):
    front_end, _, result = sampled
    assert result.prior_parameters["level"].shape == (1000, 3)
    assert np.all(result.prior_parameters["scale"] > 0)  # in the user's coordinates
    if front_end == "numpyro":
        ((observed, new),) = result.predictive.values()
        np.testing.assert_array_equal(observed, Y)
        assert new.shape == (200, *Y.shape)
        assert np.all(np.abs(new.mean(axis=0) - Y) < 6 * new.std(axis=0))


def test_models_of_the_same_observations_can_be_compared():
    """Regressors and constants may differ, and so may the front end; observations may not."""
    import numpyro
    import numpyro.distributions as dist
    import pymc as pm

    y, x = np.array([0.4, 1.2, 0.9]), np.array([1.0, 2.0, 3.0])

    def line(x, measured):
        numpyro.sample("y", dist.Normal(numpyro.sample("slope", dist.Normal(0, 1)) * x, 1), obs=measured)

    def of_pymc(y):
        with pm.Model() as model:
            pm.Normal("other", pm.Normal("level"), 1, observed=y)
        return tc.from_pymc(model)

    marks = [of_observations(target) for target in (tc.from_numpyro(line, x, y), of_pymc(y), of_pymc(y + 1))]
    assert marks[0] == marks[1] != marks[2]


def test_pointwise_log_likelihoods_serve_leave_one_out(sampled, tmp_path):
    import arviz

    _, _, result = sampled
    result.save(tmp_path / "run.nc")
    data = tc.load(tmp_path / "run.nc").to_arviz()
    pointwise = data.log_likelihood["y"]
    assert pointwise.dims == ("chain", "draw", "day", "site")
    scale, level = data.posterior["scale"].values, data.posterior["level"].values
    expected = -0.5 * ((Y - level[..., None, :]) / scale[..., None, None]) ** 2 - np.log(scale)[..., None, None]
    np.testing.assert_allclose(pointwise, expected - 0.5 * np.log(2 * np.pi), rtol=1e-6)
    assert np.isfinite(arviz.loo(data).elpd_loo)


def test_the_prior_is_a_normalised_base(sampled):
    """The ratio of a narrower normalised density to it averages to one over its draws."""
    _, target, _ = sampled
    names = list(target.initial_position)
    narrow = tc.Gaussian.diagonal({name: np.full(np.shape(target.initial_position[name]), 0.2) for name in names}, 0.5)
    with computing_in("float64"):
        inner = tc.Target(cast(narrow, "float64").log_density, target.initial_position)
        path = Path(inner, cast(target.prior, "float64"), jnp.asarray(0.0))
        check_base(path.base, path.target.initial_position)
        ratio = np.exp(np.asarray(draw_bases(np.array([[3, 0]]), Paths.of_one(path), 4000)[1]))
    error = ratio.std() / np.sqrt(ratio.size)
    assert error < 0.06
    assert abs(ratio.mean() - 1) < 4 * error


@pytest.mark.slow
def test_the_prior_starts_a_path(sampled):
    _, target, _ = sampled
    result = tc.sample(target, base=target.prior, **RUN, search=False)
    assert abs(result.log_evidence.z_score(exact_log_evidence())) < 4


def test_data_are_leaves(sampled):
    """Other data, the same compiled program."""
    _, target, _ = sampled
    assert any(np.array_equal(leaf, Y) for leaf in target.data.values())
    with computing_in("float64"):
        compiled = jax.jit(target.log_density)
        position, data = cast((target.initial_position, target.data), "float64")
        moved = {name: leaf + 1 if leaf.shape == Y.shape else leaf for name, leaf in data.items()}
        before, after = compiled(position, data), compiled(position, moved)
        assert compiled._cache_size() == 1
        assert abs(float(before - after)) > 0.1


@NO_COMPILER
def test_stan_sampled():
    """One run through the compiled program: names, evidence, pointwise values, second derivatives."""
    target = stan_target("poisson")
    result = tc.sample(target, base=tc.Gaussian.diagonal({"rate": np.full(1, 0.9)}, 0.4), **RUN, search=False)
    estimate = result.log_evidence
    assert abs(estimate.z_score(CASES["poisson"].log_evidence)) < 4
    assert estimate.standard_error < 0.05
    assert result.parameters["rate"].shape == (4, 400, 1)
    data = result.to_arviz()
    assert data.log_likelihood["log_lik"].shape == (4, 400, 5)
    assert data.posterior["fresh"].shape == (4, 400, 2)
    assert "log_lik" not in data.posterior
    assert "fresh[1]" in result.summary()
    assert target.caveats == ()
    fresh = np.unique(result.parameters["fresh"].reshape(-1, 2), axis=0)  # a rejected move leaves the draw as it was
    assert np.all(np.abs(fresh.std(axis=0) - 1) < 4 / np.sqrt(2 * len(fresh)))
    assert np.all(np.abs(fresh.mean(axis=0)) < 4 / np.sqrt(len(fresh)))


@NO_COMPILER
def test_a_stan_program_is_compiled_once_for_all_data(monkeypatch):
    stan_target("poisson")
    monkeypatch.setattr(stan_library, "compile_cpp", lambda *given: pytest.fail("compiled again"))
    stan_target("exponential")


@NO_COMPILER
def test_rows_that_stan_is_given_are_those_that_jax_sees():
    target = replace(stan_target("normal, unknown variance"), caveats=())
    rows = np.random.default_rng(0).normal(size=(40, Evaluator(target).dimension))
    for of_host, of_jax in zip(Evaluator(target)(rows), Evaluator(replace(target, host=None))(rows), strict=True):
        np.testing.assert_array_equal(of_host, of_jax)
