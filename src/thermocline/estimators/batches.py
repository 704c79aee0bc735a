"""How the error of a mean is found from correlated draws: batches long against their autocorrelation."""

from typing import NamedTuple

import numpy as np

from thermocline.support.tails import fisher_tail

BATCH_LENGTH = 12  # in autocorrelation times
MOST_BATCHES = 128
DISAGREEMENT = 0.01  # level at which chains are found to disagree more than their batches explain


class Batches(NamedTuple):
    """Near-equal runs of draws, long against the autocorrelation, that count as independent."""

    edges: np.ndarray  # of the batches within a chain
    num_chains: int

    @property
    def number(self) -> int:
        return self.num_chains * (len(self.edges) - 1)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum of (chain, draw) values over each batch, flat."""
        return np.add.reduceat(values, self.edges[:-1], axis=1).ravel()


def batches_of_groups(num_chains: int, num_draws: int, group: int) -> Batches:
    """Batches of whole groups of draws, where every group is known to be independent of the others."""
    number = max(num_draws // group, 1)
    per_chain = min(number, max(2, MOST_BATCHES // num_chains))
    edges = np.linspace(0, number, per_chain + 1).astype(int) * group
    return Batches(np.append(edges[:-1], num_draws), num_chains)


def autocorrelation_time(values: np.ndarray) -> float:
    """Integrated autocorrelation time in draws, by Geyer's initial monotone sequence over all chains."""
    num_draws = values.shape[1]
    centred = values - values.mean()
    size = 2 ** int(np.ceil(np.log2(2 * num_draws)))
    spectrum = np.fft.rfft(centred, size, axis=1)
    covariance = np.fft.irfft(np.mean(np.abs(spectrum) ** 2, axis=0), size)[:num_draws] / num_draws
    if not covariance[0] > 0:
        return 1.0
    correlation = covariance / covariance[0]
    pairs = correlation[: 2 * (num_draws // 2)].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: negative[0] if negative.size else None])
    return float(max(2 * pairs.sum() - 1, 1.0))


def batches_for(influence: np.ndarray) -> Batches:
    """Batches of at least twelve autocorrelation times; whole chains where they are too short for two."""
    num_chains, num_draws = influence.shape
    length = BATCH_LENGTH * autocorrelation_time(influence)
    most = max(2, MOST_BATCHES // num_chains)
    fewest = 1 if num_chains >= 4 else min(4, num_draws)
    per_chain = int(np.clip(num_draws // length, fewest, most))
    return Batches(np.linspace(0, num_draws, per_chain + 1).astype(int), num_chains)


def mean_error(influence: np.ndarray, batches: Batches | None = None) -> tuple[float, float]:
    """Standard error of the mean of (chain, draw) values, and its degrees of freedom.

    From batch means over all chains. Where the means of whole chains spread more than those batches
    can explain, the chains have not mixed and only they count as independent.
    """
    batches = batches_for(influence) if batches is None else batches
    num_chains = influence.shape[0]
    means = batches.sums(influence) * (batches.number / influence.size)
    error = means.std(ddof=1) / np.sqrt(batches.number) if batches.number > 1 else np.inf
    dof = batches.number - 1
    if num_chains >= 4 and batches.number > num_chains and disagreement_p_value(means, num_chains) < DISAGREEMENT:
        return float(influence.mean(axis=1).std(ddof=1) / np.sqrt(num_chains)), float(num_chains - 1)
    return float(error), float(dof)


def disagreement_p_value(batch_means: np.ndarray, num_chains: int) -> float:
    """Analysis of variance: that chains differ by no more than the batches within them."""
    means = batch_means.reshape(num_chains, -1)
    pieces = means.shape[1]
    within = np.sum((means - means.mean(axis=1, keepdims=True)) ** 2) / (num_chains * (pieces - 1))
    between = pieces * means.mean(axis=1).var(ddof=1)
    if between < 1e-18:  # base and target equal: only rounding differs
        return 1.0
    return fisher_tail(between / within, num_chains - 1, num_chains * (pieces - 1)) if within > 0 else 0.0
