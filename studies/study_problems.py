"""Targets for the black box: exact log evidence, one known expectation, and no base.

At the end, targets on which the right verdict is not "ok".
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from scipy.stats import norm as normal

import thermocline as tc
from tests.problems import Problem, beta_bernoulli, bimodal, shells


class StudyProblem(NamedTuple):
    """A target and the truth; a start that tells nothing."""

    name: str
    target: tc.Target
    log_evidence: float
    function: Any  # of a draw, with a known mean
    mean: float


def without_base(problem: Problem) -> StudyProblem:
    return StudyProblem(problem.name, problem.target, problem.log_evidence, problem.function, problem.mean)


def eggbox_log_density(u):
    """Uniform prior on [0, 10 pi]^2 through a logistic map: half the modes on the edge run off to infinity."""
    x, y = 10 * jnp.pi * jax.nn.sigmoid(u)
    return (2 + jnp.cos(x / 2) * jnp.cos(y / 2)) ** 5 + jnp.sum(jax.nn.log_sigmoid(u) + jax.nn.log_sigmoid(-u))


def eggbox() -> StudyProblem:
    """Eighteen modes; integrated over y the likelihood has period 2 pi in x, so a tenth lies below pi."""
    target = tc.Target(eggbox_log_density, np.full(2, 0.1), None, lambda u: 10 * jnp.pi * jax.nn.sigmoid(u))
    return StudyProblem("eggbox", target, 235.855940, lambda x: x[0] < jnp.pi, 0.1)


def mixture_log_density(x, data):
    white = jnp.einsum("kij,kj->ki", data["whiteners"], x - data["means"])
    return jax.nn.logsumexp(data["log_heights"] - 0.5 * jnp.sum(white**2, axis=1))


def gaussian_mixture(
    name: str, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, constant: float
) -> StudyProblem:
    """Any Gaussian mixture; log Z is `constant`. The expectation is the mass beyond a plane before the first mean."""
    whiteners = np.linalg.inv(np.linalg.cholesky(covariances))
    log_determinants = np.sum(np.log(np.diagonal(whiteners, axis1=1, axis2=2)), axis=1)
    dimension = means.shape[1]
    log_heights = np.log(weights) + log_determinants - 0.5 * dimension * np.log(2 * np.pi) + constant
    nearest = means[1 + np.argmin(np.linalg.norm(means[1:] - means[0], axis=1))]
    normal_vector, midpoint = means[0] - nearest, (means[0] + nearest) / 2
    deviations = np.sqrt(np.einsum("i,kij,j->k", normal_vector, covariances, normal_vector))
    share = float(weights @ normal.cdf((means - midpoint) @ normal_vector / deviations))
    data = {"log_heights": log_heights, "means": means, "whiteners": whiteners}
    target = tc.Target(mixture_log_density, np.zeros(dimension), data)
    return StudyProblem(name, target, constant, lambda x: (x - midpoint) @ normal_vector > 0, share)


def two_components(dimension: int, weight: float, distance: float, ratio: float, constant: float) -> StudyProblem:
    """`weight` N(a, I) + (1 - `weight`) N(-a, `ratio`² I), with a of length `distance` in no special direction."""
    direction = np.random.default_rng(dimension).normal(size=dimension)
    centre = distance * direction / np.linalg.norm(direction)
    covariances = np.stack([np.eye(dimension), ratio**2 * np.eye(dimension)])
    weights = np.array([weight, 1 - weight])
    return gaussian_mixture(f"two {dimension}-D", weights, np.stack([centre, -centre]), covariances, constant)


FIVE_WEIGHTS = np.array([0.15, 0.35, 0.05, 0.25, 0.2])
FIVE_SCALES = np.array([1.0, 0.8, 0.9, 1.25, 1.1])  # a wider range hides the narrow ones from random starts in 20-D
FIVE_STRETCHES = np.array([1.0, 1.0, 3.0, 2.0, 2.0])  # longest axis against shortest
SEPARATION = 4.0  # deviations of both components, added, that fit between two means


def five_components(dimension: int, constant: float = -8.5) -> StudyProblem:
    """Unequal weights, scales and shapes, well apart; all drawn from a seed of their own."""
    generator = np.random.default_rng(dimension)
    covariances = np.stack(
        [random_covariance(generator, dimension, *shape) for shape in zip(FIVE_SCALES, FIVE_STRETCHES, strict=True)]
    )
    radius = 5.0
    means = radius * random_directions(generator, 5, dimension)
    while smallest_gap(means, covariances) < SEPARATION:
        radius *= 1.02
        means = radius * random_directions(generator, 5, dimension)
    return gaussian_mixture(f"five {dimension}-D", FIVE_WEIGHTS, means, covariances, constant)


def random_directions(generator: np.random.Generator, number: int, dimension: int) -> np.ndarray:
    normals = generator.normal(size=(number, dimension))
    return normals / np.linalg.norm(normals, axis=1, keepdims=True)


def random_covariance(generator: np.random.Generator, dimension: int, scale: float, stretch: float) -> np.ndarray:
    """Axes in random directions; their deviations spread geometrically about `scale`."""
    axes, _ = np.linalg.qr(generator.normal(size=(dimension, dimension)))
    deviations = scale * stretch ** np.linspace(-0.5, 0.5, dimension)
    return (axes * deviations**2) @ axes.T


def smallest_gap(means: np.ndarray, covariances: np.ndarray) -> float:
    """Over all pairs: the distance of the means against both deviations along it."""
    gaps = []
    for i in range(len(means)):
        for j in range(i):
            apart = means[i] - means[j]
            deviations = sum(np.sqrt(apart @ covariances[k] @ apart) for k in (i, j))
            gaps.append(apart @ apart / deviations)
    return min(gaps)


def banana_log_density(x):
    return norm.logpdf(x[0], 1.0, 3.0) + norm.logpdf(x[1], 0.3 * x[0] ** 2, 0.5) - 4.0


def banana() -> StudyProblem:
    """A Gaussian bent along a parabola, with one arm heavier than the other."""
    target = tc.Target(banana_log_density, np.full(2, 0.1))
    return StudyProblem("banana", target, -4.0, lambda x: x[1], 0.3 * (3.0**2 + 1.0**2))


def funnel_log_density(x):
    """Neal's funnel, its neck less narrow: a log variance and four variables with it."""
    return norm.logpdf(x[0], 0.0, 1.5) + jnp.sum(norm.logpdf(x[1:], 0.0, jnp.exp(x[0] / 2))) - 2.5


