"""The paper's mixture of two Gaussians, its base, and both densities on grids."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

import thermocline as tc

WEIGHTS, MEANS, DEVIATIONS = np.array([0.6, 0.4]), np.array([-8.0, 8.0]), np.array([1.0, 2.0])
BASE_MEAN = float(WEIGHTS @ MEANS)
BASE_DEVIATION = float(np.sqrt(WEIGHTS @ (DEVIATIONS**2 + MEANS**2) - BASE_MEAN**2))
LEFT_MASS, LOG_EVIDENCE = 0.6, 0.0


def log_density(x: jax.Array) -> jax.Array:
    """The normalised mixture of two Gaussians."""
    return jax.nn.logsumexp(jnp.log(WEIGHTS) + norm.logpdf(x, MEANS, DEVIATIONS))


def is_left(x: jax.Array) -> jax.Array:
    """Whether a draw belongs to the left mode."""
    return x < 0


def target() -> tc.Target:
    return tc.Target(log_density, 0.0)


def base_fit(mean: float = BASE_MEAN, deviation: float = BASE_DEVIATION, error: float = 0.0) -> tc.BaseFit:
    """A Gaussian base, by default with the target's moments; log zeta is log Z and an error."""
    return tc.BaseFit(tc.Gaussian.diagonal(mean, deviation), LOG_EVIDENCE + error)
