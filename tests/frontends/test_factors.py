"""Front ends give what multiplies the prior by site and row, and expectation propagation takes it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

import thermocline as tc

X = np.random.default_rng(0).normal(size=(30, 3))
Y = (X @ np.array([1.0, -1.0, 0.5]) + np.random.default_rng(1).normal(size=30) > 0).astype(float)
WIDTH = 1.5


def numpyro_target():
    import numpyro
    import numpyro.distributions as dist

    def model(x, y):
        weights = numpyro.sample("weights", dist.Normal(0, WIDTH).expand([3]).to_event(1))
        with numpyro.plate("row", len(x)):
            numpyro.sample("y", dist.Bernoulli(probs=jax.scipy.stats.norm.cdf(x @ weights)), obs=y)
        numpyro.factor("extra", jnp.asarray(0.7))

    return tc.from_numpyro(model, X, Y)


def pymc_target():
    import pymc as pm

    with pm.Model() as model:
        weights = pm.Normal("weights", 0, WIDTH, shape=3)
        half = np.array([0.5**0.5])  # an array: PyTensor rounds the number in its own `invprobit` to single precision
        pm.Bernoulli("y", p=0.5 * pm.math.erfc(-half * pm.math.dot(X, weights)), observed=Y)
        pm.Potential("extra", 0.0 * weights[0] + 0.7)
    return tc.from_pymc(model)


def by_hand():
    def factors(position, data):
        return {"y": norm.logcdf((2 * data["y"] - 1) * (data["x"] @ position["weights"])), "extra": jnp.asarray(0.7)}

    def log_density(position, data):
        found = factors(position, data)
        return jnp.sum(found["y"]) + found["extra"] + jnp.sum(norm.logpdf(position["weights"], 0, WIDTH))

    prior = tc.Gaussian.diagonal({"weights": np.zeros(3)}, WIDTH)
    return tc.Target(log_density, {"weights": np.zeros(3)}, {"x": X, "y": Y}, prior=prior, factors=factors)


@pytest.mark.parametrize("package", ["numpyro", "pymc"])
def test_factors_by_site_and_row_and_what_ep_makes_of_them(package):
    pytest.importorskip(package)
    target = {"numpyro": numpyro_target, "pymc": pymc_target}[package]()
    with jax.enable_x64(True):
        weights = {"weights": jnp.array([0.4, -0.2, 1.1])}
        factors = target.factors(weights, target.data)
        expected = by_hand().factors(weights, {"x": X, "y": Y})
        assert np.shape(factors["y"]) == (30,)
        for name in ("y", "extra"):
            np.testing.assert_allclose(factors[name], expected[name], rtol=1e-9)
    fit, known = tc.fit_ep(target), tc.fit_ep(by_hand())
    assert fit.log_zeta == pytest.approx(known.log_zeta, abs=1e-6)
    np.testing.assert_allclose(fit.base.mean["weights"], known.base.mean["weights"], atol=1e-5)


def test_a_numpyro_scale_is_a_power_of_its_factors():
    numpyro = pytest.importorskip("numpyro")
    import numpyro.distributions as dist

    def model(y):
        mean = numpyro.sample("mean", dist.Normal(0, 1))
        with numpyro.handlers.scale(scale=2.0):
            numpyro.sample("y", dist.Normal(mean, 1), obs=y)

    target = tc.from_numpyro(model, np.array([0.3, 1.1]))
    fit = tc.fit_ep(target)
    assert float(fit.base.mean["mean"]) == pytest.approx(2 * 1.4 / 5, abs=1e-6)
    assert float(fit.base.covariance()[0, 0]) == pytest.approx(1 / 5, rel=1e-6)


def test_a_model_without_observations_has_no_factors():
    numpyro = pytest.importorskip("numpyro")
    import numpyro.distributions as dist

    target = tc.from_numpyro(lambda: numpyro.sample("x", dist.Normal(0, 1)))
    assert target.factors is None
    with pytest.raises(tc.ThermoclineError, match="fit_ep needs the target's factors"):
        tc.fit_ep(target)
