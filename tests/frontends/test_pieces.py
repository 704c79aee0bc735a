"""Factors, plates, censored, truncated and ordered variables: the density has every constant."""

import numpy as np
import pytest
from scipy import stats

import thermocline as tc
from tests.frontends.pieces import COUNTS, NOISE, PIECES, SCALE, TARGETS, Y
from thermocline.evaluator import Evaluator


def integral(target, box):
    """Log of the density's integral by the trapezium rule, which is exact to rounding for what dies off smoothly."""
    axes = [np.linspace(*side) for side in box]
    rows = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    return float(np.logaddexp.reduce(Evaluator(target).values(rows)) + np.log(cell))


@pytest.mark.parametrize("name", PIECES)
@pytest.mark.parametrize("front_end", TARGETS)
def test_the_density_integrates_to_the_evidence(front_end, name):
    target, piece = TARGETS[front_end](name), PIECES[name]
    assert abs(integral(target, piece.box) - piece.log_evidence) < 1e-6
    assert len(target.caveats) == piece.num_caveats[list(TARGETS).index(front_end)]


def test_slopes_of_normal_tails_in_pymc_are_numbers_far_out():
    """On the far side a branch that is not taken overflows; the other side is PyMC's own."""
    values, slopes = Evaluator(TARGETS["pymc"]("truncated data"))(np.array([[-4.0], [0.0], [50.0], [500.0]]))
    assert np.all(np.isfinite(values))
    assert np.all(np.diff(slopes[:, 0]) < 0)  # it is log-concave, so slopes fall


@pytest.mark.parametrize("front_end", TARGETS)
def test_a_rate_that_overflows_is_off_the_support(front_end):
    """Infinity less infinity is NaN in both, and no density; of a base with heavy tails some draws go as far."""
    target = TARGETS[front_end]("overflow")
    values = Evaluator(target).unchecked(np.array([[0.3], [800.0]]))[0]
    exact = stats.norm(0, SCALE).logpdf(0.3) + stats.poisson(np.exp(0.3)).logpmf(COUNTS).sum()
    np.testing.assert_allclose(values, [exact, -np.inf], rtol=1e-10)


def test_areas_in_pymc_need_eigenvalues_that_jax_does_not_find():
    """They are of constants, so that PyTensor finds them. What PyMC leaves out of the density is put back."""
    import pymc as pm

    neighbours = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    with pm.Model() as model:
        pm.Normal("y", pm.CAR("level", np.zeros(3), neighbours, 0.6, 1.4), 1, observed=np.zeros(3))
    level = np.array([0.3, -1.2, 0.8])
    covariance = np.linalg.inv(1.4 * (np.diag(neighbours.sum(1)) - 0.6 * neighbours))
    exact = stats.multivariate_normal(np.zeros(3), covariance).logpdf(level) + stats.norm(level).logpdf(0).sum()
    target = tc.from_pymc(model)
    np.testing.assert_allclose(Evaluator(target).values(level[None]), exact, rtol=1e-10)
    assert target.caveats == ()


def test_areas_without_a_normalised_prior_say_so():
    import pymc as pm

    with pm.Model() as model:
        pm.Normal("y", pm.ICAR("level", np.ones((3, 3)) - np.eye(3)), 1, observed=np.zeros(3))
    target = tc.from_pymc(model)
    assert target.caveats == ("PyMC's prior of level (areas) is not normalised: log Z lacks its constant.",)
    assert target.prior is None  # PyMC cannot draw from it


@pytest.mark.parametrize("front_end", TARGETS)
@pytest.mark.parametrize("says_how", [True, False])
def test_a_prior_of_the_users_own_that_does_not_say_how_to_draw(front_end, says_how):
    """It is the model's all the same; only, the search has no draws of it to look at."""
    target = {"numpyro": own_in_numpyro, "pymc": own_in_pymc}[front_end](says_how)
    assert (target.prior is not None) == says_how
    exact = stats.laplace(0, SCALE).logpdf(0.3) + stats.norm(0.3, NOISE).logpdf(Y).sum()
    np.testing.assert_allclose(Evaluator(target).values(np.array([[0.3]])), exact, rtol=1e-10)


def own_in_numpyro(says_how):
    import jax
    import numpyro
    import numpyro.distributions as dist

    class Own(dist.Distribution):
        support = dist.constraints.real

        def log_prob(self, value):
            return dist.Laplace(0, SCALE).log_prob(value)

        def sample(self, key, sample_shape=()):
            if not says_how:
                raise NotImplementedError
            return SCALE * jax.random.laplace(key, sample_shape)

    def model(y):
        numpyro.sample("y", dist.Normal(numpyro.sample("mean", Own()), NOISE), obs=y)

    return tc.from_numpyro(model, Y)


def own_in_pymc(says_how):
    import pymc as pm

    def draw(rng=None, size=None):
        return rng.laplace(0, SCALE, size)

    with pm.Model() as model:
        prior = {"logp": lambda value: pm.logp(pm.Laplace.dist(0, SCALE), value), "random": draw if says_how else None}
        pm.Normal("y", pm.CustomDist("mean", **prior), NOISE, observed=Y)
    return tc.from_pymc(model)


@pytest.mark.slow
@pytest.mark.parametrize("name", PIECES)
@pytest.mark.parametrize("front_end", TARGETS)
def test_it_is_sampled(front_end, name):
    result = tc.sample(TARGETS[front_end](name), seed=1, progress=False)
    assert abs(result.log_evidence.z_score(PIECES[name].log_evidence)) < 4
    assert result.verdict == "ok"
