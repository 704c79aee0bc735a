"""The partition function along the path, the marginal of beta, and Appendix A's bounds."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from thermocline.estimators.batches import mean_error
from thermocline.estimators.evidence import log_ratio_of_means, relative
from thermocline.estimators.expectation import expectation
from thermocline.records import Draws, Estimate


class Curve(NamedTuple):
    """A function of beta, with the standard error at each value."""

    betas: np.ndarray
    value: np.ndarray
    standard_error: np.ndarray


class Bounds(NamedTuple):
    """Estimates of the two sides that enclose log z(beta); not certificates."""

    betas: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def log_partition(draws: Draws, log_zeta: float, log_support: Estimate, betas: np.ndarray) -> Curve:
    """Log z(beta) at any beta: the draws reweighted by exp(beta r)/N (eq. partition-function)."""
    estimates = []
    for beta in betas:
        if beta == 0:  # z(0) = 1: the base is normalised
            estimates.append(Estimate(0.0, 0.0, np.inf))
            continue
        log_weight = tempered(beta, draws.log_ratio) + draws.log_weight_base
        ratio = log_ratio_of_means(log_weight, draws.log_weight_base)
        estimates.append(ratio + beta * log_zeta + log_support)
    errors = np.array([e.standard_error for e in estimates])
    return Curve(np.asarray(betas), np.array([e.value for e in estimates]), errors)


def beta_marginal(draws: Draws, log_prior: np.ndarray, betas: np.ndarray) -> Curve:
    """The density of beta itself, as the mean of its conditionals (eq. ct-beta-marginal); `log_prior` is -f(betas)."""
    values, errors = [], []
    for beta, log_weight in zip(betas, log_prior, strict=True):
        density = np.exp(tempered(beta, draws.log_ratio) + log_weight + draws.log_weight_base)
        values.append(density.mean())
        errors.append(mean_error(density)[0])
    return Curve(np.asarray(betas), np.array(values), np.array(errors))


def kl_base_to_target(draws: Draws, log_support: Estimate) -> Estimate:
    """d(base to target) = log Z - log zeta - E_base[r] (eq. kl-base-to-target); infinite off the support."""
    if log_support.value < 0 or np.isneginf(draws.log_ratio).any():  # a law with an atom at the base goes there
        return Estimate(np.inf, 0.0, np.inf)
    return _evidence_beyond(draws, draws.log_weight_base)


def kl_target_to_base(draws: Draws, log_support: Estimate) -> Estimate:
    """d(target to base) = E_target[r] - (log Z - log zeta)."""
    gap = _evidence_beyond(draws, draws.log_weight_target)
    return Estimate(-gap.value, gap.standard_error, gap.dof) + Estimate(
        -log_support.value, log_support.standard_error, log_support.dof
    )


def _evidence_beyond(draws: Draws, log_weight: np.ndarray) -> Estimate:
    """Log Z - log zeta - E[r] under one end of the path, with the error of the difference."""
    (target, _), (base, _), (end, _) = map(relative, (draws.log_weight_target, draws.log_weight_base, log_weight))
    finite = np.where(np.isfinite(draws.log_ratio), draws.log_ratio, 0.0)
    mean = float(np.mean(end * finite))
    error, dof = mean_error(target - base - end * (finite - mean))
    evidence = log_ratio_of_means(draws.log_weight_target, draws.log_weight_base).value
    return Estimate(evidence - expectation(finite, log_weight).value, error, dof)


def log_partition_bounds(draws: Draws, log_zeta: float, log_support: Estimate, betas: np.ndarray) -> Bounds:
    """Beta log Z - min(beta d(b to t), (1 - beta) d(t to b)) <= log z(beta) <= beta log Z (Appendix A)."""
    betas = np.asarray(betas)
    evidence = log_ratio_of_means(draws.log_weight_target, draws.log_weight_base).value + log_zeta + log_support.value
    with np.errstate(invalid="ignore"):
        forward = np.where(betas > 0, betas * kl_base_to_target(draws, log_support).value, 0.0)
    slack = np.minimum(forward, (1 - betas) * kl_target_to_base(draws, log_support).value)
    return Bounds(betas, betas * evidence - slack, betas * evidence)


def tempered(beta: float, log_ratio: np.ndarray) -> np.ndarray:
    """Beta r, and 0 at beta = 0 also where r is -inf."""
    return beta * log_ratio if beta > 0 else np.zeros_like(log_ratio)


def occupancy(draws: Draws, log_prior: Callable[[np.ndarray], np.ndarray], *, num_parts: int = 16) -> np.ndarray:
    """Share of time in each of `num_parts` parts of the path of equal thermodynamic length, times their number.

    The length is the integral of the standard deviation of r at each beta; all from the draws, reweighted.
    """
    stride = max(1, draws.log_ratio.size // 4096)
    log_ratio, log_weight = draws.log_ratio.ravel()[::stride], draws.log_weight_base.ravel()[::stride]
    log_ratio, log_weight = (part[np.isfinite(log_ratio)] for part in (log_ratio, log_weight))
    grid = np.concatenate([[0.0], 1 / (1 + np.exp(-np.linspace(-12, 12, 127))), [1.0]])
    terms = grid[:, None] * log_ratio + log_weight
    largest = terms.max(axis=1)
    shares = np.exp(terms - largest[:, None])
    log_partition = largest + np.log(shares.sum(axis=1))
    shares /= shares.sum(axis=1, keepdims=True)
    mean = shares @ log_ratio
    speed = np.sqrt(np.maximum(shares @ log_ratio**2 - mean**2, 0.0))
    log_density = log_partition + log_prior(grid)
    density = np.exp(log_density - log_density.max())
    step = np.diff(grid)
    length, mass = (np.append(0, np.cumsum(0.5 * (f[1:] + f[:-1]) * step)) for f in (speed, density))
    if length[-1] == 0:
        return np.ones(num_parts)
    at_parts = np.interp(np.linspace(0, length[-1], num_parts + 1), length, mass / mass[-1])
    return np.diff(at_parts) * num_parts
