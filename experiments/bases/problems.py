"""Four targets whose log Z is known and which can be sampled exactly."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from scipy import stats
from scipy.special import log_ndtr

import thermocline as tc


class Problem(NamedTuple):
    """A target that can also be sampled exactly: `draws(generator, number)` are positions, stacked."""

    name: str
    target: tc.Target
    log_evidence: float
    draws: Callable[[np.random.Generator, int], Any]


PAIR_WEIGHTS, PAIR_SCALES, PAIR_DIMENSION, PAIR_CONSTANT = np.array([0.6, 0.4]), np.array([1.0, 0.5]), 10, 12.0
PAIR_MEANS = np.outer([5.0, -5.0], np.ones(PAIR_DIMENSION) / PAIR_DIMENSION**0.5)


def pair_log_density(x):
    each = jnp.sum(norm.logpdf(x, PAIR_MEANS, PAIR_SCALES[:, None]), axis=1)
    return jax.nn.logsumexp(each, b=PAIR_WEIGHTS) + PAIR_CONSTANT


def pair_draws(generator: np.random.Generator, number: int) -> np.ndarray:
    which = generator.choice(2, size=number, p=PAIR_WEIGHTS)
    return PAIR_MEANS[which] + PAIR_SCALES[which, None] * generator.normal(size=(number, PAIR_DIMENSION))


def banana_log_density(x):
    """A Gaussian bent along a parabola, one arm heavier than the other."""
    return norm.logpdf(x[0], 1.0, 3.0) + norm.logpdf(x[1], 0.3 * x[0] ** 2, 0.5) - 4.0


def banana_draws(generator: np.random.Generator, number: int) -> np.ndarray:
    first = generator.normal(1.0, 3.0, number)
    return np.stack([first, generator.normal(0.3 * first**2, 0.5)], axis=1)


EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])  # of coaching in eight schools (Rubin 1981)
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
MEAN_SCALE, SPREAD_SCALE = 5.0, 5.0  # mu ~ N(0, 5²), tau ~ half-Cauchy(5)
LOG_TAU = np.linspace(-25.0, 25.0, 5001)  # for the trapezoidal rule


def schools_log_density(position):
    """Centred: unbounded, though proper, as tau goes to 0 and all groups to one value."""
    mu, log_tau, theta = position["mu"], position["log_tau"], position["theta"]
    log_prior = norm.logpdf(mu, 0.0, MEAN_SCALE) + jnp.log(2 / (jnp.pi * SPREAD_SCALE)) + log_tau
    log_prior -= jnp.log1p((jnp.exp(log_tau) / SPREAD_SCALE) ** 2)
    return log_prior + jnp.sum(norm.logpdf(theta, mu, jnp.exp(log_tau)) + norm.logpdf(EFFECTS, theta, ERRORS))


def schools_given_tau(log_tau: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log joint density of data and log tau, all else integrated out; mean and precision of mu given tau."""
    variances = ERRORS**2 + np.exp(2 * log_tau)[:, None]
    precision = np.sum(1 / variances, axis=1) + MEAN_SCALE**-2
    mean = np.sum(EFFECTS / variances, axis=1) / precision
    log_joint = 0.5 * (mean**2 * precision - np.log(precision * MEAN_SCALE**2))
    log_joint -= 0.5 * np.sum(EFFECTS**2 / variances + np.log(2 * np.pi * variances), axis=1)
    log_joint += np.log(2 / (np.pi * SPREAD_SCALE)) - np.log1p((np.exp(log_tau) / SPREAD_SCALE) ** 2) + log_tau
    return log_joint, mean, precision


