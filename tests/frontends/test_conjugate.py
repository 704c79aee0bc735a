"""The density of every front end is exact, constants and Jacobian: log density minus log posterior is log Z."""

import shutil

import jax
import numpy as np
import pytest
from scipy import stats

import thermocline as tc
from tests.frontends.conjugate import CASES, COUNTS, TARGETS, TRIALS, A, B, Case, log_constant

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
