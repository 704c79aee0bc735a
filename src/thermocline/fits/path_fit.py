"""A local fit where there is no optimum: the best Gaussian along an ascent that ended at an edge or ran away.

Of a few points of its path, each with the curvature there, the one whose draws find the most of the target (Zhang et
al. 2022 choose so by the ELBO). Where the density is steeper than it is curved, the slope gives the scale.
"""

from typing import NamedTuple

import numpy as np

from thermocline.evaluator import Evaluator
from thermocline.fits.curvature import curvature_at
from thermocline.fits.lbfgs import Path

NUM_POINTS = 9  # of a path, by equal steps of the logarithm of their number
NUM_DRAWS = 64  # of each candidate
SIZES = (0.5, 1.0, 2.0)  # of each candidate's deviations
STEEPEST = 2.0  # slope in a candidate's own deviations
FLOOR = 20.0  # nats below the largest weight, of a draw that finds nothing


class PathFit(NamedTuple):
    """A Gaussian with the covariance R Rᵀ, its score, and the log of the mass that its draws found."""

    location: np.ndarray
    root: np.ndarray
    score: float
    log_mass: float


def best_along(generator: np.random.Generator, evaluate: Evaluator, path: Path) -> PathFit | None:
    """The best candidate of one path; None where no draw of any is on the support."""
    candidates = [fit for point in _points(path) for fit in _candidates(evaluate, path, point)]
    return max(scored(generator, evaluate, candidates), key=lambda fit: fit.score, default=None)


def scored(
    generator: np.random.Generator, evaluate: Evaluator, candidates: list[tuple[np.ndarray, np.ndarray]]
) -> list[PathFit]:
    """Gaussians by what a few draws of each find; those that find nothing are left out."""
    if not candidates:
        return []
    noise = generator.normal(size=(len(candidates), NUM_DRAWS, candidates[0][0].size))
    rows = np.stack([mean + white @ root.T for (mean, root), white in zip(candidates, noise, strict=True)])
    log_target = evaluate.values(rows)
    fits = []
    for (mean, root), white, values in zip(candidates, noise, log_target, strict=True):
        log_normal = -0.5 * np.sum(white**2, axis=1) - 0.5 * mean.size * np.log(2 * np.pi) - np.linalg.slogdet(root)[1]
        log_weight = values - log_normal
        largest = log_weight.max()
        if np.isfinite(largest):
            score = float(np.mean(np.maximum(log_weight, largest - FLOOR)))
            log_mass = float(np.logaddexp.reduce(log_weight) - np.log(len(log_weight)))
            fits.append(PathFit(mean, root, score, log_mass))
    return fits


def _points(path: Path) -> np.ndarray:
    """Places along the path, denser at its start."""
    last = len(path.log_density) - 1
    return np.unique(np.round(np.expm1(np.linspace(0, np.log1p(last), NUM_POINTS))).astype(int))


def _candidates(evaluate: Evaluator, path: Path, point: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Means and roots of a few sizes at one point, moved up the slope by half of what the curvature promises."""
    position, gradient = path.position[point], path.gradient[point]
    curvature = curvature_at(evaluate, position[None])
    if not curvature.is_usable[0]:
        return []
    found = []
    for size in SIZES:
        root = size * curvature.roots()[0]
        slope = gradient @ root
        root = root * np.minimum(1.0, STEEPEST / np.maximum(np.abs(slope), 1e-300))
        shift = 0.5 * np.clip(gradient @ root, -STEEPEST, STEEPEST)
        if np.isfinite(root).all() and np.linalg.slogdet(root)[0] != 0:
            found.append((position + root @ shift, root))
    return found
