"""`fit_local_mixture`: weights by mass, log zeta of the target, or the paper's bound."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc

WIDTHS = np.array([1.0, 0.3])
MASSES = np.array([0.35, 0.65])
PLACES = np.array([[-4.0, 1.0, 0.0], [3.0, -2.0, 5.0]])


def log_density(x):
    """Two round Gaussians of unequal mass and width, with log Z = 2.5."""
    squares = jnp.sum((x - PLACES) ** 2, axis=1) / WIDTHS**2
    return 2.5 + jax.nn.logsumexp(np.log(MASSES) - 0.5 * squares - 3 * np.log(WIDTHS) - 1.5 * np.log(2 * np.pi))


@pytest.mark.parametrize("importance", [True, False])
def test_masses_and_log_zeta_of_two_gaussians(importance):
    fit = tc.fit_local_mixture(tc.Target(log_density, np.zeros(3)), seed=1, importance=importance)
    order = np.argsort(fit.base.centres()[:2, 0])
    weights = np.exp(np.asarray(fit.base.log_weights)[:2][order])
    np.testing.assert_allclose(fit.base.centres()[:2][order], PLACES, atol=1e-3)
    np.testing.assert_allclose(weights, MASSES, atol=4 * np.sqrt(MASSES.prod() / 4096) if importance else 1e-3)
    assert fit.log_zeta == pytest.approx(2.5, abs=0.01)
    assert fit.log_zeta_is == ("estimate" if importance else "lower bound")
