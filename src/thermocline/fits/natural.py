"""The Gaussian of largest ELBO by natural gradients, from slopes at its own draws.

Over draws x = m + L z with slopes s in its units, E[s] is the ELBO's gradient in m, and -E[s zᵀ] the mean curvature
(Stein's identity): the natural gradient's step (Khan and Rue 2023) takes a share of that for the new precision. It is
sound where slopes at one point mislead: at a kink, on skewed or heavy tails, and where the highest point is far from
where the mass is. Draws come in pairs about the mean and have unit covariance: a Gaussian is found without noise.
"""

import numpy as np

from thermocline.evaluator import Evaluator
from thermocline.fits.advi import elbo, residuals_at
from thermocline.fits.gaussian_ascent import LocationScale
from thermocline.support.linear import inverse, triangular

DRAWS_A_DIMENSION, FEWEST_DRAWS = 4, 64
NOISE = 3.0  # standard errors of an ELBO, by which another is really less
FARTHEST = 2.0  # of a step, in radii of the fit
LEAST = 0.01  # of the precision, in units of the fit: a direction widens at most tenfold in a step


def natural_ascent(
    generator: np.random.Generator, evaluate: Evaluator, start: LocationScale, num_steps: int
) -> LocationScale:
    """Full steps first, then ever smaller ones that average what noise the draws have.

    Where it ends, unless by its draws it has been at a better place.
    """
    normal, best, highest = start, start, -np.inf
    for step in range(num_steps + 1):
        noise = paired_noise(generator, len(normal.mean))
        values, residuals = residuals_at(evaluate, normal, noise)
        height = elbo(values - normal.log_densities(noise), penalty=1.0)
        if not (np.isfinite(height.value) and height.value + NOISE * height.standard_error >= highest):
            return best
        best, highest = normal, max(highest, float(height.value - NOISE * height.standard_error))
        share = 2 / (2 + max(step - num_steps // 2, 0))
        try:
            normal = _moved(normal, noise, residuals, share)
        except np.linalg.LinAlgError:  # beyond numbers
            break
    return best


def paired_noise(generator: np.random.Generator, size: int) -> np.ndarray:
    """Normal numbers in pairs about zero, of unit covariance exactly."""
    half = generator.normal(size=(max(DRAWS_A_DIMENSION * size, FEWEST_DRAWS) // 2, size))
    half = half @ inverse(np.linalg.cholesky(half.T @ half / len(half)), np).T
    return np.concatenate([half, -half])


def _moved(normal: LocationScale, noise: np.ndarray, residuals: np.ndarray, share: float) -> LocationScale:
    """After a step of this share, in which no direction widens too far."""
    size = len(normal.mean)
    excess = -(residuals.T @ noise + noise.T @ residuals) / (2 * len(noise))  # of the precision over one
    precisions, vectors = np.linalg.eigh(np.eye(size) + share * excess)
    root = vectors / np.sqrt(np.maximum(precisions, LEAST))
    shift = share * root @ (root.T @ residuals.mean(axis=0))
    shift *= min(1.0, FARTHEST * np.sqrt(size) / max(float(np.linalg.norm(shift)), 1e-300))
    return LocationScale(normal.at(shift), triangular(normal.scale @ root))
