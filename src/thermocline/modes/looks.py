"""Looking: points spread widely in the target's own units, and which of them the known modes explain.

A look costs one evaluation. It is *explained* where the slope points to a known mode, in that mode's units; what is not
may lie in the basin of another.
"""

import numpy as np

from thermocline.modes.peaks import Peak
from thermocline.support.linear import triangular

NEAREST, FARTHEST = 0.7, 300.0  # deviations of a mode within which looks are taken about it
WITHIN, BEYOND = 0.5, 5.0  # spreads of all modes together within which looks are taken about these
MOST_CENTRES, MOST_STARTS = 8, 2  # modes about which looks are taken, the heaviest; and starts
TAIL_DEGREES = 1.5  # of Student's t, of heavy-tailed directions
EXPLAINED = 0.9  # cosine


def look(
    generator: np.random.Generator, peaks: list[Peak], starts: np.ndarray, number: int, *, along_axes: bool = True
) -> np.ndarray:
    """Half about the heaviest modes, each in its own units, and about starts, in those of the heaviest; half about all.

    A start may lie between modes: from there a narrow one is seen that a wide one hides from its own surroundings.
    """
    chosen = sorted(peaks, key=lambda peak: -peak.log_mass)[:MOST_CENTRES]
    centres = [*chosen, *(chosen[0]._replace(location=start) for start in starts[:MOST_STARTS])]
    half = number // 2
    counts = np.full(len(centres), half // len(centres)) + (np.arange(len(centres)) < half % len(centres))
    parts = [about(generator, peak, int(count), along_axes) for peak, count in zip(centres, counts, strict=True)]
    return np.concatenate([*parts, about_all(generator, chosen, number - half)])


def about(generator: np.random.Generator, peak: Peak, number: int, along_axes: bool) -> np.ndarray:
    """At log-uniform distances: round, heavy-tailed, on the sphere, and along the user's axes, a quarter each."""
    size, quarter = len(peak.location), number // 4
    distance = np.exp(generator.uniform(np.log(NEAREST), np.log(FARTHEST), (number, 1)))
    white = generator.normal(size=(number, size))
    white[quarter : 2 * quarter] = generator.standard_t(TAIL_DEGREES, size=(quarter, size))
    white[2 * quarter :] /= np.sqrt(size)
    rows = peak.location + (distance * white) @ peak.root.T
    if along_axes and quarter:
        axis, deviations = generator.integers(size, size=quarter), np.linalg.norm(peak.root, axis=1)
        step = distance[-quarter:, 0] * generator.choice([-1.0, 1.0], quarter) * deviations[axis]
        rows[-quarter:] = peak.location
        rows[np.arange(number - quarter, number), axis] += step
    return rows


def about_all(generator: np.random.Generator, peaks: list[Peak], number: int) -> np.ndarray:
    """About the mean of all modes: in their pooled covariance, and in all directions as far as they are apart.

    Both in units of the mean covariance within modes, so that the user's coordinates do not matter. Modes lie in few
    of many directions; others may lie in any, at like distances.
    """
    locations = np.array([peak.location for peak in peaks])
    mean, size = locations.mean(axis=0), locations.shape[1]
    within = triangular(np.hstack([peak.root for peak in peaks]) / np.sqrt(len(peaks)))
    offsets = np.linalg.solve(within, (locations - mean).T).T
    pooled = np.eye(size) + offsets.T @ offsets / len(peaks)
    values, vectors = np.linalg.eigh(pooled)
    distance = np.exp(generator.uniform(np.log(WITHIN), np.log(BEYOND), (number, 1)))
    white = generator.normal(size=(number, size))
    shaped = (white * np.sqrt(values)) @ vectors.T
    is_round = np.arange(number)[:, None] % 2 == 0
    return mean + (distance * np.where(is_round, white * np.sqrt(values.mean()), shaped)) @ within.T


def explained(rows: np.ndarray, gradients: np.ndarray, peaks: list[Peak]) -> np.ndarray:
    """Largest cosine, over modes, between the slope and the way to the mode, both in the mode's own units."""
    best = np.full(len(rows), -1.0)
    for peak in peaks:
        way, slope = (peak.location - rows) @ peak.whitening.T, gradients @ peak.root
        norms = np.linalg.norm(way, axis=1) * np.linalg.norm(slope, axis=1)
        cosine = np.sum(way * slope, axis=1) / np.maximum(norms, np.finfo(float).tiny)
        best = np.maximum(best, np.where(np.isfinite(cosine), cosine, -1.0))
    return best
