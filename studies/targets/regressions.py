"""Conjugate linear regressions, their covariates in odd units; the noise known, or one more parameter."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jax.scipy.stats import norm
from scipy.special import gammaln as log_gamma

from studies.targets.record import Core, far_start, one_mode, under_map

NUMBERS_OF_COVARIATES = (2, 4, 8, 15, 30, 59)


def _known_noise(position, own):
    """Prior N(0, prior²) of coefficients, likelihood N(y; X b, noise²), all constants kept."""
    log_prior = jnp.sum(norm.logpdf(position, 0.0, own["prior"]))
    return log_prior + jnp.sum(norm.logpdf(own["y"], own["covariates"] @ position, own["noise"]))


def _unknown_noise(position, own):
    """Coefficients and the log variance s of the noise: s² inverse gamma, with its Jacobian; prior N(0, s² prior²)."""
    coefficients, log_variance = position[:-1], position[-1]
    noise, shape, rate = jnp.exp(0.5 * log_variance), own["shape"], own["rate"]
    log_prior = shape * jnp.log(rate) - gammaln(shape) - shape * log_variance - rate * jnp.exp(-log_variance)
    log_prior += jnp.sum(norm.logpdf(coefficients, 0.0, noise * own["prior"]))
    return log_prior + jnp.sum(norm.logpdf(own["y"], own["covariates"] @ coefficients, noise))


known_noise_log_density = under_map(_known_noise)
unknown_noise_log_density = under_map(_unknown_noise)


def random_data(generator: np.random.Generator) -> dict[str, Any]:
    """Correlated covariates, each in a unit of its own, and what they and some noise gave."""
    number = int(generator.choice(NUMBERS_OF_COVARIATES))
    units = 10 ** generator.uniform(-0.5, 0.5, number)
    common = generator.normal(size=(2 * number + 8, 1))
    covariates = units * (generator.uniform(0, 1) * common + generator.normal(size=(2 * number + 8, number)))
    noise, prior = np.exp(generator.uniform(-1, 1)), generator.uniform(1, 5) / units
    coefficients = prior * generator.normal(size=number)
    y = covariates @ coefficients + noise * generator.normal(size=len(covariates))
    return {"covariates": covariates, "y": y, "noise": np.float64(noise), "prior": prior}


def posterior(covariates: np.ndarray, y: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Of unit noise: precision and mean, the residual y'y - m'P m, and -½ log det(P diag(prior²)).

    By a Cholesky factor of the precision in the prior's units, whose determinant is that ratio itself.
    """
    scaled = covariates * prior
    factor = np.linalg.cholesky(scaled.T @ scaled + np.eye(len(prior)))
    whitened = np.linalg.solve(factor, scaled.T @ y)
    mean = prior * np.linalg.solve(factor.T, whitened)
    log_determinant = -float(np.sum(np.log(np.diagonal(factor))))
    return factor.T / prior, mean, float(y @ y - whitened @ whitened), log_determinant


def known_noise(generator: np.random.Generator) -> Core:
    """Log evidence: -n/2 log 2 pi noise² - ½ log det(P S) - ½ residual / noise²."""
    own = random_data(generator)
    noise, y = float(own["noise"]), own["y"]
    whitener, mean, residual, log_ratio = posterior(own["covariates"] / noise, y / noise, own["prior"])
    factor = np.linalg.inv(whitener)

    def exact_draws(generator: np.random.Generator, number: int) -> np.ndarray:
        return mean + generator.normal(size=(number, len(mean))) @ factor.T

    log_evidence = -0.5 * len(y) * np.log(2 * np.pi * noise**2) + log_ratio - 0.5 * residual
    modes = one_mode(mean, whitener)
    return Core(known_noise_log_density, own, log_evidence, far_start(generator, exact_draws), modes, exact_draws)


def unknown_noise(generator: np.random.Generator) -> Core:
    """Log evidence of the normal-inverse-gamma model; coefficients given the variance, and the variance, are drawn."""
    own = random_data(generator)
    own |= {"shape": np.float64(generator.uniform(1, 4)), "rate": own.pop("noise") * generator.uniform(0.5, 2)}
    whitener, mean, residual, log_ratio = posterior(own["covariates"], own["y"], own["prior"])
    factor, number_of_data = np.linalg.inv(whitener), len(own["y"])
    shape, rate = own["shape"] + 0.5 * number_of_data, own["rate"] + 0.5 * residual

    def exact_draws(generator: np.random.Generator, number: int) -> np.ndarray:
        variance = rate / generator.gamma(shape, size=(number, 1))
        noise = np.sqrt(variance) * generator.normal(size=(number, len(mean)))
        return np.concatenate([mean + noise @ factor.T, np.log(variance)], axis=1)

    log_evidence = own["shape"] * np.log(own["rate"]) - shape * np.log(rate) + log_gamma(shape)
    log_evidence += log_ratio - log_gamma(own["shape"]) - 0.5 * number_of_data * np.log(2 * np.pi)
    exponent = shape + 0.5 * len(mean)  # of the joint density in the log variance
    log_variance = np.log(rate / exponent)
    both = np.zeros((len(mean) + 1, len(mean) + 1))
    both[:-1, :-1], both[-1, -1] = whitener * np.exp(-0.5 * log_variance), np.sqrt(exponent)
    modes, start = one_mode(np.append(mean, log_variance), both), far_start(generator, exact_draws)
    return Core(unknown_noise_log_density, own, float(log_evidence), start, modes, exact_draws)


def regression(generator: np.random.Generator) -> Core:
    return known_noise(generator) if generator.random() < 0.5 else unknown_noise(generator)
