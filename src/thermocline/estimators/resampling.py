"""Equally weighted draws from weighted ones."""

import numpy as np


def systematic_resample(log_weight: np.ndarray, num_draws: int, seed: int) -> np.ndarray:
    """Indices of equally weighted draws, in random order: each appears within one of its expected count."""
    generator = np.random.default_rng(seed)
    weight = np.exp(log_weight - np.max(log_weight))
    cumulative = np.cumsum(weight) / weight.sum()
    points = (np.arange(num_draws) + generator.uniform()) / num_draws
    return generator.permutation(np.minimum(np.searchsorted(cumulative, points), weight.size - 1))
