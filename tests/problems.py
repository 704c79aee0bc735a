"""Problems with exact answers, and a hand-given base for each."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln, gammaln
from jax.scipy.stats import norm

import thermocline as tc


class Problem(NamedTuple):
    """A target, a base that suits it, and the truth."""

    name: str
    target: tc.Target
    base: Any
    log_evidence: float
    function: Any = None  # of a draw, with a known mean
    mean: float = float("nan")
    num_steps: int = 8  # leapfrog steps of HMC that suit it


def bimodal_log_density(x):
    return jnp.logaddexp(jnp.log(0.6) + norm.logpdf(x, -8.0, 1.0), jnp.log(0.4) + norm.logpdf(x, 8.0, 2.0))


def bimodal() -> Problem:
    """The paper's section 7.1, with its moment-matched base and log zeta = log Z."""
    deviation = np.sqrt(0.6 * (1 + 64) + 0.4 * (4 + 64) - 1.6**2)
    base = tc.BaseFit(tc.Gaussian.diagonal(-1.6, deviation), 0.0)
    return Problem("bimodal", tc.Target(bimodal_log_density, 0.0), base, 0.0, lambda x: x < 0, 0.6)


def gaussian_log_density(x, data):
    centred = x - data["mean"]
    return data["constant"] - 0.5 * centred @ data["precision"] @ centred


def gaussian(dimension: int = 5, seed: int = 0) -> Problem:
    """A correlated Gaussian with a constant, from a base shifted and wider."""
    generator = np.random.default_rng(seed)
    root = generator.normal(size=(dimension, dimension)) / np.sqrt(dimension) + 0.5 * np.eye(dimension)
    covariance, mean, constant = root @ root.T, generator.normal(size=dimension), 12.5
    data = {"mean": mean, "precision": np.linalg.inv(covariance), "constant": constant}
    truth = constant + 0.5 * dimension * np.log(2 * np.pi) + 0.5 * np.linalg.slogdet(covariance)[1]
    base = tc.Gaussian.diagonal(mean + 0.5, 1.5 * np.sqrt(np.diag(covariance)))
    target = tc.Target(gaussian_log_density, np.zeros(dimension), data)
    return Problem(f"gaussian {dimension}-D", target, base, truth, lambda x: x[0], mean[0])


def mixture_log_density(x, data):
    squares = jnp.sum(((x - data["means"]) / data["scales"][:, None]) ** 2, axis=1)
    logs = data["log_weights"] - 0.5 * squares - x.size * jnp.log(data["scales"] * jnp.sqrt(2 * jnp.pi))
    return jax.nn.logsumexp(logs) + data["constant"]


def mixture(dimension: int = 2, *, weight: float = 0.7, distance: float = 6.0, ratio: float = 0.8) -> Problem:
    """Two spherical components of unequal weight and scale, from the Gaussian with their moments."""
    centre = np.zeros(dimension)
    centre[0] = distance / 2
    means, scales, weights = np.stack([centre, -centre]), np.array([1.0, ratio]), np.array([weight, 1 - weight])
    data = {"means": means, "scales": scales, "log_weights": np.log(weights), "constant": -3.0}
    mean = weights @ means
    covariance = np.eye(dimension) * (weights @ scales**2) + (means - mean).T @ np.diag(weights) @ (means - mean)
    base = tc.Gaussian.from_covariance(mean, covariance)
    target = tc.Target(mixture_log_density, np.zeros(dimension), data)
    return Problem(f"mixture {dimension}-D", target, base, -3.0, lambda x: x[0] > 0, _positive_share(data))


def _positive_share(data: dict[str, Any]) -> float:
    from scipy.stats import norm as normal

    return float(np.exp(data["log_weights"]) @ normal.cdf(data["means"][:, 0] / data["scales"]))


def logit_beta_log_density(a, b, u):
    """Beta(a, b) on the logit scale, with the Jacobian."""
    return a * jax.nn.log_sigmoid(u) + b * jax.nn.log_sigmoid(-u) - betaln(a, b)


