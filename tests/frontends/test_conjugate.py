"""The density of every front end is exact, constants and Jacobian: log density minus log posterior is log Z."""

import shutil

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from tests.frontends.conjugate import CASES, TARGETS, log_constant

NO_COMPILER = pytest.mark.skipif(shutil.which("c++") is None, reason="Stan models need a C++ compiler, and none is here")
FRONT_ENDS = ["numpyro", "pymc", pytest.param("stan", marks=NO_COMPILER)]


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize("name", CASES)
def test_log_density_minus_log_posterior_is_the_evidence_everywhere(front_end, name):
    target, case = TARGETS[front_end](name), CASES[name]
    size = sum(np.size(leaf) for leaf in jax.tree.leaves(target.initial_position))
    positions = np.random.default_rng(1).normal(size=(4, size))
    np.testing.assert_allclose(log_constant(target, case, positions), case.log_evidence, rtol=0, atol=1e-8)
