r"""Sites of expectation propagation: Gaussians g that stand for factors f, and what the factors make of them.

A site is $g(t) = \exp(r^\top t - t^\top Q t/2)$ of $t = Bz$, the few directions that its factor depends on. With q the
product of all, $q f^\alpha/g^\alpha$ is the *tilted* density; where every tilted density has the moments of q, EP
(Minka 2001; power EP: Minka 2004) is done, and $\int q (f/g)^\alpha = e^{\alpha c}$ gives its estimate of the evidence.
"""

from typing import NamedTuple

import numpy as np

from thermocline.support.linear import inverse, log_determinant, log_sum_exp

NODES = np.linspace(-7.0, 7.0, 65)  # of the trapezoidal rule, in deviations of q: so dense for factors like steps
LEAST_SHARE, LEAST_EACH = 0.02, 10  # of draws that must count for tilted moments to be believed: of all, a direction
LOWEST = 30.0  # nats below the largest log factor of draws, to which a first regression looks


class Gaussian(NamedTuple):
    """Mean, covariance and its triangular root."""

    mean: np.ndarray
    covariance: np.ndarray
    root: np.ndarray

    def log_integral(self) -> float:
        """Log of the integral of exp(hᵀz - zᵀPz/2), of which this is the Gaussian."""
        white = inverse(self.root, np) @ self.mean
        return float(0.5 * (len(self.mean) * np.log(2 * np.pi) + white @ white) + log_determinant(self.root, np))


class Site(NamedTuple):
    """One factor's stand-in: directions B, slope r and curvature Q in them."""

    basis: np.ndarray  # (direction, dimension)
    slope: np.ndarray
    curvature: np.ndarray

    def log_densities(self, coordinates: np.ndarray) -> np.ndarray:
        """Of t, one a row."""
        quadratic = np.einsum("ki,ij,kj->k", coordinates, self.curvature, coordinates)
        return coordinates @ self.slope - 0.5 * quadratic

    def natural(self) -> tuple[np.ndarray, np.ndarray]:
        """Slope and curvature in all dimensions."""
        return self.basis.T @ self.slope, self.basis.T @ self.curvature @ self.basis


class Update(NamedTuple):
    """What sites would be with the tilted moments, c, and how far these are from those of q: NaN where not known."""

    slope: np.ndarray
    curvature: np.ndarray
    log_constant: np.ndarray
    distance: np.ndarray


class Approximation(NamedTuple):
    """All sites: a Gaussian prior, which never changes, those of one direction as arrays, and the others in a list."""

    prior: tuple[np.ndarray, np.ndarray]  # slope and precision
    unit: np.ndarray  # (site, dimension)
    slope: np.ndarray
    curvature: np.ndarray
    wide: list[Site]

    def gaussian(self) -> Gaussian:
        """The product of all; raises `LinAlgError` where that is no Gaussian."""
        slope = self.prior[0] + self.slope @ self.unit
        precision = self.prior[1] + (self.unit.T * self.curvature) @ self.unit
        for one in self.wide:
            own_slope, own_curvature = one.natural()
            slope, precision = slope + own_slope, precision + own_curvature
        return gaussian_of(slope, precision)

    def moved(self, lines: Update, wide: list[Update], step: float) -> "Approximation":
        """After a step of this share towards the sites of the tilted moments."""

        def between(old: np.ndarray, new: np.ndarray) -> np.ndarray:
            return old + step * (new - old)

        sites = [
            Site(one.basis, between(one.slope, new.slope), between(one.curvature, new.curvature))
            for one, new in zip(self.wide, wide, strict=True)
        ]
        slope, curvature = between(self.slope, lines.slope), between(self.curvature, lines.curvature)
        return self._replace(slope=slope, curvature=curvature, wide=sites)


def gaussian_of(slope: np.ndarray, precision: np.ndarray) -> Gaussian:
    """From natural parameters; raises `LinAlgError` where the precision is that of no Gaussian."""
    root = inverse(np.linalg.cholesky(precision), np).T
    covariance = root @ root.T
    return Gaussian(covariance @ slope, covariance, np.linalg.cholesky(covariance))


