"""The density of every front end is exact, constants and Jacobian: log density minus log posterior is log Z."""

import shutil

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln, comb

import thermocline as tc
from tests.frontends.conjugate import CASES, COUNTS, TARGETS, TRIALS, A, B, Case, log_constant
from thermocline.support.precision import computing_in

NO_COMPILER = pytest.mark.skipif(
    shutil.which("c++") is None, reason="Stan models need a C++ compiler, and none is here"
)
FRONT_ENDS = ["numpyro", "pymc", pytest.param("stan", marks=[NO_COMPILER, pytest.mark.slow])]  # a minute to compile


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize("name", CASES)
def test_log_density_minus_log_posterior_is_the_evidence_everywhere(front_end, name):
    target, case = TARGETS[front_end](name), CASES[name]
    size = sum(np.size(leaf) for leaf in jax.tree.leaves(target.initial_position))
    positions = np.random.default_rng(1).normal(size=(4, size))
    np.testing.assert_allclose(log_constant(target, case, positions), case.log_evidence, rtol=0, atol=1e-8)


@pytest.mark.parametrize("front_end", ["numpyro", "pymc"])
def test_three_correlations_have_their_constant(front_end):
    """The first two are beta on (-1, 1), and so is the partial correlation that is left (Lewandowski et al. 2009)."""
    outer, inner = (stats.beta(a, a, loc=-1, scale=2) for a in (A + 0.5, A))

    def log_posterior(correlations):
        first, second, third = correlations
        left = (1 - first**2) * (1 - second**2)
        prior = outer.logpdf(first) + outer.logpdf(second) + inner.logpdf((third - first * second) / left**0.5)
        return prior - np.log(left) / 2 + stats.binom(TRIALS, (1 + first) / 2).logpmf(COUNTS).sum() - exact

    a, hits, misses = A + 0.5, COUNTS.sum(), (TRIALS - COUNTS).sum()
    exact = np.log(comb(TRIALS, COUNTS)).sum() + betaln(a + hits, a + misses) - betaln(a, a)
    case = Case(exact, log_posterior, lambda draw: draw["correlation"], {})
    positions = np.random.default_rng(3).normal(size=(3, 3)) / 2
    np.testing.assert_allclose(log_constant(of_three(front_end), case, positions), exact, atol=1e-8)


def test_off_the_support_of_correlations_pymc_has_no_density():
    """Its coordinates are an interval for each; 0.76, -0.76 and 0.76 in this order are no correlation matrix."""
    target = of_three("pymc")
    with computing_in("float64"):
        values = [float(target({"correlation_interval__": 2 * np.array(signs)})) for signs in ([1, -1, 1], [1, 1, 1])]
    assert values[0] == -np.inf
    assert np.isfinite(values[1])


def of_three(front_end):
    """Three correlations, of which the first is a chance."""
    if front_end == "numpyro":
        import numpyro
        import numpyro.distributions as dist

        def model(counts):
            factor = numpyro.sample("factor", dist.LKJCholesky(3, A))
            correlation = numpyro.deterministic("correlation", (factor @ factor.T)[[0, 0, 1], [1, 2, 2]])
            numpyro.sample("counts", dist.Binomial(TRIALS, (1 + correlation[0]) / 2), obs=counts)

        return tc.from_numpyro(model, COUNTS)
    import pymc as pm

    with pm.Model() as model:
        correlation = pm.LKJCorr("correlation", n=3, eta=A, return_matrix=False)
        pm.Binomial("counts", TRIALS, (1 + correlation[0]) / 2, observed=COUNTS)
    return tc.from_pymc(model)


def test_pymc_lacks_no_constant_of_lkj_with_standard_deviations():
    import pymc as pm

    with pm.Model() as model:
        _, correlations, _ = pm.LKJCholeskyCov("cholesky", n=2, eta=A, sd_dist=pm.Exponential.dist(B, shape=2))
        rho = pm.Deterministic("correlation", correlations[0, 1])
        pm.Binomial("counts", TRIALS, (1 + rho) / 2, observed=COUNTS)
    known = CASES["correlation"]

    def free(draw):
        return np.concatenate([np.ravel(draw["correlation"]), np.ravel(draw["cholesky_stds"])])

    def log_posterior(values):
        return known.log_posterior(values[:1]) + stats.expon(scale=1 / B).logpdf(values[1:]).sum()

    case = Case(known.log_evidence, log_posterior, free, {})
    positions = np.random.default_rng(2).normal(size=(3, 3))
    np.testing.assert_allclose(log_constant(tc.from_pymc(model), case, positions), known.log_evidence, atol=1e-8)
