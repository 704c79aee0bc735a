"""Independent margins under a rotation: skewed ones, and ones with heavy tails; each normalised in closed form.

The canonical log evidence is 0: a product of normalised densities. Which law a margin has is data, so that all
products of one dimension share a compiled program.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from scipy import optimize, stats
from scipy.special import gammaln, polygamma

from studies.targets.record import Core, Sampler, far_start, one_mode, under_map

DIMENSIONS = (1, 2, 3, 5, 8, 12, 20, 30, 40)


def _skewed(position, own):
    """By law: skew-normal of slant `shapes`, log of a gamma of shape `shapes`, Gumbel; `scales` stretch them."""
    laws, shape = own["laws"], own["shapes"]
    z = [jnp.where(laws == law, position / own["scales"], 0.0) for law in range(3)]  # an unused exp must not overflow
    skew_normal = -0.5 * z[0] ** 2 + norm.logcdf(shape * z[0])
    log_gamma = shape * z[1] - jnp.exp(z[1])
    gumbel = -z[2] - jnp.exp(-z[2])
    margins = jnp.select([laws == 0, laws == 1], [skew_normal, log_gamma], gumbel)
    return jnp.sum(margins + own["log_constants"])


def _heavy(position, own):
    """By law: Student's t of `freedoms` degrees, Laplace, logistic; `scales` stretch them."""
    z, freedoms = position / own["scales"], own["freedoms"]
    student = -0.5 * (freedoms + 1) * jnp.log1p(z**2 / freedoms)
    laplace = -jnp.abs(z)
    logistic = jax.nn.log_sigmoid(z) + jax.nn.log_sigmoid(-z)
    margins = jnp.select([own["laws"] == 0, own["laws"] == 1], [student, laplace], logistic)
    return jnp.sum(margins + own["log_constants"])


skewed_log_density = under_map(_skewed)
heavy_log_density = under_map(_heavy)


def product_sampler(draw: Callable[..., np.ndarray], scales: np.ndarray) -> Sampler:
    def exact_draws(generator: np.random.Generator, number: int) -> np.ndarray:
        return draw(generator, (number, len(scales))) * scales

    return exact_draws


def skew_normal_mode(slant: float) -> float:
    """Where the density of a standard skew-normal is highest."""
    found = optimize.minimize_scalar(lambda z: -stats.skewnorm.logpdf(z, slant), bounds=(-2, 2), method="bounded")
    return float(found.x)


def skewed_product(generator: np.random.Generator) -> Core:
    """One mode, off the mean; `deviations` are the margins' own, or nearly."""
    dimension = int(generator.choice(DIMENSIONS))
    laws, scales = generator.integers(3, size=dimension), np.exp(generator.uniform(-1, 1, dimension))
    slants = generator.choice([-1, 1], dimension) * generator.uniform(1, 6, dimension)
    gammas = np.exp(generator.uniform(np.log(0.7), np.log(5), dimension))
    shapes = np.where(laws == 0, slants, gammas)

    def draw(generator: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
        lean = shapes / np.sqrt(1 + shapes**2)
        skew_normal = lean * np.abs(generator.normal(size=size)) + np.sqrt(1 - lean**2) * generator.normal(size=size)
        log_gamma = np.log(generator.gamma(gammas, size=size))
        return np.select([laws == 0, laws == 1], [skew_normal, log_gamma], generator.gumbel(size=size))

    leaning = np.array([skew_normal_mode(slant) for slant in slants])
    centres = np.select([laws == 0, laws == 1], [leaning, np.log(gammas)], 0.0)
    narrowed = np.sqrt(1 - 2 / np.pi * slants**2 / (1 + slants**2))
    deviations = np.select([laws == 0, laws == 1], [narrowed, np.sqrt(polygamma(1, gammas))], np.pi / np.sqrt(6))
    sampler = product_sampler(draw, scales)
    modes = one_mode(centres * scales, np.diag(1 / (scales * deviations)))
    log_constants = np.select([laws == 0, laws == 1], [0.5 * np.log(2 / np.pi), -gammaln(gammas)], 0.0) - np.log(scales)
    own = {"laws": laws, "shapes": shapes, "scales": scales, "log_constants": log_constants}
    return Core(skewed_log_density, own, 0.0, far_start(generator, sampler), modes, sampler)


def heavy_tailed_product(generator: np.random.Generator) -> Core:
    """One mode, in the middle; where a margin is Laplace's the density has an edge there."""
    dimension = int(generator.choice(DIMENSIONS))
    laws, scales = generator.integers(3, size=dimension), np.exp(generator.uniform(-1, 1, dimension))
    freedoms = generator.uniform(2.5, 6, dimension)

    def draw(generator: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
        student, laplace = generator.standard_t(freedoms, size), generator.laplace(size=size)
        return np.select([laws == 0, laws == 1], [student, laplace], generator.logistic(size=size))

    sampler = product_sampler(draw, scales)
    deviations = np.select([laws == 0, laws == 1], [1.0, np.sqrt(2)], np.pi / np.sqrt(3))
    modes = one_mode(np.zeros(dimension), np.diag(1 / (scales * deviations)))
    student = gammaln((freedoms + 1) / 2) - gammaln(freedoms / 2) - 0.5 * np.log(freedoms * np.pi)
    log_constants = np.select([laws == 0, laws == 1], [student, -np.log(2)], 0.0) - np.log(scales)
    own = {"laws": laws, "freedoms": freedoms, "scales": scales, "log_constants": log_constants}
    return Core(heavy_log_density, own, 0.0, far_start(generator, sampler), modes, sampler)
