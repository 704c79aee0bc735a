"""Densities with edges, −inf beyond: boxes, half-spaces and orthants, turned by the map.

Margins are independent in canonical coordinates and normalised in closed form, so the canonical log evidence is 0. A
correlated Gaussian cut by one half-space is a product after a rotation: one margin is truncated, the others are not.
"""

import jax.numpy as jnp
import numpy as np
from scipy import stats
from scipy.special import betaln

from studies.targets.record import Core, one_mode, under_map

DIMENSIONS = (1, 2, 3, 4, 6, 8, 12)
ROUNDING = 1e-6  # deviations by which a mode on an edge is set inside, so that the map's rounding leaves it there


def _bounded(position, own):
    """By law: a normal between `lower` and `upper`, Beta(`first`, `second`), a standard exponential."""
    laws, lower, upper = own["laws"], own["lower"], own["upper"]
    inside = (position >= lower) & (position <= upper)
    z = jnp.where(inside, position, own["interior"])  # keeps the logarithms of what is outside out of the gradient
    unit = jnp.clip(jnp.where(laws == 1, z, 0.5), 1e-300, 1 - 1e-16)
    beta = (own["first"] - 1) * jnp.log(unit) + (own["second"] - 1) * jnp.log1p(-unit)
    margins = jnp.select([laws == 0, laws == 1], [-0.5 * z**2, beta], -z)
    return jnp.where(jnp.all(inside), jnp.sum(margins + own["log_constants"]), -jnp.inf)


bounded_log_density = under_map(_bounded)


def random_edges(generator: np.random.Generator, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Where normals are cut: on one side, on both or nowhere; at times far enough that the mode lies on the edge."""
    lower, width = generator.uniform(-2, 1.5, dimension), generator.uniform(0.5, 3, dimension)
    side = generator.integers(4, size=dimension)  # both, below, above, nowhere
    upper = np.where(side == 2, -lower, lower + width)
    return np.where(side >= 2, -np.inf, lower), np.where(side % 2 == 1, np.inf, upper)


def log_normal_mass(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Log of the standard normal's mass between the edges, from whichever tail keeps the digits."""
    flipped = lower > 0
    low, high = np.where(flipped, -upper, lower), np.where(flipped, -lower, upper)
    return np.log(stats.norm.cdf(high) - stats.norm.cdf(low))


def bounded(generator: np.random.Generator) -> Core:
    """At least one edge; one mode, often on it. The start is a draw, its exponentials stretched."""
    dimension = int(generator.choice(DIMENSIONS))
    laws = generator.integers(3, size=dimension)
    lower, upper = random_edges(generator, dimension)
    lower[0] = -1.0 if np.isinf(lower[0]) and np.isinf(upper[0]) else lower[0]
    lower, upper = np.select([laws == 0], [lower], 0.0), np.select([laws == 0, laws == 1], [upper, 1.0], np.inf)
    first, second = generator.uniform(1, 4, (2, dimension))
    cut = [np.where(laws == 0, edge, infinite) for edge, infinite in ((lower, -np.inf), (upper, np.inf))]

    def exact_draws(generator: np.random.Generator, number: int) -> np.ndarray:
        size = (number, dimension)
        truncated = stats.truncnorm.rvs(*cut, size=size, random_state=generator)
        beta, exponential = generator.beta(first, second, size), generator.exponential(size=size)
        return np.select([laws == 0, laws == 1], [truncated, beta], exponential)

    highest = np.select([laws == 0, laws == 1], [np.clip(0.0, *cut), (first - 1) / (first + second - 2)], 0.0)
    spreads = [stats.truncnorm.std(*cut), stats.beta.std(first, second)]
    deviations = np.select([laws == 0, laws == 1], spreads, 1.0)
    own = {"laws": laws, "lower": lower, "upper": upper, "first": first, "second": second}
    truncated = -0.5 * np.log(2 * np.pi) - log_normal_mass(*cut)
    log_constants = np.select([laws == 0, laws == 1], [truncated, -betaln(first, second)], 0.0)
    own |= {"log_constants": log_constants, "interior": exact_draws(generator, 1)[0]}
    start = exact_draws(generator, 1)[0] * np.where(laws == 2, generator.uniform(1, 4, dimension), 1.0)
    hair = ROUNDING * deviations
    modes = one_mode(np.clip(highest, lower + hair, upper - hair), np.diag(1 / deviations))
    return Core(bounded_log_density, own, 0.0, start, modes, exact_draws)
