"""Clusters of weighted draws: k-means from well spread seeds."""

import numpy as np

from thermocline.records import WeightedDraws

NUM_STEPS = 20


def cluster(draws: WeightedDraws, num_clusters: int, seed: int, index: int) -> np.ndarray:
    """The cluster of every draw, by Lloyd's steps from seeds of k-means++ (Arthur & Vassilvitskii 2007).

    Distances are in standard deviations of each coordinate. `index` numbers further answers for one seed; a cluster
    may end up empty, and its number unused.
    """
    generator = np.random.default_rng((seed, index))
    mean = draws.weight @ draws.position
    deviations = np.sqrt(draws.weight @ (draws.position - mean) ** 2)
    points = (draws.position - mean) / np.where(deviations > 0, deviations, 1.0)
    centres = _seeds(generator, points, draws.weight, num_clusters)
    label = np.zeros(len(points), int)
    for _ in range(NUM_STEPS):
        label = np.argmin(_distances(points, centres), axis=1)
        shares = draws.weight * (label == np.arange(num_clusters)[:, None])
        mass = shares.sum(axis=1, keepdims=True)
        centres = np.where(mass > 0, shares @ points / np.where(mass > 0, mass, 1.0), centres)
    return label


def _seeds(generator: np.random.Generator, points: np.ndarray, weight: np.ndarray, number: int) -> np.ndarray:
    """Draws chosen one after another, each by its squared distance from the nearest chosen before."""
    chosen = [generator.choice(len(points), p=weight)]
    for _ in range(number - 1):
        chance = weight * _distances(points, points[chosen]).min(axis=1)
        chance = chance if chance.sum() > 0 else weight
        chosen.append(generator.choice(len(points), p=chance / chance.sum()))
    return points[chosen]


def _distances(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Squared, (point, centre)."""
    return np.sum((points[:, None] - centres) ** 2, axis=2)
