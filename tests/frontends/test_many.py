"""`sample_many` on a model of NumPyro or PyMC: data sets that differ, regressors that they share."""

import pickle

import cloudpickle
import numpy as np
import pytest
from scipy import stats

import thermocline as tc
from thermocline.bases.base import sampled_rows
from thermocline.support.precision import computing_in

X = np.array([0.2, -1.3, 0.7, 2.1, -0.4, 1.0])
MANY = np.random.default_rng(1).gamma(1.5, 1.0, (5, 6)) * np.array([[1.0], [2.0], [0.5], [3.0], [1.5]]) - 1
SCALE, NOISE = 2.0, 0.7


def numpyro_target():
    import numpyro
    import numpyro.distributions as dist

    def line(x, y):
        slope = numpyro.sample("slope", dist.Normal(0, SCALE))
        with numpyro.plate("day", 6):
            numpyro.sample("y", dist.Normal(slope * x, NOISE), obs=y)

    return tc.from_numpyro(line, X, MANY[0])


def pymc_target():
    import pymc as pm

    with pm.Model(coords={"day": list("abcdef")}):
        x = pm.Data("x", X, dims="day")
        pm.Normal("y", pm.Normal("slope", 0, SCALE) * x, NOISE, observed=MANY[0], dims="day")
        return tc.from_pymc(pm.modelcontext(None))


TARGETS = {"numpyro": numpyro_target, "pymc": pymc_target}


def exact(x, y):
    """Log evidence, posterior mean and deviation."""
    evidence = stats.multivariate_normal(np.zeros(6), NOISE**2 * np.eye(6) + SCALE**2 * np.outer(x, x)).logpdf(y)
    precision = x @ x / NOISE**2 + 1 / SCALE**2
    return evidence, x @ y / NOISE**2 / precision, precision**-0.5


@pytest.mark.parametrize("front_end", TARGETS)
def test_evidences_of_many_data_sets_are_exact(front_end):
    target = TARGETS[front_end]()
    base = tc.Gaussian.diagonal({"slope": np.array(0.5)}, 1.0)
    results = tc.sample_many(target, {"y": MANY}, base=base, num_warmup=200, num_draws=200, seed=1, progress=False)
    for result, y in zip(results, MANY, strict=True):
        log_evidence, mean, _ = exact(X, y)
        assert abs(result.log_evidence.z_score(log_evidence)) < 4
        assert result.log_evidence.standard_error < 0.1
        assert abs(result.expectation(lambda draw: draw["slope"]).z_score(mean)) < 4
    pointwise = results[3].to_arviz().log_likelihood["y"]
    slope = results[3].to_arviz().posterior["slope"].values[..., None]
    assert pointwise.dims == ("chain", "draw", "day")
    np.testing.assert_allclose(pointwise, stats.norm(slope * X, NOISE).logpdf(MANY[3]), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("front_end", TARGETS)
def test_bases_of_its_own_for_each(front_end):
    both = {"x": np.stack([X, -X, 2 * X, X + 1, X]), "y": MANY}
    results = tc.sample_many(TARGETS[front_end](), both, seed=1, progress=False)
    for result, x, y in zip(results, both["x"], both["y"], strict=True):
        assert abs(result.log_evidence.z_score(exact(x, y)[0])) < 4
        assert result.verdict == "ok"


@pytest.mark.parametrize("front_end", TARGETS)
def test_data_that_are_not_the_models_are_refused(front_end):
    target = TARGETS[front_end]()
    for data, said in (
        ({"Y": MANY}, "the model has no data 'Y'; its data are"),
        ({"y": MANY[:, :4]}, r"data y are of shape \(4,\) where the model was built with \(6,\)"),
        (MANY, "give a dict of some of the model's data by name"),
    ):
        with pytest.raises(tc.ThermoclineError, match=said):
            tc.sample_many(target, data, progress=False)


@pytest.mark.parametrize("front_end", TARGETS)
def test_a_prior_travels_to_workers(front_end):
    """As one that has been drawn from, which has compiled what it draws by."""
    prior = TARGETS[front_end]().prior
    with computing_in("float64"):
        first = sampled_rows(prior, [1, 2], 3)
        again = sampled_rows(pickle.loads(cloudpickle.dumps(prior)), [1, 2], 3)
    assert np.array_equal(first, again)
