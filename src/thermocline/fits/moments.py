"""The Gaussian with given moments: the paper's proposal for a base that lets chains move between modes."""

from functools import partial
from typing import Any

import jax
import numpy as np

from thermocline.bases.base import BaseFit
from thermocline.bases.gaussian import Gaussian
from thermocline.bases.mixture import Mixture
from thermocline.records import WeightedDraws
from thermocline.support.errors import ThermoclineError
from thermocline.support.flat import ravelled_rows, unravelled


def fit_moments(source: Any, *, like: Any = None, log_zeta: float | None = None) -> BaseFit:
    """The Gaussian with the mean and covariance of a base, exactly, or of weighted draws.

    `source` is one of our bases or a BaseFit of one, a Result, or a pair (positions, log_weights); `like` is one
    position as the target takes it, for a pair of ravelled positions. Correlations of few effective draws are shrunk
    towards none. log zeta is what is given, else the BaseFit's own or the Result's log evidence, else 0: a mere
    placeholder.
    """
    fit = source if isinstance(source, BaseFit) else BaseFit(source, 0.0)
    source = fit.base
    if hasattr(source, "covariance"):
        source = Mixture.of([source], [0.0])
    if isinstance(source, Mixture):
        mean, covariance = mixture_moments(source)
        base = Gaussian.from_covariance(unravelled(mean, source.component(0).mean), covariance)
        origin = "a base"
    else:
        draws = weighted_draws_of(source, like)
        mean, covariance = weighted_moments(draws.position, draws.weight)
        base = Gaussian.from_covariance(draws.unravel(mean), shrunk(covariance, draws.num_effective))
        fit = fit._replace(log_zeta=draws.log_evidence or 0.0)
        origin = f"{len(draws.weight)} weighted draws, {draws.num_effective:.0f} of them effective"
    if log_zeta is not None:
        fit = fit._replace(log_zeta=log_zeta, log_zeta_is="estimate")
    notes = (f"A Gaussian was given the mean and covariance of {origin}.",)
    return BaseFit(base, float(fit.log_zeta), fit.num_gradients, fit.log_zeta_is, notes=notes)


def weighted_draws_of(source: Any, like: Any = None) -> WeightedDraws:
    """From a Result, or from a pair (positions, log weights).

    Positions are a PyTree whose leaves have a leading axis, or a matrix of ravelled ones if `like`, one
    position as the target takes it, is given. Log weights of None are equal; a draw of weight nothing is left out.
    """
    log_evidence = None
    if hasattr(source, "unconstrained"):  # a Result, which imports bases
        log_evidence = None if source.log_evidence is None else float(source.log_evidence.value)
        by_name = {name: values.reshape(-1, *values.shape[2:]) for name, values in source.unconstrained.items()}
        is_shown_alike = set(jax.tree.leaves(source.template)) == set(by_name)  # else positions are a dict by name
        positions = jax.tree.map(by_name.__getitem__, source.template) if is_shown_alike else by_name
        source = positions, np.ravel(source.draws.log_weight_target)
    if not isinstance(source, tuple | list) or len(source) != 2:
        raise ThermoclineError("give a Result, or a pair (positions, log_weights), with log_weights None if equal.")
    positions, log_weights = source
    flat = np.asarray(ravelled_rows(positions), float)
    log_weights = np.zeros(len(flat)) if log_weights is None else np.asarray(log_weights, float)
    if log_weights.shape != flat.shape[:1]:
        raise ThermoclineError(f"there are {len(flat)} positions but log weights of shape {log_weights.shape}.")
    used = np.isfinite(log_weights) & np.isfinite(flat).all(axis=1)
    if not used.any():
        raise ThermoclineError("no draw has a finite position and a finite log weight.")
    weight = np.exp(log_weights[used] - log_weights[used].max())
    one = jax.tree.map(lambda leaf: np.asarray(leaf, float)[0], positions) if like is None else like
    return WeightedDraws(flat[used], weight / weight.sum(), partial(unravelled, like=one), log_evidence)


def weighted_moments(positions: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of weighted rows, as of a population; the weights need not sum to one."""
    weights = weights / np.sum(weights)
    mean = weights @ positions
    centred = positions - mean
    return mean, (centred.T * weights) @ centred


def mixture_moments(mixture: Mixture) -> tuple[np.ndarray, np.ndarray]:
    """Exact mean and covariance of the ravelled position: within components plus between them."""
    weights = np.exp(np.asarray(mixture.log_weights, float))
    mean, between = weighted_moments(mixture.centres(), weights)
    within = np.stack([np.asarray(base.covariance()) for base in mixture.each()])
    return mean, np.einsum("k,kij->ij", weights / weights.sum(), within) + between


def shrunk(covariance: np.ndarray, num_effective: float) -> np.ndarray:
    """A sample covariance, its correlations scaled down by oracle approximating shrinkage (Chen et al. 2010).

    The variances are made unbiased and otherwise left alone. Nothing is shrunk once draws are many for the dimension.
    """
    variances, dimension = np.diagonal(covariance), len(covariance)
    if num_effective < 2 or not np.all(variances > 0):
        raise ThermoclineError(
            f"the weights amount to {num_effective:.2f} draws, or a coordinate never varies: no covariance can be had; "
            "give more draws, or a base nearer to the target."
        )
    deviations = np.sqrt(variances)
    correlation = covariance / np.outer(deviations, deviations)
    squares = np.sum(correlation**2)
    surplus = (num_effective + 1 - 2 / dimension) * (squares - dimension)
    shrinkage = min(1.0, ((1 - 2 / dimension) * squares + dimension**2) / surplus) if surplus > 0 else 1.0
    correlation = (1 - shrinkage) * correlation + shrinkage * np.eye(dimension)
    return correlation * np.outer(deviations, deviations) * num_effective / (num_effective - 1)
