"""Mixtures of Gaussians fitted to weighted draws by expectation maximisation."""

from typing import Any, NamedTuple

import numpy as np

from thermocline.bases import BaseFit, Gaussian, Mixture
from thermocline.fits.clusters import cluster
from thermocline.fits.weighted import weighted_draws_of, weighted_moments
from thermocline.records import WeightedDraws
from thermocline.support.errors import ThermoclineError
from thermocline.support.flat import ravelled_rows, unravelled

MOST_STEPS = 200
LEAST_GAIN = 1e-5  # of the mean log density in a step, in nats, at which it ends
LEAST_SIZE = 2.0  # effective draws below which a component has no support
LEAST_VARIANCE = 1e-8  # of a component, relative to that of all draws
NUM_STARTS = 4


def fit_mixture(
    source: Any,
    *,
    seed: int = 0,
    num_components: int = 4,
    start: Mixture | None = None,
    diagonal: bool = False,
    like: Any = None,
    log_zeta: float | None = None,
) -> BaseFit:
    """The mixture of Gaussians of largest likelihood for weighted draws, with covariances shrunk a little.

    `source` and `like` are as for `fit_moments`. It goes up from `start`, whose components without support are kept as
    they are, or from the best of four clusterings. log zeta is what is given, else the Result's log evidence, else
    0: a mere placeholder. The trace has the draws' mean log density by step.
    """
    draws = weighted_draws_of(source, like)
    starts = [start] if start is not None else _starts(draws, num_components, diagonal, seed)
    ends = [em_fit(one, draws.position, draws.weight, start is not None) for one in starts]
    best = max(ends, key=lambda end: end.trace[-1])
    known = draws.log_evidence if log_zeta is None else log_zeta
    notes = f"Expectation maximisation fitted {best.mixture.num_components} Gaussians to {len(draws.weight)} draws."
    return BaseFit(best.mixture, float(known or 0.0), trace=best.trace, notes=(notes,))


class EmFit(NamedTuple):
    """Where expectation maximisation ended, and the draws' mean log density by step."""

    mixture: Mixture
    trace: np.ndarray


def em_fit(
    mixture: Mixture, positions: np.ndarray, weights: np.ndarray, keep: Any = True, *, most_steps: int = MOST_STEPS
) -> EmFit:
    """The mixture of Gaussians that fits weighted draws (ravelled, one a row) best, from a given one.

    Steps go on until the mean log density changes no more. A component supported by fewer than two effective draws
    keeps its mean, scale and weight if `keep`, one answer or one for each component, says so; otherwise it becomes
    padding. Padding stays padding.
    """
    weights, trace = np.asarray(weights) / np.sum(weights), []
    components = Components.of(mixture)
    while len(trace) < most_steps and not (len(trace) > 1 and abs(trace[-1] - trace[-2]) < LEAST_GAIN):
        components, height = em_step(components, np.asarray(positions), weights, keep)
        trace.append(height)
    return EmFit(components.mixture(mixture.component(0).mean), np.array(trace))


class Components(NamedTuple):
    """Gaussians on ravelled positions, with a leading axis over them."""

    mean: np.ndarray
    scale: np.ndarray
    log_weight: np.ndarray

    @classmethod
    def of(cls, mixture: Mixture) -> "Components":
        scales, log_weights = np.asarray(mixture.components.scale_tril), np.asarray(mixture.log_weights, float)
        return cls(ravelled_rows(mixture.components.mean), scales, log_weights)

    def mixture(self, like: Any) -> Mixture:
        """As a base on PyTrees like this one."""
        pairs = zip(self.mean, self.scale, strict=True)
        gaussians = [Gaussian(unravelled(mean, like), scale).prepared() for mean, scale in pairs]
        return Mixture.stacked(gaussians, self.log_weight)

    def log_densities(self, positions: np.ndarray) -> np.ndarray:
        """Log of weight times density, (component, draw); -inf for padding."""
        heights = np.full((len(self.mean), len(positions)), -np.inf)
        for k in np.flatnonzero(np.isfinite(self.log_weight)):
            heights[k] = self.log_weight[k] + Gaussian(self.mean[k], self.scale[k]).log_density_of_rows(positions)
        return heights


