"""A random Boltzmann-machine relaxation (paper, appendix B): the density on which steps are timed."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import ortho_group

import thermocline as tc

EIGENVALUE_SCALE, EIGENVALUE_SLOPE, BIAS_SCALE = 6.0, 2.0, 0.1  # s_1, s_2 and the deviation of b in the paper
MARGIN = 1e-3  # by which the relaxation's matrix is positive definite


def random_machine(num_units: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights with a zero diagonal and eigenvalues crowded near plus and minus six, and small biases."""
    generator = np.random.default_rng(seed)
    rotation = ortho_group.rvs(num_units, random_state=generator)
    eigenvalues = EIGENVALUE_SCALE * np.tanh(EIGENVALUE_SLOPE * generator.normal(size=num_units))
    weights = (rotation * eigenvalues) @ rotation.T
    np.fill_diagonal(weights, 0.0)
    return weights, BIAS_SCALE * generator.normal(size=num_units)


def square_root(weights: np.ndarray) -> np.ndarray:
    """Q with Q Qᵀ = W + D, for a D that is a multiple of the identity.

    The paper finds D by a semidefinite programme; the cost of a step is the same for any D.
    """
    eigenvalues, vectors = np.linalg.eigh(weights)
    return vectors * np.sqrt(eigenvalues - eigenvalues[0] + MARGIN)


def log_density(position: jax.Array, data: dict[str, jax.Array]) -> jax.Array:
    """-phi(x) of the paper: a Gaussian times one hyperbolic cosine a unit."""
    activation = data["root"] @ position + data["biases"]
    log_cosh = jnp.logaddexp(activation, -activation) - jnp.log(2.0)
    return jnp.sum(log_cosh) - 0.5 * position @ position


def relaxation(num_units: int = 28, seed: int = 0) -> tc.Target:
    """The relaxation of a random machine; it has as many dimensions as the machine has units."""
    weights, biases = random_machine(num_units, seed)
    return tc.Target(log_density, np.zeros(num_units), {"root": square_root(weights), "biases": biases})