def funnel() -> StudyProblem:
    target = tc.Target(funnel_log_density, np.full(5, 0.1))
    return StudyProblem("funnel", target, -2.5, lambda x: x[0] < -1.5, float(normal.cdf(-1.0)))


SCHOOLS = {  # effects of coaching in eight schools and their standard errors (Rubin 1981)
    "effects": np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]),
    "errors": np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]),
}
MEAN_SCALE, SPREAD_SCALE = 5.0, 5.0  # mu ~ N(0, 5²), tau ~ half-Cauchy(5)


def hierarchy_log_prior(mu, log_tau):
    """Of the mean and of the log of the groups' spread, with the Jacobian of the logarithm."""
    log_cauchy = jnp.log(2 / (jnp.pi * SPREAD_SCALE)) - jnp.log1p((jnp.exp(log_tau) / SPREAD_SCALE) ** 2)
    return norm.logpdf(mu, 0.0, MEAN_SCALE) + log_cauchy + log_tau


def centred_log_density(position, data):
    """Unbounded, though proper: as tau → 0 the groups' density grows as tau⁻⁸ where all groups are equal."""
    mu, log_tau, theta = position["mu"], position["log_tau"], position["theta"]
    groups = jnp.sum(norm.logpdf(theta, mu, jnp.exp(log_tau)))
    return hierarchy_log_prior(mu, log_tau) + groups + jnp.sum(norm.logpdf(data["effects"], theta, data["errors"]))


def non_centred_log_density(position, data):
    mu, log_tau, offset = position["mu"], position["log_tau"], position["offset"]
    theta = mu + jnp.exp(log_tau) * offset
    groups = jnp.sum(norm.logpdf(offset))
    return hierarchy_log_prior(mu, log_tau) + groups + jnp.sum(norm.logpdf(data["effects"], theta, data["errors"]))


def hierarchy_truth() -> tuple[float, float]:
    """The log evidence and the mean of log tau: groups and mu in closed form, log tau by the trapezoidal rule.

    Given tau the effects are Gaussian with covariance diag(errors² + tau²) + 5² 11ᵀ.
    """
    log_tau = np.linspace(-40.0, 25.0, 6501)
    effects = SCHOOLS["effects"]
    variances = SCHOOLS["errors"] ** 2 + np.exp(2 * log_tau)[:, None]
    precision = np.sum(1 / variances, axis=1) + MEAN_SCALE**-2
    shift = np.sum(effects / variances, axis=1)
    log_likelihood = 0.5 * (shift**2 / precision - np.log(precision * MEAN_SCALE**2))
    log_likelihood -= 0.5 * np.sum(effects**2 / variances + np.log(2 * np.pi * variances), axis=1)
    log_prior = np.log(2 / (np.pi * SPREAD_SCALE)) - np.log1p((np.exp(log_tau) / SPREAD_SCALE) ** 2) + log_tau
    density = np.exp(log_likelihood + log_prior)
    mass = np.trapezoid(density, log_tau)
    return float(np.log(mass)), float(np.trapezoid(density * log_tau, log_tau) / mass)


