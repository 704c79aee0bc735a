"""Effective sizes and agreement between chains, for weighted draws."""

from collections.abc import Callable

import numpy as np

from thermocline.estimators.batches import Batches, mean_error
from thermocline.estimators.chains import relative
from thermocline.estimators.stages import has_stages
from thermocline.records import Draws, Estimate
from thermocline.support import special
from thermocline.support.tails import normal_tail

APPRECIABLE = 0.02  # share of the target that an answer cannot do without
DOMINANT = 0.1  # share of all weight, of one draw among many
MANY_TOURS = 100  # where the base is thin, after which what lies there is known
THIN = np.e  # times the base that the target's density is, both normalised, where the base is thin


def pseudo_values(values: np.ndarray, log_weight: np.ndarray) -> np.ndarray:
    """What each draw contributes to the weighted mean: mean + w (value - mean), with w relative to its mean."""
    weight, _ = relative(log_weight)
    mean = np.mean(weight * values)
    return mean + weight * (values - mean)


def effective_size(values: np.ndarray, log_weight: np.ndarray, batches: Batches | None = None) -> float:
    """Independent draws of the weighted law that would give the mean of `values` with the same error.

    Never more than there are: beyond that it is the error that is known too little.
    """
    weight, _ = relative(log_weight)
    mean = np.mean(weight * values)
    variance = np.mean(weight * (values - mean) ** 2)
    error, _ = mean_error(weight * (values - mean), batches)
    return min(float(variance / error**2) if error > 0 else np.inf, float(values.size))


def r_hat(values: np.ndarray) -> float:
    """Split-chain potential scale reduction of (chain, draw) values; weighted draws pass their pseudo-values."""
    half = values.shape[1] // 2
    if half < 2:
        return np.inf
    halves = np.concatenate([values[:, :half], values[:, -half:]])
    within = halves.var(axis=1, ddof=1).mean()
    between = halves.mean(axis=1).var(ddof=1)
    if within == 0:
        return 1.0 if between == 0 else np.inf
    return float(np.sqrt((half - 1) / half + between / within))


def heavy_share(log_weight: np.ndarray, times: float) -> float:
    """Share of all weight that is held by draws of more than so many times the mean weight."""
    weight, _ = relative(np.ravel(log_weight))
    return float(weight[weight > times * weight.mean()].sum() / weight.sum())


def pareto_k(log_weight: np.ndarray) -> float:
    """Tail index of the largest weights (Vehtari et al. 2024): above 0.7 a mean of weights is not to be believed.

    The generalised Pareto is fitted to the upper tail by Zhang and Stephens' (2009) posterior mean.
    The tail is the upper tenth: draws of a chain are correlated, and a shorter tail would be a few excursions.
    """
    weight, _ = relative(np.ravel(log_weight))
    size = weight.size // 10
    if size < 5:
        return np.inf
    ordered = np.sort(weight)
    excess = ordered[-size:] - ordered[-size - 1]
    if np.unique(np.round(excess, 9)).size < 5:  # a few atoms: bounded, unless one draw is nearly all there is
        return np.inf if ordered[-1] > DOMINANT * weight.sum() else -np.inf
    return _fit_pareto_shape(np.maximum(excess, 1e-300))


def _fit_pareto_shape(excess: np.ndarray) -> float:
    """Shape of the generalised Pareto law of sorted, positive excesses, shrunk weakly towards 0.5."""
    size = excess.size
    num_grid = 30 + int(np.sqrt(size))
    quartile = excess[int(size / 4 + 0.5) - 1]
    grid = 1 / excess[-1] + (1 - np.sqrt(num_grid / (np.arange(1, num_grid + 1) - 0.5))) / (3 * quartile)
    shape = np.mean(np.log1p(-grid[:, None] * excess), axis=1)
    likelihood = size * (np.log(-grid / shape) - shape - 1)
    weight = 1 / np.sum(np.exp(np.minimum(likelihood - likelihood[:, None], 700)), axis=1)
    rate = np.sum(grid * weight) / np.sum(weight)
    fitted = np.mean(np.log1p(-rate * excess))
    return float((size * fitted + 10 * 0.5) / (size + 10))


def kish_share(log_weight: np.ndarray) -> float:
    """Kish's effective number of weights, as a share of them; none where all are nothing."""
    largest = np.max(log_weight, initial=-np.inf)
    if not np.isfinite(largest):
        return 0.0
    weight = np.exp(log_weight - largest)
    return float(weight.sum() ** 2 / np.sum(weight**2) / weight.size)


