"""Funnels, bananas and shells: densities that no Gaussian fits, with constants in closed form or by quadrature."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from scipy.special import gammaln

from studies.targets.record import Core, far_start, one_mode, under_map

FUNNEL_DIMENSIONS = (2, 3, 5, 8, 12, 20)
BANANA_DIMENSIONS = (2, 3, 5, 10, 20, 30)
RING_DIMENSIONS = (2, 3, 5, 7, 10)


def _funnel(position, own):
    """A normal log variance, and normals whose log variances are proportional to it."""
    log_variance, others = position[0], position[1:]
    deviations = own["units"] * jnp.exp(0.5 * own["slopes"] * log_variance)
    return norm.logpdf(log_variance, 0.0, own["spread"]) + jnp.sum(norm.logpdf(others, 0.0, deviations))


def _banana(position, own):
    """Independent normals, bent: each `bend` moves an even coordinate by a parabola of the odd one before it."""
    odd = position[0 : 2 * own["bends"].size : 2]
    moved = position.at[1 : 2 * own["bends"].size : 2].add(-own["bends"] * (odd - own["middles"]) ** 2)
    return jnp.sum(norm.logpdf(moved, 0.0, own["scales"]))


def _ring(position, own):
    """A normal ridge on a sphere. Its square root is safe at the centre, where the slope is set to 0."""
    squared = jnp.sum(position**2)
    radius = jnp.sqrt(jnp.where(squared > 0, squared, 1.0)) * (squared > 0)
    return -0.5 * ((radius - own["radius"]) / own["width"]) ** 2


funnel_log_density = under_map(_funnel)
banana_log_density = under_map(_banana)
ring_log_density = under_map(_ring)


def funnel(generator: np.random.Generator) -> Core:
    """Normalised: log evidence 0. The density is highest far down the neck, where there is no mass: no modes."""
    dimension = int(generator.choice(FUNNEL_DIMENSIONS))
    spread, slopes = generator.uniform(0.5, 3), generator.uniform(0.5, 1.2, dimension - 1)
    units = np.exp(generator.uniform(-1, 1, dimension - 1))

    def exact_draws(generator: np.random.Generator, number: int) -> np.ndarray:
        log_variance = spread * generator.normal(size=(number, 1))
        others = units * np.exp(0.5 * slopes * log_variance) * generator.normal(size=(number, dimension - 1))
        return np.concatenate([log_variance, others], axis=1)

    own = {"spread": spread, "slopes": slopes, "units": units}
    return Core(funnel_log_density, own, 0.0, far_start(generator, exact_draws), None, exact_draws)


def banana(generator: np.random.Generator) -> Core:
    """Bending keeps volumes, so the log evidence is 0; the mode is the image of the normals' mean."""
    dimension = int(generator.choice(BANANA_DIMENSIONS))
    number_bent = int(generator.choice([n for n in (1, 2, 4) if 2 * n <= dimension]))
    scales, bends = np.exp(generator.uniform(-1, 1, dimension)), generator.uniform(0.2, 2, number_bent)
    odd = np.arange(0, 2 * number_bent, 2)
    bends *= generator.choice([-1, 1], number_bent) * scales[odd + 1] / scales[odd] ** 2
    middles = scales[odd] * generator.uniform(-1, 1, number_bent)

    def exact_draws(generator: np.random.Generator, number: int) -> np.ndarray:
        draws = scales * generator.normal(size=(number, dimension))
        draws[:, odd + 1] += bends * (draws[:, odd] - middles) ** 2
        return draws

    centre, slope = np.zeros(dimension), np.eye(dimension)
    centre[odd + 1] = bends * middles**2
    slope[odd + 1, odd] = -2 * bends * middles  # of the bending, at the mode
    modes = one_mode(centre, np.linalg.inv(slope * scales))
    own = {"scales": scales, "bends": bends, "middles": middles}
    return Core(banana_log_density, own, 0.0, far_start(generator, exact_draws), modes, exact_draws)


def radial_law(dimension: int, radius: float, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Radii, and log masses of the cells about them by the trapezoidal rule: the ends all but vanish, so to 1e-9."""
    radii = np.linspace(max(radius - 12 * width, 0.0), radius + 12 * width + dimension * width, 40_001)[1:]
    log_area = np.log(2) + 0.5 * dimension * np.log(np.pi) - gammaln(0.5 * dimension)
    log_density = -0.5 * ((radii - radius) / width) ** 2 + (dimension - 1) * np.log(radii) + log_area
    return radii, log_density + np.log(radii[1] - radii[0])


def ring(generator: np.random.Generator) -> Core:
    """The constant is the area of the unit sphere times one integral over the radius; no mode is a point."""
    dimension = int(generator.choice(RING_DIMENSIONS))
    radius, width = generator.uniform(2, 5), np.exp(generator.uniform(np.log(0.1), np.log(0.6)))
    radii, log_masses = radial_law(dimension, radius, width)
    log_evidence = float(np.logaddexp.reduce(log_masses))
    cumulative = np.cumsum(np.exp(log_masses - log_evidence))

    def exact_draws(generator: np.random.Generator, number: int) -> np.ndarray:
        """Radii by inversion of the tabulated law: exact to a cell, a hundredth of a per cent of the width."""
        drawn = np.interp(generator.uniform(size=(number, 1)), cumulative, radii + 0.5 * (radii[1] - radii[0]))
        directions = generator.normal(size=(number, dimension))
        return drawn * directions / np.linalg.norm(directions, axis=1, keepdims=True)

    own = {"radius": radius, "width": width}
    return Core(ring_log_density, own, log_evidence, far_start(generator, exact_draws), None, exact_draws)


def banana_and_ring(generator: np.random.Generator) -> Core:
    return banana(generator) if generator.random() < 0.6 else ring(generator)
