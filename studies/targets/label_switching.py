"""Posteriors of small Gaussian mixture models: K! modes that differ only in the names of the components.

Evidence and exact draws by enumeration of all K^n allocations of the n data to the K components of equal weight;
given an allocation everything is conjugate. Variances are known, or, as often, parameters too (normal-inverse-gamma).
"""

import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jax.scipy.stats import norm
from scipy.special import gammaln as log_gamma

from studies.targets.record import Core, Modes, far_start, gaussian_log_volume, under_map

NUMBERS_OF_DATA = {2: 12, 3: 9}  # by K: at most 2^12 and 3^9 allocations
PRIOR_WEIGHT = 0.1  # of the prior mean, in data, where variances are parameters


def _log_likelihood(own, means, deviations):
    parts = norm.logpdf(own["y"][:, None], means, deviations) - jnp.log(means.size)
    return jnp.sum(jax.nn.logsumexp(parts, axis=1))


def _means(position, own):
    """Means of prior N(centre, prior²), the variance known."""
    log_prior = jnp.sum(norm.logpdf(position, own["centre"], own["prior"]))
    return log_prior + _log_likelihood(own, position, own["noise"])


def _means_and_variances(position, own):
    """Means and log variances; each variance inverse gamma, each mean N(centre, variance / PRIOR_WEIGHT) given it."""
    means, log_variances = jnp.split(position, 2)
    deviations, shape, rate = jnp.exp(0.5 * log_variances), own["shape"], own["rate"]
    log_prior = shape * jnp.log(rate) - gammaln(shape) - shape * log_variances - rate * jnp.exp(-log_variances)
    log_prior += norm.logpdf(means, own["centre"], deviations / jnp.sqrt(PRIOR_WEIGHT))
    return jnp.sum(log_prior) + _log_likelihood(own, means, deviations)


means_log_density = under_map(_means)
means_and_variances_log_density = under_map(_means_and_variances)


class Cluster(NamedTuple):
    """Posteriors of components given which data are theirs; leading axes are any."""

    mean: np.ndarray
    precision: np.ndarray  # of the mean, in units of the variance where that is a parameter
    shape: np.ndarray
    rate: np.ndarray
    log_evidence: np.ndarray


def clusters_of(own: dict[str, Any], members: np.ndarray) -> Cluster:
    """Members (..., n) as 0 and 1."""
    y = own["y"] - own["centre"]
    count, total, squares = members.sum(-1), members @ y, members @ y**2
    if "noise" in own:
        precision = own["prior"] ** -2 + count / own["noise"] ** 2
        mean = total / own["noise"] ** 2 / precision
        log_evidence = -0.5 * count * np.log(2 * np.pi * own["noise"] ** 2) - 0.5 * squares / own["noise"] ** 2
        log_evidence += 0.5 * mean**2 * precision - 0.5 * np.log(precision * own["prior"] ** 2)
        return Cluster(own["centre"] + mean, precision, np.zeros(()), np.zeros(()), log_evidence)
    precision = PRIOR_WEIGHT + count
    mean, shape = total / precision, own["shape"] + 0.5 * count
    rate = own["rate"] + 0.5 * (squares - precision * mean**2)
    log_evidence = own["shape"] * np.log(own["rate"]) - shape * np.log(rate) + log_gamma(shape)
    log_evidence += 0.5 * np.log(PRIOR_WEIGHT / precision) - 0.5 * count * np.log(2 * np.pi) - log_gamma(own["shape"])
    return Cluster(own["centre"] + mean, precision, shape, rate, log_evidence)


def draw_parameters(generator: np.random.Generator, clusters: Cluster, has_variances: bool) -> np.ndarray:
    """A row for each row of clusters: means, then log variances where these are parameters."""
    noise = generator.normal(size=clusters.mean.shape) / np.sqrt(clusters.precision)
    if not has_variances:
        return clusters.mean + noise
    variances = clusters.rate / generator.gamma(clusters.shape)
    return np.concatenate([clusters.mean + np.sqrt(variances) * noise, np.log(variances)], axis=-1)


def symmetric_modes(clusters: Cluster, has_variances: bool) -> Modes:
    """All orders of the clusters, each with an equal share; centres are the modes given the allocation.

    Smaller modes, of other allocations, are counted with the symmetric mode of their names.
    """
    number = len(clusters.mean)
    centre, deviations = clusters.mean, 1 / np.sqrt(clusters.precision)
    parts = [(centre, deviations)]
    if has_variances:
        variances, exponent = clusters.rate / (clusters.shape + 0.5), clusters.shape + 0.5
        parts = [(centre, deviations * np.sqrt(variances)), (np.log(variances), 1 / np.sqrt(exponent))]
    orders = [np.array(order) for order in itertools.permutations(range(number))]
    centres = np.stack([np.concatenate([part[order] for part, _ in parts]) for order in orders])
    whiteners = np.stack([np.diag(np.concatenate([1 / scale[order] for _, scale in parts])) for order in orders])
    log_volumes = np.array([gaussian_log_volume(whitener) for whitener in whiteners])
    return Modes(centres, np.full(len(orders), -np.log(math.factorial(number))), log_volumes, whiteners)


def random_data(generator: np.random.Generator) -> tuple[dict[str, Any], np.ndarray]:
    """Data of clusters five to nine deviations apart, a few of each, with priors about them; and their labels."""
    number = int(generator.choice(list(NUMBERS_OF_DATA)))
    gaps = generator.uniform(5, 9, number)
    labels = np.arange(NUMBERS_OF_DATA[number]) % number
    deviations, has_variances = np.ones(number), generator.random() < 0.5
    if has_variances:
        deviations = np.exp(generator.uniform(-0.5, 0.3, number))
    y = np.cumsum(gaps)[labels] + deviations[labels] * generator.normal(size=len(labels))
    own = {"y": y, "centre": y.mean()}
    if has_variances:
        return own | {"shape": np.float64(2.0), "rate": np.float64(generator.uniform(0.5, 2))}, labels
    return own | {"noise": np.float64(1.0), "prior": y.std() * generator.uniform(1, 3)}, labels


def label_switching(generator: np.random.Generator) -> Core:
    """Two or three components: the evidence sums exp(Σ log evidence of clusters) / K^n over all allocations."""
    own, labels = random_data(generator)
    number, has_variances = int(labels.max()) + 1, "shape" in own
    allocations = np.array(list(itertools.product(range(number), repeat=len(labels))))
    members = (allocations[:, None, :] == np.arange(number)[:, None]).astype(float)
    clusters = clusters_of(own, members)
    log_terms = clusters.log_evidence.sum(axis=1) - len(labels) * np.log(number)
    log_evidence = float(np.logaddexp.reduce(log_terms))
    probabilities = np.exp(log_terms - log_evidence)

    def exact_draws(generator: np.random.Generator, number: int) -> np.ndarray:
        chosen = generator.choice(len(probabilities), size=number, p=probabilities / probabilities.sum())
        return draw_parameters(generator, clusters_of(own, members[chosen]), has_variances)

    best = clusters_of(own, members[np.argmax(log_terms)])
    log_density = means_and_variances_log_density if has_variances else means_log_density
    start = far_start(generator, exact_draws)
    return Core(log_density, own, log_evidence, start, symmetric_modes(best, has_variances), exact_draws)
