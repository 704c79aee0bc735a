"""Where the highest point is far from the mass, as in hierarchies of many effects: the base follows the mass."""

import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc

NUM_EFFECTS = 60


def hierarchy() -> tuple[tc.Target, float]:
    """Effects exp(t) z with standard normal z, seen in unit noise; log Z exactly, by quadrature over t.

    Large t with small z has a far higher density than where the posterior is, and hardly any mass.
    """
    y = np.random.default_rng(4).normal(size=NUM_EFFECTS) * np.hypot(1.0, 0.7) + 0.1

    def log_density(p: dict, y: jnp.ndarray) -> jnp.ndarray:
        squares = jnp.sum((y - jnp.exp(p["t"]) * p["z"]) ** 2) + jnp.sum(p["z"] ** 2) + p["t"] ** 2
        return -0.5 * squares - (NUM_EFFECTS + 0.5) * jnp.log(2 * jnp.pi)

    t = np.linspace(-8, 8, 8001)
    variance = np.exp(2 * t)[:, None] + 1
    joint = -0.5 * np.sum(y**2 / variance + np.log(2 * np.pi * variance), axis=1) - 0.5 * (t**2 + np.log(2 * np.pi))
    truth = float(np.logaddexp.reduce(joint) + np.log(t[1] - t[0]))
    return tc.Target(log_density, {"t": 0.0, "z": np.zeros(NUM_EFFECTS)}, y), truth


@pytest.mark.long
def test_a_hierarchy_whose_highest_point_is_far_from_its_mass():
    target, truth = hierarchy()
    result = tc.sample(target, seed=1, progress=False)
    assert result.verdict == "ok"
    assert abs(result.log_evidence.z_score(truth)) < 4
    assert result.log_evidence.standard_error < 0.05
