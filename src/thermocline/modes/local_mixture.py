"""A mixture of local fits, one for each mode that a search found (eq. variational-mixture-approx)."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.bases.gaussian import Gaussian
from thermocline.bases.laplace import laplace_covariance, log_laplace_mass
from thermocline.bases.mixture import SIZES, Mixture
from thermocline.modes.search import Found

MOST_COMPONENTS = SIZES[-1]
SAME_FIT = 0.5  # Bhattacharyya's distance below which two fits are of one mode


class LocalFit(NamedTuple):
    """A Gaussian for one mode, ravelled, the log of the mass it stands for, and where the mode is highest."""

    mean: np.ndarray
    covariance: np.ndarray
    log_mass: float
    location: np.ndarray
    log_density: float
    found_by: str  # "starts", or "draws" of chains or of a fit
    log_laplace: float  # mass by Laplace's formula, whatever the fit has become


def local_fits(found: Found) -> list[LocalFit]:
    """For every mode the Gaussian with the moments of its optima's Laplace approximations, heaviest first."""
    fits = [fit_of_mode(found, mode) for mode in range(found.num_modes)]
    return sorted(fits, key=lambda fit: -fit.log_mass)


def fit_of_mode(found: Found, mode: int) -> LocalFit:
    members = np.flatnonzero(found.mode == mode)
    height, positions = found.optima.log_density[members], found.optima.position[members]
    weight = np.exp(height - height.max())
    mean, spread = moments(positions, weight / weight.sum())
    covariances = [local_covariance(found.curvature[i], np.trace(spread)) for i in members]
    covariance = np.average(covariances, axis=0, weights=weight) + spread
    log_mass = max(log_laplace_mass(h, c) for h, c in zip(height, covariances, strict=True))
    best = members[0]
    origin = "starts" if found.is_from_starts(mode) else "draws"
    return LocalFit(
        mean, covariance, log_mass, found.optima.position[best], float(found.optima.log_density[best]), origin, log_mass
    )


def moments(positions: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of weighted rows; the weights sum to one."""
    mean = weight @ positions
    return mean, (positions - mean).T @ ((positions - mean) * weight[:, None])


def local_covariance(curvature: np.ndarray, extent: float) -> np.ndarray:
    """Laplace's covariance; along a continuum of optima, which is flat, no wider than the continuum is long."""
    values, vectors = np.linalg.eigh(laplace_covariance(curvature))
    is_continuum = extent > 10 * values[0]
    return (vectors * np.minimum(values, extent if is_continuum else np.inf)) @ vectors.T


def bhattacharyya_distance(first: LocalFit, second: LocalFit) -> float:
    """Between two Gaussians: 0 for the same, large for those that do not overlap."""
    middle = 0.5 * (first.covariance + second.covariance)
    offset = first.mean - second.mean
    log_determinants = [np.linalg.slogdet(c)[1] for c in (middle, first.covariance, second.covariance)]
    return float(
        offset @ np.linalg.solve(middle, offset) / 8
        + 0.5 * (log_determinants[0] - 0.5 * (log_determinants[1] + log_determinants[2]))
    )


def is_new(fit: LocalFit, known: list[LocalFit]) -> bool:
    """Whether no known fit is about the same."""
    return all(bhattacharyya_distance(fit, other) > SAME_FIT for other in known)


def mixture_of(fits: list[LocalFit], like: Any) -> Mixture:
    """The fits as one base on the PyTree of `like`, with weights in proportion to their masses."""
    unravel = ravel_pytree(like)[1]
    components = [Gaussian.from_covariance(jax.tree.map(np.asarray, unravel(f.mean)), f.covariance) for f in fits]
    return Mixture.of(components, [fit.log_mass for fit in fits])


def refitted(fits: list[LocalFit], mixture: Mixture) -> list[LocalFit]:
    """The same modes with the components that a mixture has learned for them."""
    means, scales = np.asarray(mixture.centres()), np.asarray(mixture.components.scale_tril)
    return [
        fit._replace(mean=means[i], covariance=scales[i] @ scales[i].T, log_mass=float(mixture.log_weights[i]))
        for i, fit in enumerate(fits)
    ]