def hierarchy(is_centred: bool) -> StudyProblem:
    """Eight groups, one mean, one spread: the same model in two coordinates."""
    group, density = ("theta", centred_log_density) if is_centred else ("offset", non_centred_log_density)
    start = {"mu": np.float64(0.1), "log_tau": np.float64(0.1), group: np.full(8, 0.1)}
    log_evidence, mean = hierarchy_truth()
    name = f"hierarchical ({'centred' if is_centred else 'non-centred'})"
    return StudyProblem(name, tc.Target(density, start, SCHOOLS), log_evidence, lambda p: p["log_tau"], mean)


STUDY: dict[str, Callable[[], StudyProblem]] = {
    "shells 2-D": lambda: without_base(shells(2)),
    "shells 5-D": lambda: without_base(shells(5)),
    "shells 10-D": lambda: without_base(shells(10)),
    "eggbox": eggbox,
    "two 2-D": lambda: two_components(2, 0.3, 5.0, 0.3, -5.0),
    "two 10-D": lambda: two_components(10, 0.6, 5.0, 0.5, 12.0),
    "two 20-D": lambda: two_components(20, 0.8, 6.0, 0.5, 37.2),
    "five 2-D": lambda: five_components(2),
    "five 10-D": lambda: five_components(10),
    "five 20-D": lambda: five_components(20),
    "beta-bernoulli": lambda: without_base(beta_bernoulli()),
    "banana": banana,
    "funnel": funnel,
    "hierarchical (non-centred)": lambda: hierarchy(False),
    "hierarchical (centred)": lambda: hierarchy(True),
}


FIFTY_DRAWS = {"num_warmup": 50, "num_draws": 50, "base": tc.Gaussian.diagonal(0.0, 10.0)}


class HardTarget(NamedTuple):
    """A target on which "ok" is wrong, and the options it is run with."""

    name: str
    target: tc.Target
    log_evidence: float  # NaN where the target is improper
    options: dict[str, Any]
    must_notice: bool  # False where whether the run can know is a matter of luck


def needle(name: str, dimension: int, scale: float, distance: float = 2.0) -> HardTarget:
    """Half the mass N(0, I), half within `scale` of a point inside it: hit by luck, or by nothing at all."""
    centre = np.zeros(dimension)
    centre[0] = distance
    covariances = np.stack([np.eye(dimension), scale**2 * np.eye(dimension)])
    mixture = gaussian_mixture(name, np.full(2, 0.5), np.stack([np.zeros(dimension), centre]), covariances, 0.0)
    start = tc.Target(mixture_log_density, np.full(dimension, 0.1), mixture.target.data)
    return HardTarget(name, start, 0.0, {}, False)


def improper(name: str, log_density: Callable[..., Any], start: Any) -> HardTarget:
    return HardTarget(name, tc.Target(log_density, start), float("nan"), {}, True)


def flat_direction_log_density(x):
    return norm.logpdf(x[0]) + 0.0 * x[1]


def heavy_tails_log_density(x):
    return -jnp.log1p(jnp.abs(x))


def unresolved_log_density(x):
    """N(1e8, 1e-9²): neighbouring doubles there are 15 deviations apart."""
    return norm.logpdf(x, 1e8, 1e-9)


HARD: dict[str, Callable[[], HardTarget]] = {
    "needle 2-D": lambda: needle("needle 2-D", 2, 3e-3),
    "needle 10-D": lambda: needle("needle 10-D", 10, 0.15),
    "needle 10-D, out of reach": lambda: needle("needle 10-D, out of reach", 10, 1e-3),
    "flat direction": lambda: improper("flat direction", flat_direction_log_density, np.full(2, 0.1)),
    "1/(1 + |x|)": lambda: improper("1/(1 + |x|)", heavy_tails_log_density, 0.1),
    "narrower than floats": lambda: HardTarget(
        "narrower than floats", tc.Target(unresolved_log_density, 0.1), 0.0, {}, True
    ),
    "50 draws": lambda: HardTarget("50 draws", bimodal().target, 0.0, FIFTY_DRAWS, False),
}
