"""Local fits, one for each mode that a search found, and their mixture."""

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from thermocline.bases import Gaussian, Mixture
from thermocline.bases.mixture import SIZES
from thermocline.evaluator import Evaluator
from thermocline.fits.importance import draw_importance
from thermocline.modes.search import Found
from thermocline.support.flat import unravelled

MOST_COMPONENTS = SIZES[-1]
LEARNING_SIZE, MOST_DIMENSIONS_WITH_ROOM = 16, 64
FLAT_FOR_LAPLACE = 1e-5  # curvature, relative to the largest, at which Laplace's formula says nothing of a mass
LEAST_EIGENVALUE = 1e-10  # of the correlations of a fit
SAME_FIT = 0.5  # Bhattacharyya's distance below which two fits are of one mode


class LocalFit(NamedTuple):
    """A Gaussian for one mode, ravelled, the log of the mass it stands for, and where the mode is highest."""

    mean: np.ndarray
    covariance: np.ndarray
    log_mass: float
    location: np.ndarray
    log_density: float
    found_by: str  # "starts", or "draws" of chains or of a fit
    log_laplace: float  # mass by Laplace's formula, whatever the fit has become; -inf for a continuum


def local_fits(found: Found) -> list[LocalFit]:
    """For every mode the Gaussian with the moments of its optima's Laplace approximations; the heaviest, in order."""
    masses = [log_mass_of_mode(found, mode) for mode in range(found.num_modes)]
    return [fit_of_mode(found, int(mode)) for mode in np.argsort(-np.asarray(masses), kind="stable")[:MOST_COMPONENTS]]


def fit_of_mode(found: Found, mode: int) -> LocalFit:
    """The Gaussian for one mode, whatever its mass."""
    members = np.flatnonzero(found.mode == mode)
    height, positions = found.optima.log_density[members], found.optima.position[members]
    weight = np.exp(height - height.max())
    weight /= weight.sum()
    mean, spread = moments(positions, weight)
    variances, vectors = local_variances(found, members)
    covariance = np.einsum("m,mij,mj,mkj->ik", weight, vectors, variances, vectors, optimize=True)
    log_mass = log_mass_of_mode(found, mode)
    best, origin = members[0], "starts" if found.is_from_starts(mode) else "draws"
    location, log_density = found.optima.position[best], float(found.optima.log_density[best])
    values = found.curvature.values[best]
    has_volume = len(members) == 1 and values[0] > FLAT_FOR_LAPLACE * values[-1]
    log_laplace = log_mass if has_volume else -np.inf
    return LocalFit(mean, conditioned(covariance + spread), log_mass, location, log_density, origin, log_laplace)


def log_mass_of_mode(found: Found, mode: int) -> float:
    """Laplace's formula at the best of its optima."""
    members = np.flatnonzero(found.mode == mode)
    log_volume = 0.5 * np.sum(np.log(2 * np.pi * local_variances(found, members)[0]), axis=1)
    return float(np.max(found.optima.log_density[members] + log_volume))


def local_variances(found: Found, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Laplace's, of some optima of one mode, and their directions; a continuum is no wider than it is long."""
    variances, vectors = np.linalg.eigh(found.curvature.chosen(members).covariances())
    variances, extent = np.maximum(variances, 1e-300), found.optima.position[members].var(axis=0).sum()
    is_continuum = extent > 10 * variances.min(axis=1, keepdims=True)
    return np.where(is_continuum, np.minimum(variances, extent), variances), vectors


def moments(positions: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of weighted rows; the weights sum to one."""
    mean = weight @ positions
    return mean, (positions - mean).T @ ((positions - mean) * weight[:, None])


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


def mixture_of(fits: list[LocalFit], like: Any, *, at_least: int | None = None) -> Mixture:
    """The fits as one base on the PyTree of `like`, with weights in proportion to their masses.

    Unless told otherwise it has room for as many components as any that are learned with, so that a search
    compiles its programs once; in many dimensions room is dearer than compiling.
    """
    at_least = at_least or (LEARNING_SIZE if fits[0].mean.size <= MOST_DIMENSIONS_WITH_ROOM else 1)
    components = [Gaussian.from_covariance(unravelled(fit.mean, like), fit.covariance) for fit in fits]
    return Mixture.of(components, [fit.log_mass for fit in fits], at_least=at_least)


def conditioned(covariance: np.ndarray) -> np.ndarray:
    """A covariance whose correlations have no eigenvalue too small for floating point; others as they are."""
    deviations = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(deviations, deviations))
    if values[0] > LEAST_EIGENVALUE:
        return covariance
    correlations = (vectors * np.maximum(values, LEAST_EIGENVALUE)) @ vectors.T
    return correlations * np.outer(deviations, deviations)


def refitted(fits: list[LocalFit], mixture: Mixture, log_evidence: float) -> list[LocalFit]:
    """The same modes with the components that a mixture has learned for them, which share the evidence among them.

    Where there is none, because no draw was on the support, nothing was learned.
    """
    if not np.isfinite(log_evidence):
        return fits
    means, scales = np.asarray(mixture.centres()), np.asarray(mixture.components.scale_tril)
    log_masses = log_evidence + np.asarray(mixture.log_weights)
    return [
        fit._replace(mean=means[i], covariance=scales[i] @ scales[i].T, log_mass=float(log_masses[i]))
        for i, fit in enumerate(fits)
    ]


def evened(fits: list[LocalFit]) -> list[LocalFit]:
    """The fits with masses brought within a factor of twenty: nobody knows better yet."""
    heaviest = max(fit.log_mass for fit in fits)
    return [fit._replace(log_mass=max(fit.log_mass, heaviest - np.log(20))) for fit in fits]


def objective(generator: np.random.Generator, evaluate: Evaluator, fit: LocalFit) -> float:
    """The variational objective of a fit: log Z minus the KL divergence from it to the target, from its draws."""
    single = mixture_of([fit], evaluate.target.initial_position)
    return float(np.mean(draw_importance(generator, evaluate, single).log_weight))


def do_overlap(fits: list[LocalFit]) -> bool:
    """Whether any two fits share more than a hundredth of their mass."""
    pairs = combinations(fits, 2)
    return any(bhattacharyya_distance(first, second) < -np.log(0.01) for first, second in pairs)