def returns(draws: Draws) -> float:
    """Independent returns to the base: accepted jumps, in expectation, of a method that jumps, else round trips."""
    jumps = float(draws.jump_acceptance.sum())
    return jumps if jumps > 0 else float(round_trips(draws).sum())


def round_trips(draws: Draws) -> np.ndarray:
    """Journeys from base to target and back, by each chain; by all its replicas, where it is an ensemble."""
    if has_stages(draws):
        return draws.num_round_trips.sum(axis=1)
    return np.array([np.count_nonzero(np.diff(row[row != 0])) // 2 for row in path_ends(draws)])


def path_ends(draws: Draws) -> np.ndarray:
    """1 for a draw at the target's end of the path, -1 at the base's, 0 between.

    A draw is at an end of the path when it carries at least half the average weight for that end and more
    of it than for the other: a measure that needs no threshold on beta, which means different things on
    different paths. Where base and target agree, so that weights cannot tell, beta does.
    """
    for_target, for_base = relative(draws.log_weight_target)[0], relative(draws.log_weight_base)[0]
    ahead = for_target - for_base
    side = np.where(np.abs(ahead) > 1e-9, ahead, draws.inverse_temperature - 0.5)
    return np.where((side > 0) & (for_target >= 0.5), 1, np.where((side <= 0) & (for_base >= 0.5), -1, 0))


def occupancy(draws: Draws, log_prior: Callable[[np.ndarray], np.ndarray], *, num_parts: int = 16) -> np.ndarray:
    """Share of time in each of `num_parts` parts of the path of equal thermodynamic length, times their number.

    The length is the integral of the standard deviation of r at each beta; all from the draws, reweighted.
    """
    stride = max(1, draws.log_ratio.size // 4096)
    log_ratio, log_weight = draws.log_ratio.ravel()[::stride], draws.log_weight_base.ravel()[::stride]
    log_ratio, log_weight = (part[np.isfinite(log_ratio)] for part in (log_ratio, log_weight))
    grid = np.concatenate([[0.0], 1 / (1 + np.exp(-np.linspace(-12, 12, 127))), [1.0]])
    terms = grid[:, None] * log_ratio + log_weight
    log_partition = special.logsumexp(terms, axis=1)
    shares = np.exp(terms - log_partition[:, None])
    mean = shares @ log_ratio
    speed = np.sqrt(np.maximum(shares @ log_ratio**2 - mean**2, 0.0))
    log_density = log_partition + log_prior(grid)
    density = np.exp(log_density - log_density.max())
    length, mass = (np.append(0, np.cumsum(0.5 * (f[1:] + f[:-1]) * np.diff(grid))) for f in (speed, density))
    if length[-1] == 0:
        return np.ones(num_parts)
    at_parts = np.interp(np.linspace(0, length[-1], num_parts + 1), length, mass / mass[-1])
    return np.diff(at_parts) * num_parts


def tours(draws: Draws, log_mean_ratio: float) -> tuple[float, float]:
    """The target's share where it exceeds the base `THIN` times, and the effective number of stays that hold it.

    There chains come by walking, not by the base's draws, and a few long stays may hold what most runs never see:
    stays of weights m count as (sum m)^2 / sum m^2. A visit to the base ends a stay.
    """
    weight, ends = relative(draws.log_weight_target)[0], path_ends(draws)
    is_thin = draws.log_ratio > log_mean_ratio + np.log(THIN)
    masses = []
    for inside, at, carried in zip(is_thin, ends, weight, strict=True):
        stay = np.cumsum(np.append(True, (np.diff(inside) != 0) | (at[:-1] == -1)))
        masses.append(np.bincount(stay, carried * inside))
    mass = np.concatenate(masses)
    total = mass.sum()
    return float(total / weight.sum()), float(total**2 / np.sum(mass**2)) if total > 0 else 0.0


def are_explored(draws: Draws, log_mean_ratio: float, error: float) -> bool:
    """Whether what lies beyond the base's reach holds less than an error of log Z, or rests on many tours."""
    share, number = tours(draws, log_mean_ratio)
    return share < error or number >= MANY_TOURS


def difference_p_value(first: Estimate, second: Estimate) -> float:
    """Two-sided p-value that two independent estimates share one truth, by Welch's test."""
    return float(2 * normal_tail(abs((first + -second).z_score(0.0))))
