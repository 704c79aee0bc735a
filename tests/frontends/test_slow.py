"""Whole runs from every front end: eight evidences, the modes of a mixture and of a regression, and Radon."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import thermocline as tc
from tests.frontends import radon
from tests.frontends.conjugate import CASES, TARGETS
from tests.frontends.test_conjugate import FRONT_ENDS

pytestmark = pytest.mark.slow
QUIET = {"progress": False, "seed": 1}


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize("name", CASES)
def test_evidence_of_conjugate_models(front_end, name):
    result, case = tc.sample(TARGETS[front_end](name), **QUIET), CASES[name]
    assert abs(result.log_evidence.z_score(case.log_evidence)) < 4
    assert result.log_evidence.standard_error <= 0.05
    shapes = {parameter: values.shape[2:] for parameter, values in result.parameters.items()}
    for parameter, shape in case.shapes.items():
        assert shapes[parameter] == (shape if front_end != "stan" or parameter == "slope" else (1, *shape))


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_radon(front_end):
    result = radon.main(front_end)
    assert abs(result.log_evidence.z_score(radon.EXACT)) < 4
    assert result.log_evidence.standard_error <= 0.05


GROUPS = np.random.default_rng(4)
Y = np.concatenate([GROUPS.normal(centre, 0.4, size) for centre, size in ((-3, 14), (0.5, 9), (4, 11))])
T = np.linspace(0.1, 2.0, 12)
ABSOLUTE = 1.3 * T + np.random.default_rng(5).normal(0, 0.2, 12)


def numpyro_mixture(y):
    import numpyro
    import numpyro.distributions as dist

    with numpyro.plate("component", 3):
        centre = numpyro.sample("centre", dist.Normal(0, 4))
    scale = numpyro.sample("scale", dist.HalfNormal(1))
    parts = dist.MixtureSameFamily(dist.Categorical(probs=jnp.ones(3) / 3), dist.Normal(centre, scale))
    numpyro.sample("y", parts, obs=y)


def pymc_mixture():
    import pymc as pm

    with pm.Model() as model:
        centre = pm.Normal("centre", 0, 4, shape=3)
        scale = pm.HalfNormal("scale", 1)
        pm.NormalMixture("y", np.ones(3) / 3, centre, scale, observed=Y)
    return model


def numpyro_regression(t, y):
    import numpyro
    import numpyro.distributions as dist

    slope = numpyro.sample("slope", dist.Normal(0, 2))
    numpyro.sample("y", dist.Normal(jnp.abs(slope) * t, 0.2), obs=y)


def pymc_regression():
    import pymc as pm

    with pm.Model() as model:
        pm.Normal("y", pm.math.abs(pm.Normal("slope", 0, 2)) * T, 0.2, observed=ABSOLUTE)
    return model


@pytest.fixture(params=["numpyro", "pymc"])
def front_end(request):
    return request.param


def numpyro_draws(model, *arguments):
    """One chain of NumPyro's own NUTS."""
    import jax
    from numpyro.infer import MCMC, NUTS

    sampler = MCMC(NUTS(model), num_warmup=500, num_samples=500, progress_bar=False)
    sampler.run(jax.random.PRNGKey(0), *arguments)
    return sampler.get_samples()


@pytest.mark.census
def test_all_labellings_of_a_mixture_have_the_same_mass(front_end):
    target = tc.from_numpyro(numpyro_mixture, Y) if front_end == "numpyro" else tc.from_pymc(pymc_mixture())
    result = tc.sample(target, **QUIET)
    six = [mode for mode in result.modes if mode.mass.value > 0.05]
    print(result, [str(mode.mass) for mode in result.modes])
    orders = {tuple(np.argsort(mode.location["centre"])) for mode in six}
    assert len(orders) == len(six) == 6
    assert all(abs(mode.mass.value - 1 / 6) < 4 * mode.mass.standard_error for mode in six)
    if front_end == "numpyro":
        assert len({tuple(order) for order in np.argsort(numpyro_draws(numpyro_mixture, Y)["centre"], axis=1)}) == 1


@pytest.mark.census
def test_both_signs_of_a_slope(front_end):
    target = (
        tc.from_numpyro(numpyro_regression, T, ABSOLUTE) if front_end == "numpyro" else tc.from_pymc(pymc_regression())
    )
    result = tc.sample(target, **QUIET)
    precision = 1 / 4 + T @ T / 0.04
    mean = T @ ABSOLUTE / 0.04 / precision
    covariance = 0.04 * np.eye(len(T)) + 4 * np.outer(T, T)
    plain = stats.multivariate_normal(np.zeros(len(T)), covariance).logpdf(ABSOLUTE)
    exact = np.log(2) + plain + stats.norm(mean, precision**-0.5).logsf(0)  # each half-line holds the same
    assert abs(result.log_evidence.z_score(exact)) < 4
    assert [np.sign(mode.location["slope"]) for mode in result.modes] in ([1, -1], [-1, 1])
    assert all(abs(mode.mass.value - 0.5) < 4 * mode.mass.standard_error for mode in result.modes)
    if front_end == "numpyro":
        assert len(set(np.sign(numpyro_draws(numpyro_regression, T, ABSOLUTE)["slope"]).tolist())) == 1
