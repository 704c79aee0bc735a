"""Bridge sampling (Meng and Wong 1996) from draws of chains, with the error of Frühwirth-Schnatter (2004)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp


class Bridge(NamedTuple):
    log_evidence: float
    error: float
    evaluations: int


def autocorrelation_time(values: np.ndarray) -> float:
    """Of chains in rows, pooled: Geyer's initial positive sequence."""
    centred = values - values.mean()
    spectrum = np.fft.rfft(centred, 2 * values.shape[1], axis=1)
    covariance = np.mean(np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, : values.shape[1]], axis=0)
    even = covariance[: len(covariance) // 2 * 2]
    pairs = (even[0::2] + even[1::2]) / covariance[0]
    last = int(np.argmax(pairs < 0)) if (pairs < 0).any() else len(pairs)
    return max(float(2 * pairs[:last].sum() - 1), 1 / 50)


def bridge(
    draws: np.ndarray, heights: np.ndarray, density: Callable[[np.ndarray], np.ndarray], generator: np.random.Generator
) -> Bridge:
    """From draws (chain, draw, D) and their log densities: a Gaussian fitted to one half, a bridge to the other."""
    half, dimension = draws.shape[1] // 2, draws.shape[2]
    fitted, kept = draws[:, :half].reshape(-1, dimension), draws[:, half:].reshape(-1, dimension)
    mean, root = fitted.mean(axis=0), np.linalg.cholesky(np.atleast_2d(np.cov(fitted.T)))
    log_determinant = np.log(np.diag(root)).sum()

    def log_proposal(rows: np.ndarray) -> np.ndarray:
        white = np.linalg.solve(root, (rows - mean).T)
        return -0.5 * np.sum(white**2, axis=0) - log_determinant - dimension / 2 * np.log(2 * np.pi)

    drawn = mean + generator.normal(size=kept.shape) @ root.T
    of_kept = heights[:, half:].ravel() - log_proposal(kept)
    of_drawn = density(drawn) - log_proposal(drawn)
    number = len(of_kept)
    effective = number / autocorrelation_time(heights[:, half:])
    share = effective / (effective + number)
    value = float(np.median(of_drawn))
    for _ in range(1000):
        top = logsumexp(of_drawn - np.logaddexp(np.log(share) + of_drawn, np.log1p(-share) + value))
        bottom = logsumexp(-np.logaddexp(np.log(share) + of_kept, np.log1p(-share) + value))
        value, before = float(top - bottom), value
        if abs(value - before) < 1e-12:
            break
    upper = np.exp(of_drawn - value - np.logaddexp(np.log(share) + of_drawn - value, np.log1p(-share)))
    lower = np.exp(-np.logaddexp(np.log(share) + of_kept - value, np.log1p(-share)))
    time = autocorrelation_time(lower.reshape(len(draws), -1))
    variance = (upper.var() / upper.mean() ** 2 + time * lower.var() / lower.mean() ** 2) / number
    return Bridge(value, float(np.sqrt(variance)), number)
