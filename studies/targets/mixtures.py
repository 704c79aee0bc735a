"""Mixtures of Gaussians and of Student's t, of unequal weight, width and shape; a spike on a slab.

Each component is normalised and the weights sum to one, so the canonical log evidence is 0.
"""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln

from studies.targets.affine import random_rotation
from studies.targets.record import Core, Modes, Sampler, far_start, gaussian_log_volume, under_map

MOST_COMPONENTS = 8
PADDED_TO = (1, 2, 4, 8)  # so that mixtures of like numbers of components share a compiled program
LARGEST_SPREAD = 16.0  # nats of log volume
LARGEST_STRETCH = 3.0  # nats of log volume a dimension: in one, widths up to twenty times each other
DIMENSIONS = (1, 2, 3, 5, 8, 12, 20, 30, 50)
SPIKE_DIMENSIONS = (2, 3, 5, 8, 10, 15)


def _gaussian_mixture(position, own):
    white = jnp.einsum("kij,kj->ki", own["whiteners"], position - own["means"])
    return jax.nn.logsumexp(own["log_heights"] - 0.5 * jnp.sum(white**2, axis=1))


def _t_mixture(position, own):
    white = jnp.einsum("kij,kj->ki", own["whiteners"], position - own["means"])
    freedom = own["degrees_of_freedom"]
    powers = -0.5 * (freedom + position.size) * jnp.log1p(jnp.sum(white**2, axis=1) / freedom)
    return jax.nn.logsumexp(own["log_heights"] + powers)


gaussian_mixture_log_density = under_map(_gaussian_mixture)
t_mixture_log_density = under_map(_t_mixture)


def random_log_volumes(generator: np.random.Generator, number: int, spread: float) -> np.ndarray:
    """Of `number` components, in random order, the widest `spread` nats above the narrowest."""
    between = generator.uniform(0, 1, max(number - 2, 0))
    return generator.permutation(np.concatenate([[0.0, 1.0], between])[:number]) * spread


def random_factors(generator: np.random.Generator, dimension: int, log_volumes: np.ndarray) -> np.ndarray:
    """Square roots of covariances of those log determinants: rotated axes, up to e times each other."""
    factors = []
    for log_volume in log_volumes:
        shape = generator.uniform(-0.5, 0.5, dimension)
        scales = np.exp(shape - shape.mean() + log_volume / dimension)
        factors.append(random_rotation(generator, dimension) * scales)
    return np.stack(factors)


def random_weights(generator: np.random.Generator, number: int) -> np.ndarray:
    """Uniform over the simplex, but none below one per cent."""
    return 0.01 + (1 - 0.01 * number) * generator.dirichlet(np.ones(number))


def random_freedoms(generator: np.random.Generator, number: int) -> np.ndarray:
    """Degrees of freedom of each component, log-uniform from 3 to 30."""
    return np.exp(generator.uniform(np.log(3), np.log(30), number))


def log_peaks(factors: np.ndarray, freedoms: np.ndarray | None) -> np.ndarray:
    """Log density of each normalised component at its centre: Gaussian, or t with `freedoms`."""
    dimension, log_determinants = factors.shape[-1], np.linalg.slogdet(factors)[1]
    if freedoms is None:
        return -0.5 * dimension * np.log(2 * np.pi) - log_determinants
    log_norms = gammaln((freedoms + dimension) / 2) - gammaln(freedoms / 2) - 0.5 * dimension * np.log(freedoms * np.pi)
    return log_norms - log_determinants


def mixture_sampler(
    weights: np.ndarray, means: np.ndarray, factors: np.ndarray, freedoms: np.ndarray | None
) -> Sampler:
    """Exact draws: a component by its weight, then a Gaussian or a t."""

    def exact_draws(generator: np.random.Generator, number: int) -> np.ndarray:
        component = generator.choice(len(weights), size=number, p=weights)
        noise = generator.normal(size=(number, means.shape[1]))
        if freedoms is not None:
            noise /= np.sqrt(generator.chisquare(freedoms[component]) / freedoms[component])[:, None]
        draws = np.empty_like(noise)
        for index, (mean, factor) in enumerate(zip(means, factors, strict=True)):
            draws[component == index] = mean + noise[component == index] @ factor.T
        return draws

    return exact_draws


def mixture_core(
    generator: np.random.Generator,
    weights: np.ndarray,
    means: np.ndarray,
    factors: np.ndarray,
    freedoms: np.ndarray | None = None,
) -> Core:
    """The density, padded with components of no weight, and what is known of it."""
    peaks, whiteners = log_peaks(factors, freedoms), np.linalg.inv(factors)
    size = next(size for size in PADDED_TO if size >= len(weights))
    extra = size - len(weights)
    own = {
        "log_heights": np.append(np.log(weights) + peaks, np.full(extra, -np.inf)),
        "means": np.pad(means, ((0, extra), (0, 0))),
        "whiteners": np.pad(whiteners, ((0, extra), (0, 0), (0, 0))),
    }
    log_density = gaussian_mixture_log_density
    if freedoms is not None:
        log_density, own = t_mixture_log_density, own | {"degrees_of_freedom": np.append(freedoms, np.ones(extra))}
    sampler = mixture_sampler(weights, means, factors, freedoms)
    log_volumes = np.array([gaussian_log_volume(whitener) for whitener in whiteners])
    modes = Modes(means, np.log(weights), log_volumes, whiteners)
    return Core(log_density, own, 0.0, far_start(generator, sampler), modes, sampler)


def random_mixture(generator: np.random.Generator, largest_dimension: int, *, is_gaussian: bool) -> Core:
    """One to eight components, means a few widths apart in every direction, V uniform up to what D allows."""
    dimension = int(generator.choice([d for d in DIMENSIONS if d <= largest_dimension]))
    number = int(generator.integers(1, MOST_COMPONENTS + 1))
    spread = generator.uniform(0, min(LARGEST_SPREAD, LARGEST_STRETCH * dimension))
    factors = random_factors(generator, dimension, random_log_volumes(generator, number, spread) - spread / 2)
    means = generator.uniform(2, 6) * generator.normal(size=(number, dimension))
    weights = random_weights(generator, number)
    freedoms = None if is_gaussian else random_freedoms(generator, number)
    return mixture_core(generator, weights, means, factors, freedoms)


def gaussian_mixture(generator: np.random.Generator) -> Core:
    return random_mixture(generator, 50, is_gaussian=True)


def t_mixture(generator: np.random.Generator) -> Core:
    return random_mixture(generator, 30, is_gaussian=False)


def spike_and_slab(generator: np.random.Generator) -> Core:
    """A spike inside a slab or on its tail: Gaussian both, or as often t both. V from 2 nats."""
    dimension = int(generator.choice(SPIKE_DIMENSIONS))
    spread = generator.uniform(2, min(LARGEST_SPREAD, LARGEST_STRETCH * dimension))
    factors = random_factors(generator, dimension, np.array([0.0, -spread]))
    is_inside = generator.random() < 0.5
    radius = np.sqrt(dimension) * (generator.uniform(0, 1) if is_inside else generator.uniform(1.2, 2.5))
    direction = generator.normal(size=dimension)
    spike = radius * direction / np.linalg.norm(direction)
    weight = generator.uniform(0.02, 0.98)
    freedoms = None if generator.random() < 0.5 else np.repeat(random_freedoms(generator, 1), 2)
    means, weights = np.stack([np.zeros(dimension), spike]), np.array([weight, 1 - weight])
    return mixture_core(generator, weights, means, factors, freedoms)
