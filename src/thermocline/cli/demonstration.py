"""The demonstration: a curved mode and a round one, whose evidence and masses are known exactly."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from thermocline.target import Target

LOG_CONSTANT, SHARE = -7.0, 0.65  # of the evidence, and of the curved mode


def log_density(position: dict, data: dict) -> jnp.ndarray:
    """0.65 of a banana and 0.35 of a Gaussian far from it, both normalised, times exp(-7)."""
    x, y = position["x"], position["y"]
    banana = norm.logpdf(x, -1.0, 1.2) + norm.logpdf(y - 0.3 * x**2, 0.0, 0.5)
    blob = norm.logpdf(x, data["centre"][0], 0.4) + norm.logpdf(y, data["centre"][1], 0.6)
    return jnp.logaddexp(jnp.log(SHARE) + banana, jnp.log1p(-SHARE) + blob) + LOG_CONSTANT


def target() -> Target:
    return Target(log_density, {"x": 0.0, "y": 0.0}, {"centre": np.array([2.5, -6.0])})


def truth() -> str:
    """What the summary should say."""
    return (
        f"The truth: log Z = {LOG_CONSTANT:g}; a curved mode along y = 0.3 x² that holds {SHARE:.0%}, and a round one "
        f"at x = 2.5, y = -6 that holds {1 - SHARE:.0%}."
    )
