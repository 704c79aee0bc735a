"""Does the density fall at all: how fast far out, along every coordinate, the axes of the draws and between them."""

import numpy as np

from thermocline.evaluator import Evaluator
from thermocline.records import TailIndex

NUM_DRAWS, MOST_AXES, NUM_OBLIQUE = 16, 32, 8
BYTES_AT_ONCE = 250_000_000  # of points that are looked at together
FAR, FARTHER = 1e3, 1e6  # deviations
STEEP = 4.0  # power: a density that has fallen so fast by then is taken for proper; rounding may hold it up farther out


def tail_index(evaluate: Evaluator, draws: np.ndarray) -> TailIndex:
    """Along every coordinate and the widest principal axes, both ways, from several draws; the median over these.

    And in random directions, of which the median counts: a target may fall fast enough along every line and yet, as
    (1 + |x|^2)^-0.75 in the plane, too slowly for its dimension.
    """
    dimension = draws.shape[1]
    _, deviations, axes = np.linalg.svd((draws - draws.mean(axis=0)) / np.sqrt(len(draws)), full_matrices=False)
    axes = np.concatenate([np.eye(dimension), axes[:MOST_AXES]])
    scales = np.concatenate([draws.std(axis=0), deviations[:MOST_AXES]])
    oblique = np.random.default_rng(0).normal(size=(NUM_OBLIQUE, dimension)) * draws.std(axis=0)
    directions = np.concatenate([np.concatenate([axes, -axes]) * np.tile(scales, 2)[:, None], oblique])
    starts = draws[:: max(len(draws) // NUM_DRAWS, 1)][:NUM_DRAWS]
    distances, size = np.array([0.0, FAR, FARTHER])[:, None, None, None], 24 * len(starts) * dimension
    parts = np.array_split(directions, -(-size * len(directions) // BYTES_AT_ONCE))
    values = [evaluate.values(starts + distances * part[:, None]) for part in parts]
    here, near, far = np.concatenate(values, axis=1)
    steep = np.repeat([STEEP, STEEP + dimension - 1], [2 * len(axes), NUM_OBLIQUE])[:, None]
    is_steep = here - near > steep * np.log(FAR)  # infinite where the density is zero already
    powers = np.where(is_steep, np.inf, np.where(is_steep, 0.0, near) - far) / np.log(FARTHER / FAR)
    powers, between = np.split(np.median(powers, axis=1), [2 * len(axes)])
    slowest, in_all = int(np.argmin(powers)), float(np.median(between)) - (dimension - 1)
    if in_all < powers[slowest]:
        return TailIndex(in_all, np.zeros(dimension))
    return TailIndex(float(powers[slowest]), axes[slowest % len(axes)])
