"""Cells of the calibration that are about bases and shapes: a good base, a bad one, one that misses a thin region;
heavy tails, a change point, a spike on a tail. All with the stopping rule on, and exact evidence.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import cauchy
from scipy.stats import norm as normal

import thermocline as tc
from studies.study_problems import StudyProblem, banana, gaussian_mixture

TIMES = np.linspace(0.025, 0.975, 20)
SHARPNESS, NOISE, PRIOR = 40.0, 0.5, 2.0


class CellProblem(NamedTuple):
    """A problem, and what `sample` is told besides."""

    problem: StudyProblem
    options: dict[str, Any]


def two_in_six() -> StudyProblem:
    """Unequal weights and shapes in six dimensions, near enough to overlap."""
    means = np.array([[1.0, 0.0, -1.0, 0.5, 0.0, 2.0], [-1.5, 1.0, 0.0, -0.5, 1.0, -1.0]])
    covariances = np.stack([np.diag([1.0, 0.5, 2.0, 1.0, 0.3, 1.0]), 0.6 * np.eye(6) + 0.2])
    return gaussian_mixture("two 6-D", np.array([0.65, 0.35]), means, covariances, -3.0)


def with_gaussian(scale: float, shift: float) -> CellProblem:
    """From the Gaussian of the target's moments, so many times as wide and moved by so many deviations."""
    problem = two_in_six()
    data = problem.target.data
    weights = np.array([0.65, 0.35])
    means = np.asarray(data["means"])
    mean = weights @ means
    inner = np.stack([np.linalg.inv(whitener.T @ whitener) for whitener in np.asarray(data["whiteners"])])
    covariance = np.einsum("k,kij->ij", weights, inner) + (weights * (means - mean).T) @ (means - mean)
    root = np.linalg.cholesky(covariance)
    base = tc.Gaussian(mean + shift * np.sqrt(np.diag(covariance)), scale * root)
    return CellProblem(problem, {"base": base})


def thin_base() -> CellProblem:
    """A banana from the Gaussian of its curvature, which reaches neither end of the arms."""
    return CellProblem(banana(), {"base": tc.fit_laplace})


def cauchys_log_density(x):
    return jnp.sum(cauchy.logpdf(x, jnp.array([0.0, 1.0, -3.0]), jnp.array([1.0, 0.1, 5.0]))) + 2.5


def cauchys() -> CellProblem:
    """Independent Cauchys of unlike scales."""
    target = tc.Target(cauchys_log_density, np.full(3, 0.1))
    return CellProblem(StudyProblem("cauchys", target, 2.5, lambda x: x[0] > 1.0, 0.25), {})


def change_series() -> np.ndarray:
    """Twenty values whose mean changes early in the second half."""
    return 1.0 * (TIMES > 0.62) + NOISE * np.random.default_rng(11).normal(size=TIMES.size)


def change_log_density(position, data):
    """The time of the change is uniform, written by its logit; the two means have a normal prior each."""
    time = jax.nn.sigmoid(position[0])
    after = jax.nn.sigmoid(SHARPNESS * (TIMES - time))
    expected = position[1] * (1 - after) + position[2] * after
    prior = jax.nn.log_sigmoid(position[0]) + jax.nn.log_sigmoid(-position[0])
    prior += jnp.sum(jax.scipy.stats.norm.logpdf(position[1:], 0.0, PRIOR))
    return prior + jnp.sum(jax.scipy.stats.norm.logpdf(data, expected, NOISE))


def change_point() -> CellProblem:
    """A change that is nearly sharp. Given its time the model is linear and Gaussian; the time by quadrature."""
    series, grid = change_series(), np.linspace(0, 1, 4001)
    log_likelihood = np.empty(grid.size)
    for i, time in enumerate(grid):
        after = 1 / (1 + np.exp(-SHARPNESS * (TIMES - time)))
        design = np.stack([1 - after, after], axis=1)
        covariance = PRIOR**2 * design @ design.T + NOISE**2 * np.eye(TIMES.size)
        sign_and_log = np.linalg.slogdet(2 * np.pi * covariance)
        log_likelihood[i] = -0.5 * (series @ np.linalg.solve(covariance, series) + sign_and_log[1])
    density = np.exp(log_likelihood - log_likelihood.max())
    mass = np.trapezoid(density, grid)
    late = np.trapezoid(density * (grid > 0.6), grid) / mass
    target = tc.Target(change_log_density, np.full(3, 0.1), series)
    log_evidence = float(np.log(mass) + log_likelihood.max())
    return CellProblem(StudyProblem("change point", target, log_evidence, lambda x: x[0] > np.log(1.5), late), {})


def spike_on_tail() -> CellProblem:
    """A tenth of the mass, twenty times as narrow as the rest, three and a half deviations out."""
    means = np.array([[0.0, 0.0], [3.5, 0.0]])
    covariances = np.stack([np.eye(2), 0.05**2 * np.eye(2)])
    problem = gaussian_mixture("spike on a tail", np.array([0.9, 0.1]), means, covariances, 1.5)
    far = float(0.9 * normal.sf(3.0) + 0.1 * normal.sf(-10.0))
    return CellProblem(problem._replace(function=lambda x: x[0] > 3.0, mean=far), {})


CELLS: dict[str, Callable[[], CellProblem]] = {
    "good base": lambda: with_gaussian(1.05, 0.0),
    "bad base": lambda: with_gaussian(2.5, 1.0),
    "thin base": thin_base,
    "cauchys": cauchys,
    "change point": change_point,
    "spike on a tail": spike_on_tail,
}
