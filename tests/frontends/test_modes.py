"""Models with several modes from NumPyro and PyMC: all of them, each with its mass; the front end's NUTS sees one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc

pytestmark = pytest.mark.slow
QUIET = {"progress": False, "seed": 1}
GROUPS = np.random.default_rng(4)
Y = np.concatenate([GROUPS.normal(centre, 0.4, size) for centre, size in ((-3, 14), (0.5, 9), (4, 11))])
T = np.linspace(0.1, 2.0, 12)
PRODUCT = 1.3 * T + np.random.default_rng(5).normal(0, 0.2, 12)


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

    first, second = numpyro.sample("first", dist.Normal(0, 1)), numpyro.sample("second", dist.Normal(0, 1.5))
    numpyro.sample("y", dist.Normal(first * second * t, 0.2), obs=y)


def pymc_regression():
    import pymc as pm

    with pm.Model() as model:
        pm.Normal("y", pm.Normal("first", 0, 1) * pm.Normal("second", 0, 1.5) * T, 0.2, observed=PRODUCT)
    return model


def log_evidence_of_regression():
    """On a grid fine enough for the ridge."""
    first, second = np.linspace(-8, 8, 3201)[:, None], np.linspace(-12, 12, 4801)
    slope = first * second
    residual = np.sum(PRODUCT**2) - 2 * slope * (T @ PRODUCT) + slope**2 * (T @ T)
    log_joint = -0.5 * (residual / 0.04 + first**2 + (second / 1.5) ** 2)
    constant = -len(T) * np.log(0.2 * np.sqrt(2 * np.pi)) - np.log(2 * np.pi * 1.5)
    return np.log(np.sum(np.exp(log_joint)) * 0.005**2) + constant


@pytest.fixture(params=["numpyro", "pymc"])
def front_end(request):
    return request.param


def numpyro_draws(name, model, *arguments):
    """One chain of NumPyro's own NUTS."""
    from numpyro.infer import MCMC, NUTS

    sampler = MCMC(NUTS(model), num_warmup=500, num_samples=500, progress_bar=False)
    sampler.run(jax.random.PRNGKey(0), *arguments)
    return np.asarray(sampler.get_samples()[name])


def pymc_draws(name, model):
    """One chain of PyMC's own NUTS."""
    import pymc as pm

    quiet = {"progressbar": False, "compute_convergence_checks": False}
    with model:
        return pm.sample(500, tune=500, chains=1, cores=1, random_seed=1, **quiet).posterior[name].values[0]


def test_all_labellings_of_a_mixture_have_the_same_mass(front_end):
    target = tc.from_numpyro(numpyro_mixture, Y) if front_end == "numpyro" else tc.from_pymc(pymc_mixture())
    result = tc.sample(target, **QUIET)
    six = [mode for mode in result.modes if mode.mass.value > 0.05]
    print(result, [str(mode.mass) for mode in result.modes])
    orders = {tuple(np.argsort(mode.location["centre"])) for mode in six}
    assert len(orders) == len(six) == 6
    assert all(abs(mode.mass.value - 1 / 6) < 4 * mode.mass.standard_error for mode in six)
    nuts = {
        "numpyro": lambda: numpyro_draws("centre", numpyro_mixture, Y),
        "pymc": lambda: pymc_draws("centre", pymc_mixture()),
    }
    alone = nuts[front_end]()
    assert len({tuple(order) for order in np.argsort(alone, axis=1)}) == 1


def test_both_signs_of_a_product(front_end):
    target = (
        tc.from_numpyro(numpyro_regression, T, PRODUCT) if front_end == "numpyro" else tc.from_pymc(pymc_regression())
    )
    result = tc.sample(target, **QUIET)
    print(result, [str(mode.mass) for mode in result.modes])
    assert abs(result.log_evidence.z_score(log_evidence_of_regression())) < 4
    assert sorted(np.sign(mode.location["first"]) for mode in result.modes) == [-1, 1]
    assert all(abs(mode.mass.value - 0.5) < 4 * mode.mass.standard_error for mode in result.modes)
    nuts = {
        "numpyro": lambda: numpyro_draws("first", numpyro_regression, T, PRODUCT),
        "pymc": lambda: pymc_draws("first", pymc_regression()),
    }
    alone = nuts[front_end]()
    assert len(set(np.sign(alone).tolist())) == 1
