"""The paper's base for a relaxation: mean-field fits of the discrete machine, mixed, and their moments matched."""

import numpy as np
from scipy.special import softmax, xlogy

import thermocline as tc
from experiments.boltzmann.machine import Machine, Moments, Relaxation

NUM_STARTS = 100
START_SCALE = 0.5  # deviation of the fields from which the fits start
MOST_SWEEPS, TOLERANCE = 2000, 1e-10
SAME = 1e-4  # fits nearer to each other than this are one


def objective(machine: Machine, means: np.ndarray) -> np.ndarray:
    """The variational bound on log Z_B of independent units with these means, one a row."""
    weights, biases = machine
    entropy = -np.sum(xlogy((1 + means) / 2, (1 + means) / 2) + xlogy((1 - means) / 2, (1 - means) / 2), axis=1)
    return 0.5 * np.sum(means @ weights * means, axis=1) + means @ biases + entropy


def fixed_points(machine: Machine, means: np.ndarray) -> np.ndarray:
    """Solutions of m = tanh(W m + b), one a row, unit by unit: no update lowers the bound, as all at once might."""
    weights, biases = machine
    means = means.copy()
    for _ in range(MOST_SWEEPS):
        before = means.copy()
        for unit in range(len(biases)):
            means[:, unit] = np.tanh(means @ weights[unit] + biases[unit])
        if np.max(np.abs(means - before)) < TOLERANCE:
            break
    return means


def distinct(rows: np.ndarray) -> np.ndarray:
    """The rows, without those that lie within `SAME` of an earlier one."""
    kept = rows[:1]
    for row in rows[1:]:
        if np.min(np.linalg.norm(kept - row, axis=1)) > SAME:
            kept = np.concatenate([kept, row[None]])
    return kept


def mean_field_mixture(machine: Machine, seed: int, *, num_starts: int = NUM_STARTS) -> tuple[Moments, int]:
    """Moments of the mixture of distinct fits, weighted by their bounds (eq. variational-mixture-approx), and how many.

    Its log normalising constant is log ζ of the machine: no bound, once components overlap.
    """
    start = np.tanh(START_SCALE * np.random.default_rng(seed).normal(size=(num_starts, len(machine.biases))))
    means = distinct(fixed_points(machine, start))
    log_weights = objective(machine, means)
    share = softmax(log_weights)
    second = (means.T * share) @ means
    np.fill_diagonal(second, 1.0)  # since s² = 1: within a component units vary independently by 1 - m²
    return Moments(float(np.logaddexp.reduce(log_weights)), share @ means, second), len(means)


def matched_base(relaxation: Relaxation, mixture: Moments) -> tc.BaseFit:
    """The Gaussian of x with the mixture's mean and covariance, and its log ζ (section 6)."""
    moments = relaxation.moments(mixture)
    return tc.BaseFit(tc.Gaussian.from_covariance(moments.mean, moments.covariance), moments.log_evidence)
