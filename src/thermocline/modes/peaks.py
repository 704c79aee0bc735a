"""A local fit for every mode: where it is highest, its shape in the target's own units, and its mass."""

from typing import NamedTuple

import numpy as np

from thermocline.evaluator import Evaluator
from thermocline.fits.curvature import Curvature, are_optima, curvature_at
from thermocline.fits.lbfgs import Optima

SAME = 0.3  # deviations, and as many times the fourth root of the dimension, between ends that are one optimum
NOTHING = 50.0  # nats below the heaviest, by Laplace's formula, which may be off by some
HIGHER = 0.5  # nats above an optimum, of an end that is another
BENT_UP = 0.05  # curvature, in units of its own size, at which an end is a saddle
PUSHES = np.array([-3.0, -1.0, 1.0, 3.0])  # deviations along the worst direction of a saddle
MOST_SADDLES = 8  # pushed off in one go


class Peak(NamedTuple):
    """A Gaussian about an optimum: covariance R Rᵀ, and the log of the mass it stands for.

    Where there is no optimum (an edge, a density without bound) it is the best fit along an ascent, with the mass that
    its draws found, and `highest` is where the ascent ended.
    """

    location: np.ndarray
    log_density: float
    root: np.ndarray  # R
    whitening: np.ndarray  # its inverse
    log_volume: float
    log_mass: float
    highest: np.ndarray
    found_by: str

    @property
    def is_optimum(self) -> bool:
        return self.highest is self.location

    def distance(self, rows: np.ndarray) -> np.ndarray:
        """From the optimum, in its own deviations."""
        return np.linalg.norm((rows - self.location) @ self.whitening.T, axis=-1)


def peak_of(location: np.ndarray, log_density: float, root: np.ndarray, found_by: str) -> Peak:
    """An optimum with the covariance of its curvature by its root, and Laplace's mass."""
    log_volume = float(np.linalg.slogdet(root)[1] + 0.5 * len(location) * np.log(2 * np.pi))
    height = float(log_density)
    return Peak(location, height, root, np.linalg.inv(root), log_volume, height + log_volume, location, found_by)


def massive(peaks: list[Peak]) -> list[Peak]:
    """The heaviest first, without those that are nothing beside it: optima of a far plain, of no mass at any error."""
    peaks = sorted(peaks, key=lambda peak: -peak.log_mass)
    return [peak for peak in peaks if peak.log_mass > peaks[0].log_mass - NOTHING]


def home_of(rows: np.ndarray, log_density: np.ndarray, peaks: list[Peak]) -> np.ndarray:
    """The known mode at which each end of an ascent lies, in that one's own units; -1 for none.

    What is higher than an optimum is another: a spike on its slab. Ends at an edge, or of a density without bound, are
    at home anywhere within the reach of the fit, and of the way from there to where the density was highest.
    """
    if not peaks:
        return np.full(len(rows), -1)
    size = rows.shape[1]
    limits = np.array([SAME * (1 + size**0.25) if peak.is_optimum else 2 + np.sqrt(size) for peak in peaks])
    offsets = rows[None] - np.array([peak.location for peak in peaks])[:, None]
    whitening = np.array([peak.whitening.T for peak in peaks])
    white, way = offsets @ whitening, np.array([peak.highest - peak.location for peak in peaks])[:, None] @ whitening
    length = np.sum(way**2, axis=2)  # zero for an optimum
    along = np.clip(np.sum(white * way, axis=2) / np.where(length > 0, length, 1.0), 0.0, 1.0)
    white = white - along[..., None] * way
    distances = np.sqrt(np.einsum("pnd,pnd->np", white, white)) / limits
    tops = np.array([peak.log_density + HIGHER if peak.is_optimum else np.inf for peak in peaks])
    distances = np.where(log_density[:, None] > tops, np.inf, distances)
    nearest = np.argmin(distances, axis=1)
    return np.where(distances[np.arange(len(rows)), nearest] < 1, nearest, -1)


def admitted(
    evaluate: Evaluator, ends: Optima, peaks: list[Peak], found_by: str, most: int
) -> tuple[list[Peak], np.ndarray]:
    """New peaks among the ends of ascents, highest first, and starts that push off from saddles met on the way."""
    new: list[Peak] = []
    pushed: list[np.ndarray] = []
    is_home = home_of(ends.position, ends.log_density, peaks) >= 0
    for i in np.argsort(-np.where(np.isfinite(ends.log_density), ends.log_density, -np.inf), kind="stable"):
        if len(peaks) + len(new) >= most or not np.isfinite(ends.log_density[i]):
            break
        if is_home[i] or home_of(ends.position[[i]], ends.log_density[[i]], new)[0] >= 0:
            continue
        curvature = curvature_at(evaluate, ends.position[[i]], deviations=guessed_deviations(ends, peaks))
        if not curvature.is_usable[0]:
            continue
        if is_saddle(curvature):
            pushed += list(pushes(ends.position[i], curvature)) if len(pushed) < MOST_SADDLES * len(PUSHES) else []
        elif are_optima(curvature, ends.gradient[[i]])[0]:
            new.append(peak_of(ends.position[i], float(ends.log_density[i]), curvature.roots()[0], found_by))
    starts = np.array(pushed).reshape(-1, ends.position.shape[1])
    return new, starts


def guessed_deviations(ends: Optima, peaks: list[Peak]) -> np.ndarray | None:
    """What steps of differences may begin with: the metric of the ascents, else that of the highest peak."""
    if ends.deviations is not None:
        return ends.deviations
    return 1 / np.linalg.norm(peaks[0].whitening, axis=0) if peaks else None


def is_saddle(curvature: Curvature) -> bool:
    return bool(curvature.values[0, 0] < -BENT_UP * np.abs(curvature.values[0]).max())


def pushes(position: np.ndarray, curvature: Curvature) -> np.ndarray:
    """Places both ways along the direction in which the density bends up."""
    return position + PUSHES[:, None] * curvature.roots()[0][:, 0]