def em_step(old: Components, positions: np.ndarray, weights: np.ndarray, keep: Any) -> tuple[Components, float]:
    """One step, and the mean log density before it.

    A component's covariance is shrunk towards the mean covariance within components, as if that had been seen in D + 2
    further draws. One whose shares, however even, do not amount to two draws loses its weight but stays where it is.
    """
    log_shares = old.log_densities(positions)
    log_total = np.logaddexp.reduce(log_shares, axis=0)
    with np.errstate(invalid="ignore"):
        shares = weights * np.nan_to_num(np.exp(log_shares - log_total))  # (component, draw)
    mass = shares.sum(axis=1)
    size = mass**2 / np.maximum(np.sum(shares**2, axis=1), np.finfo(float).tiny)
    is_supported = (size > LEAST_SIZE) & (mass > 0)
    moves = is_supported & (mass > LEAST_SIZE * np.sum(weights**2))
    mean, scale = old.mean.copy(), old.scale.copy()
    spreads = {k: weighted_moments(positions, shares[k]) for k in np.flatnonzero(is_supported)}
    least = LEAST_VARIANCE * np.diag(weighted_moments(positions, weights)[1].diagonal())
    within = sum((mass[k] * spread for k, (_, spread) in spreads.items()), np.zeros_like(least)) / mass.sum() + least
    prior, is_new = positions.shape[1] + 2.0, np.zeros(len(mass), bool)
    for k, (centre, spread) in spreads.items():
        factor = _factor((size[k] * spread + prior * within) / (size[k] + prior), old.scale.ndim == 2)
        is_new[k] = np.all(np.isfinite(factor))
        if is_new[k] and moves[k]:
            mean[k], scale[k] = centre, factor
    return Components(mean, scale, _log_weights(old.log_weight, mass, is_new, keep)), float(weights @ log_total)


def _log_weights(old: np.ndarray, mass: np.ndarray, is_new: np.ndarray, keep: Any) -> np.ndarray:
    """Those kept have the weight they had; those with support share the rest by their mass."""
    kept = np.where(~is_new & np.asarray(keep), old, -np.inf)
    rest = np.log1p(-min(np.sum(np.exp(kept)), 1.0)) if np.sum(np.exp(kept)) < 1 else -np.inf
    new = np.where(is_new, np.log(np.where(is_new, mass, 1.0)), -np.inf)
    total = np.logaddexp.reduce(new)
    new = np.where(is_new, new - (total if np.isfinite(total) else 0.0) + rest, kept)
    return new - np.logaddexp.reduce(new)


def _factor(covariance: np.ndarray, is_diagonal: bool) -> np.ndarray:
    """A scale factor: deviations, or a lower triangle; NaN where there is none."""
    if is_diagonal:
        return np.sqrt(np.diagonal(covariance))
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return np.full_like(covariance, np.nan)


def _starts(draws: WeightedDraws, num_components: int, diagonal: bool, seed: int) -> list[Mixture]:
    """Mixtures of clusters: their means and shares, and the covariance within them, pooled."""
    if draws.num_effective < LEAST_SIZE * num_components:
        raise ThermoclineError(
            f"the weights amount to {draws.num_effective:.1f} draws, too few for {num_components} components; "
            "ask for fewer, or give more draws."
        )
    labels = [cluster(draws, num_components, seed, index) for index in range(NUM_STARTS)]
    return [mixture_of_clusters(label, draws, diagonal) for label in labels]


def mixture_of_clusters(label: np.ndarray, draws: WeightedDraws, diagonal: bool = False) -> Mixture:
    """A Gaussian for every cluster, by its mean and share; the covariance is that within clusters, pooled."""
    shares = draws.weight * (label == np.unique(label)[:, None])
    mass = shares.sum(axis=1)
    means = shares @ draws.position / mass[:, None]
    centred = draws.position - means[np.searchsorted(np.unique(label), label)]
    covariance = (centred.T * draws.weight) @ centred
    covariance += np.diag(1e-3 * np.var(draws.position, axis=0))
    scale = np.sqrt(np.diagonal(covariance)) if diagonal else np.linalg.cholesky(covariance)
    return Mixture.of([Gaussian(draws.unravel(mean), scale) for mean in means], np.log(mass))
