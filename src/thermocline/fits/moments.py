"""The Gaussian with given moments: the paper's proposal for a base that lets chains move between modes."""

from typing import Any

import numpy as np

from thermocline.bases.base import BaseFit
from thermocline.bases.gaussian import Gaussian
from thermocline.bases.mixture import Mixture
from thermocline.fits.weighted import weighted_draws_of, weighted_moments
from thermocline.support.errors import ThermoclineError
from thermocline.support.flat import ravelled_rows, unravelled


def fit_moments(source: Any, *, like: Any = None, log_zeta: float | None = None) -> BaseFit:
    """The Gaussian with the mean and covariance of a base, exactly, or of weighted draws.

    `source` is one of our bases or a BaseFit of one, a Result, or a pair (positions, log_weights); `like` is one
    position as the target takes it, for a pair of ravelled positions. Correlations of few effective draws are shrunk
    towards none. log zeta is what is given, else the BaseFit's own or the Result's log evidence, else 0: a mere
    placeholder.
    """
    fitted = source if isinstance(source, BaseFit) else None
    source = source if fitted is None else fitted.base
    if hasattr(source, "covariance"):
        source = Mixture.of([source], [0.0])
    if isinstance(source, Mixture):
        mean, covariance = mixture_moments(source)
        base = Gaussian.from_covariance(unravelled(mean, source.component(0).mean), covariance)
        known, notes = None if fitted is None else fitted.log_zeta, "a base"
    else:
        draws = weighted_draws_of(source, like)
        mean, covariance = weighted_moments(draws.position, draws.weight)
        base = Gaussian.from_covariance(draws.unravel(mean), shrunk(covariance, draws.num_effective))
        known = draws.log_evidence
        notes = f"{len(draws.weight)} weighted draws, {draws.num_effective:.0f} of them effective"
    log_zeta, is_known = (known, True) if log_zeta is None else (log_zeta, False)
    return BaseFit(
        base,
        float(0.0 if log_zeta is None else log_zeta),
        0 if fitted is None else fitted.num_gradients,
        fitted.log_zeta_is if fitted is not None and is_known else "estimate",
        notes=(f"A Gaussian was given the mean and covariance of {notes}.",),
    )


def mixture_moments(mixture: Mixture) -> tuple[np.ndarray, np.ndarray]:
    """Exact mean and covariance of the ravelled position: within components plus between them."""
    weights = np.exp(np.asarray(mixture.log_weights, float))
    mean, between = weighted_moments(ravelled_rows(mixture.components.mean), weights)
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
