"""The Gaussian of least Fisher divergence, by slopes at its own draws: sound where slopes at one point mislead.

At a kink the slope jumps and the curvature is infinite, on a skewed or heavy tail both say little of the width. Over
draws z of a fit x = m + R z with slopes s in its units, a Gaussian target has s = m' - M⁻¹ z exactly, so that
Cov(s) = M⁻²: its covariance is R M Rᵀ with M = Cov(s)^(-1/2) (Seyboldt, Carlson and Carpenter 2024 make a metric so).
Draws come in pairs about the mean and have unit covariance, so that a Gaussian is found without noise.
"""

import numpy as np

from thermocline.evaluator import Evaluator

DRAWS_A_DIMENSION, LAST_DRAWS = 4, 16  # for the slopes' covariance, and in the last step
FEWEST_DRAWS = 16
FARTHEST = 2.0  # of a step, in radii of the fit
LEAST = 1e-4  # of the slopes' variances, in units of the fit: a direction widens at most tenfold in a step


def fisher_fit(
    generator: np.random.Generator, evaluate: Evaluator, location: np.ndarray, root: np.ndarray, num_steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Location and root after so many steps; the last that could be made where the density is -inf about it."""
    size = len(location)
    for step in range(num_steps):
        number = max((LAST_DRAWS if step == num_steps - 1 else DRAWS_A_DIMENSION) * size, FEWEST_DRAWS)
        half = generator.normal(size=(number // 2, size))
        half = np.linalg.solve(np.linalg.cholesky(half.T @ half / len(half)), half.T).T  # of unit covariance, exactly
        values, gradients = evaluate(location + np.concatenate([half, -half]) @ root.T)
        slopes = gradients @ root
        slopes = slopes[np.isfinite(values) & np.isfinite(slopes).all(axis=1)]
        if len(slopes) < number // 2 + 1:
            break
        with np.errstate(over="ignore", invalid="ignore"):
            spread = np.cov(slopes.T, bias=True).reshape(size, size)
        if not np.isfinite(spread).all():
            break
        variances, vectors = np.linalg.eigh(spread)
        variances = np.maximum(variances, LEAST)
        way = vectors @ (vectors.T @ slopes.mean(axis=0) / np.sqrt(variances))
        way *= min(1.0, FARTHEST * np.sqrt(size) / max(np.linalg.norm(way), 1e-300))
        following = root @ (vectors * variances**-0.25)
        if not np.isfinite(np.linalg.slogdet(following)[1]):
            break
        location, root = location + root @ way, following
    return location, root
