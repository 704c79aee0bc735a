"""A random Boltzmann-machine relaxation (paper, appendix B): the density on which steps are timed."""

import numpy as np

import thermocline as tc
from experiments.boltzmann.machine import log_density, random_machine

MARGIN = 1e-3  # by which the relaxation's matrix is positive definite


def square_root(weights: np.ndarray) -> np.ndarray:
    """Q with Q Qᵀ = W + D, for a D that is a multiple of the identity.

    The paper finds D by a semidefinite programme; the cost of a step is the same for any D.
    """
    eigenvalues, vectors = np.linalg.eigh(weights)
    return vectors * np.sqrt(eigenvalues - eigenvalues[0] + MARGIN)


def relaxation(num_units: int = 28, seed: int = 0) -> tc.Target:
    """The relaxation of a random machine; it has as many dimensions as the machine has units."""
    weights, biases = random_machine(num_units, seed)
    return tc.Target(log_density, np.zeros(num_units), {"root": square_root(weights), "biases": biases})