def beta_prior(a: float, b: float) -> tc.Base:
    """Beta(a, b) as a base on the logit scale: log gamma draws keep the tails."""

    def draw(a, b, key):
        first, second = jax.random.split(key)
        return jax.random.loggamma(first, a) - jax.random.loggamma(second, b)

    partial = jax.tree_util.Partial
    return tc.Base(
        partial(logit_beta_log_density, np.float64(a), np.float64(b)), partial(draw, np.float64(a), np.float64(b))
    )


def bernoulli_log_density(u, data):
    """Beta prior and one given sequence of `n` flips with `k` ones."""
    likelihood = data["k"] * jax.nn.log_sigmoid(u) + (data["n"] - data["k"]) * jax.nn.log_sigmoid(-u)
    return logit_beta_log_density(data["a"], data["b"], u) + likelihood + data["constant"]


def beta_bernoulli(a: float = 2.0, b: float = 5.0) -> Problem:
    """50 of 100; the prior is the base."""
    truths = {(2, 5): -71.445086, (10, 10): -70.221009, (1, 1): -71.398962, (30, 30): -69.807737}
    data = {"n": 100.0, "k": 50.0, "a": a, "b": b, "constant": 0.0}
    target = tc.Target(bernoulli_log_density, 0.1, data, jax.nn.sigmoid)
    return Problem(
        f"beta-bernoulli({a:g}, {b:g})", target, beta_prior(a, b), truths[(a, b)], lambda p: p, (a + 50) / (a + b + 100)
    )


BETA_BINOMIAL_PATH = {0.1: -11.500454, 0.25: -13.420335, 0.5: -14.958572, 0.75: -16.097643, 1.0: -17.108582}


def beta_binomial() -> Problem:
    """(n, k, a, b) = (550, 115, 9, 0.75): a prior far from its posterior, as base."""
    choose = float(gammaln(551.0) - gammaln(116.0) - gammaln(436.0))
    choose = float(np.sum(np.log(np.arange(436, 551))) - np.sum(np.log(np.arange(1, 116)))) if choose else 0.0
    data = {"n": 550.0, "k": 115.0, "a": 9.0, "b": 0.75, "constant": choose}
    target = tc.Target(bernoulli_log_density, 0.1, data, jax.nn.sigmoid)
    return Problem("beta-binomial", target, beta_prior(9.0, 0.75), -17.108582, lambda p: p, 124 / 559.75)


def half_gaussian_log_density(x):
    return jnp.where(x > 0, norm.logpdf(x), -jnp.inf)


def half_gaussian() -> Problem:
    """The base's own density cut to x > 0: the target is -inf on half the line."""
    target = tc.Target(half_gaussian_log_density, 1.0)
    return Problem(
        "half-gaussian", target, tc.Gaussian.diagonal(0.0, 1.0), float(np.log(0.5)), lambda x: x, np.sqrt(2 / np.pi)
    )


def shells_log_density(x):
    """Two shells of radius 2 and width 0.1 under a uniform prior on [-6, 6]^D, through a logistic map."""
    inside = 12 * jax.nn.sigmoid(x) - 6
    offset = jnp.zeros(x.size).at[0].set(3.5)
    radii = jnp.stack([jnp.linalg.norm(inside - offset), jnp.linalg.norm(inside + offset)])
    jacobian = jnp.sum(jax.nn.log_sigmoid(x) + jax.nn.log_sigmoid(-x))
    return jax.nn.logsumexp(norm.logpdf(radii, 2.0, 0.1)) + jacobian


def shells(dimension: int = 2) -> Problem:
    """Gaussian shells from a broad base."""
    truths = {2: -1.745642, 5: -5.673601, 10: -14.590491}
    target = tc.Target(shells_log_density, np.full(dimension, 0.1), None, lambda x: 12 * jax.nn.sigmoid(x) - 6)
    return Problem(
        f"shells {dimension}-D",
        target,
        tc.Gaussian.diagonal(np.zeros(dimension), 1.0),
        truths[dimension],
        lambda x: x[0] > 0,
        0.5,
        16,
    )


PROBLEMS = {
    "bimodal": bimodal,
    "gaussian 5-D": gaussian,
    "mixture 2-D": mixture,
    "mixture 10-D": lambda: mixture(10, weight=0.6, distance=5.0, ratio=1.0),
    "beta-bernoulli": beta_bernoulli,
    "beta-binomial": beta_binomial,
    "half-gaussian": half_gaussian,
    "shells 2-D": shells,
}