def tilted_by_draws(site: Site, q: Gaussian, noise: np.ndarray, log_factor: np.ndarray, power: float) -> Update:
    """Moments by weighted draws of q, whose own moments are exact: no noise where the site is the factor itself."""
    coordinates = (q.mean + noise @ q.root.T) @ site.basis.T
    log_weights = power * (log_factor - site.log_densities(coordinates))
    total = log_sum_exp(log_weights)
    weights = np.exp(log_weights - total)
    log_constant = np.asarray((total - np.log(len(noise))) / power)
    needed = max(LEAST_SHARE * len(noise), LEAST_EACH * len(site.basis))
    if not np.isfinite(total) or 1 / np.sum(weights**2) < needed:
        return Update(site.slope, site.curvature, log_constant, np.asarray(np.nan))
    own_mean, own = site.basis @ q.mean, site.basis @ q.covariance @ site.basis.T
    mean = weights @ coordinates
    covariance = (coordinates - mean).T @ (weights[:, None] * (coordinates - mean))
    tilted, before = np.linalg.inv(covariance), np.linalg.inv(own)
    white = inverse(np.linalg.cholesky(own), np)
    shift, spread = white @ (mean - own_mean), white @ covariance @ white.T - np.eye(len(own))
    return Update(
        site.slope + (tilted @ mean - before @ own_mean) / power,
        site.curvature + (tilted - before) / power,
        log_constant,
        np.asarray(np.linalg.norm(shift) + np.linalg.norm(spread)),
    )


def tilted_on_lines(
    slope: np.ndarray,
    curvature: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    log_factor: np.ndarray,
    power: float,
) -> Update:
    """Moments of many factors of one direction each, by quadrature over the nodes (factor, node)."""
    deviation = variance**0.5
    places = mean[:, None] + deviation[:, None] * NODES
    site = slope[:, None] * places - 0.5 * curvature[:, None] * places**2
    log_steps = np.log(NODES[1] - NODES[0]) - 0.5 * NODES**2 - 0.5 * np.log(2 * np.pi)
    log_weights = power * (log_factor - site) + log_steps
    total = log_sum_exp(log_weights)
    weights = np.exp(log_weights - total[:, None])
    tilted_mean = np.sum(weights * places, axis=1)
    tilted_variance = np.sum(weights * (places - tilted_mean[:, None]) ** 2, axis=1)
    shift, ratio = (tilted_mean - mean) / deviation, tilted_variance / variance
    is_known = np.isfinite(total) & (ratio > 0) & (power * curvature * variance < 1)  # else there is no cavity
    return Update(
        np.where(is_known, slope + (tilted_mean / tilted_variance - mean / variance) / power, slope),
        np.where(is_known, curvature + (1 / tilted_variance - 1 / variance) / power, curvature),
        total / power,
        np.where(is_known, np.abs(shift) + np.abs(ratio - 1), np.nan),
    )


def regression(coordinates: np.ndarray, log_factor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slope and curvature of the quadratic that fits a log factor on draws; without what bends up."""
    size = coordinates.shape[1]
    rows, columns = np.triu_indices(size)
    features = [np.ones((len(coordinates), 1)), coordinates, coordinates[:, rows] * coordinates[:, columns]]
    highest = np.max(log_factor)
    heights = np.maximum(log_factor, highest - LOWEST) - highest if np.isfinite(highest) else 0.0 * coordinates[:, 0]
    found = np.linalg.lstsq(np.concatenate(features, axis=1), heights, rcond=None)[0]
    curvature = np.zeros((size, size))
    curvature[rows, columns] = -found[1 + size :]
    values, vectors = np.linalg.eigh(curvature + curvature.T)
    return found[1 : 1 + size], vectors * np.maximum(values, 0.0) @ vectors.T