def schools_draws(generator: np.random.Generator, number: int) -> dict[str, np.ndarray]:
    """Log tau by inverting its distribution on the grid, then mu and the groups, which are Gaussian."""
    share = np.cumsum(np.exp(schools_given_tau(LOG_TAU)[0]))
    log_tau = np.interp(generator.uniform(size=number), share / share[-1], LOG_TAU)
    _, mean, precision = schools_given_tau(log_tau)
    mu = generator.normal(mean, precision**-0.5)
    pull = np.exp(-2 * log_tau)[:, None]  # of mu on a group, against that of its datum
    variance = 1 / (ERRORS**-2 + pull)
    theta = generator.normal(variance * (EFFECTS / ERRORS**2 + mu[:, None] * pull), variance**0.5)
    return {"mu": mu, "log_tau": log_tau, "theta": theta}


PROBIT_WIDTH, PROBIT_DIMENSION, PROBIT_AXIS = 3.0, 3, np.linspace(-18.0, 18.0, 97)  # for the trapezoidal rule
PROBIT_X = np.random.default_rng(22).normal(size=(12, PROBIT_DIMENSION))
PROBIT_Y = np.sign(PROBIT_X @ np.array([2.0, -1.0, 0.5]) + np.random.default_rng(23).normal(size=12))


def probit_factors(weights):
    """A regression on twelve data: skewed, for most of them are told apart by a plane."""
    return norm.logcdf(PROBIT_Y * (PROBIT_X @ weights))


def probit_log_density(weights):
    return jnp.sum(probit_factors(weights)) + jnp.sum(norm.logpdf(weights, 0.0, PROBIT_WIDTH))


def probit_log_likelihoods(weights: np.ndarray) -> np.ndarray:
    """Of many weights, one a row."""
    return log_ndtr(PROBIT_Y * (weights @ PROBIT_X.T)).sum(axis=1)


def probit_evidence() -> float:
    grid = np.stack(np.meshgrid(*[PROBIT_AXIS] * PROBIT_DIMENSION, indexing="ij"), axis=-1)
    sums = [np.exp(probit_log_likelihoods(plane.reshape(-1, PROBIT_DIMENSION))) for plane in grid]
    prior = [stats.norm.pdf(plane, 0, PROBIT_WIDTH).prod(axis=-1).ravel() for plane in grid]
    steps = (PROBIT_AXIS[1] - PROBIT_AXIS[0]) ** PROBIT_DIMENSION
    return float(np.log(sum(likelihood @ own for likelihood, own in zip(sums, prior, strict=True)) * steps))


def probit_draws(generator: np.random.Generator, number: int) -> np.ndarray:
    """Draws of the prior, each kept with the probability of the data: no likelihood is above 1."""
    kept = np.zeros((0, PROBIT_DIMENSION))
    while len(kept) < number:
        draws = PROBIT_WIDTH * generator.normal(size=(100_000, PROBIT_DIMENSION))
        is_kept = np.log(generator.uniform(size=len(draws))) < probit_log_likelihoods(draws)
        kept = np.concatenate([kept, draws[is_kept]])
    return kept[:number]


def problems() -> list[Problem]:
    start = {"mu": np.float64(0.1), "log_tau": np.float64(0.1), "theta": np.full(8, 0.1)}
    schools_evidence = float(np.log(np.trapezoid(np.exp(schools_given_tau(LOG_TAU)[0]), LOG_TAU)))
    pair = tc.Target(pair_log_density, np.zeros(PAIR_DIMENSION))
    origin = np.zeros(PROBIT_DIMENSION)
    prior = tc.Gaussian.diagonal(origin, PROBIT_WIDTH)
    probit = tc.Target(probit_log_density, origin, prior=prior, factors=probit_factors)
    return [
        Problem("pair, 10-D", pair, PAIR_CONSTANT, pair_draws),
        Problem("banana, 2-D", tc.Target(banana_log_density, np.full(2, 0.1)), -4.0, banana_draws),
        Problem("probit, 3-D", probit, probit_evidence(), probit_draws),
        Problem("eight schools, centred", tc.Target(schools_log_density, start), schools_evidence, schools_draws),
    ]
