"""What expectation propagation asks of a target: its prior, and the tilted moments of its factors, from few rows."""

from typing import Any, NamedTuple

import jax
import numpy as np

from thermocline.evaluator import Evaluator
from thermocline.fits.factors import Factors, directions_of
from thermocline.fits.gaussian_ascent import LocationScale
from thermocline.fits.natural import paired_noise
from thermocline.fits.sites import (
    NODES,
    Approximation,
    Gaussian,
    Site,
    Update,
    regression,
    tilted_by_draws,
    tilted_on_lines,
)
from thermocline.support.errors import ThermoclineError
from thermocline.target import Target, describe

NUM_DRAWS = 4096  # for tilted moments of factors that depend on several directions
NUM_FIRST = 1024  # of them, from which sites begin
MOST_DIRECTIONS = 25  # of a factor, whose moments draws can tell
LEAST_PIVOT = 0.3  # sine of the angle between a direction and those that share its row
SAME = {"float64": 1e-9, "float32": 1e-4}  # difference, relative to what is added, that rounding makes


class Prior(NamedTuple):
    """The prior by rows, and the Gaussian that it is, or that its slopes suggest."""

    evaluate: Evaluator
    slope: np.ndarray
    precision: np.ndarray
    constant: float
    is_gaussian: bool


class Group(NamedTuple):
    """Factors whose lines are gone along in the same rows: their directions are equal, or far from dependent."""

    members: np.ndarray  # among those of one direction
    leaders: np.ndarray  # of them, one for each direction
    inverse: np.ndarray  # (dimension, leader): takes what coordinates along directions move by to rows


class Problem(NamedTuple):
    """Prior and factors in coordinates z of a frame m + L z; factors of one direction are evaluated many in a row."""

    factors: Factors
    prior: Prior
    noise: np.ndarray
    constant: float  # of the density, beside prior and factors, of factors that are constant, and of a Gaussian prior
    single: np.ndarray  # factors of one direction each
    unit: np.ndarray  # their directions
    groups: list[Group]
    wide: list[Site]  # the first sites of all other factors, and of a prior that is no Gaussian
    indices: np.ndarray  # of the wide ones among the factors
    first: tuple[np.ndarray, np.ndarray]  # slope and curvature of the first sites of one direction

    @classmethod
    def of(cls, generator: np.random.Generator, evaluate: Evaluator, frame: LocationScale) -> "Problem":
        """The problem with its first sites, from draws of the frame; raises where the parts are not the density's."""
        own = [paired_noise(generator, len(frame.mean))]
        while sum(map(len, own)) < NUM_DRAWS:
            own.append(paired_noise(generator, len(frame.mean)))
        noise = np.concatenate(own)
        draws = noise[: len(own[0]) * -(-NUM_FIRST // len(own[0]))]
        factors = Factors(evaluate, frame)
        values, prior = factors.values(draws), prior_of(evaluate, frame, draws)
        directions = directions_of(factors, draws)
        _check_widths(directions.wide)
        wide = [Site(basis, *regression(draws @ basis.T, values[:, i])) for i, basis in directions.wide]
        if not prior.is_gaussian:
            eigenvalues, vectors = np.linalg.eigh(prior.precision)
            wide.append(Site(np.eye(len(frame.mean)), prior.slope, vectors * np.maximum(eigenvalues, 0.0) @ vectors.T))
        constants = [_constant(evaluate, frame, prior, draws, values), prior.constant, *values[0, directions.none]]
        lines = [
            regression(draws @ unit[:, None], values[:, i])
            for i, unit in zip(directions.single, directions.unit, strict=True)
        ]
        return cls(
            factors,
            prior,
            noise,
            float(np.sum(constants)),
            directions.single,
            directions.unit,
            groups_of(directions.unit),
            wide,
            np.array([i for i, _ in directions.wide], int),
            (np.array([slope[0] for slope, _ in lines]), np.array([curvature[0, 0] for _, curvature in lines])),
        )

    @property
    def precision(self) -> str:
        return self.factors.evaluate.precision

    def first_approximation(self) -> Approximation:
        size = self.noise.shape[1]
        known = self.prior.slope, self.prior.precision
        none = np.zeros(size), np.zeros((size, size))
        return Approximation(known if self.prior.is_gaussian else none, self.unit, *self.first, self.wide)

    def tilted(self, approximation: Approximation, q: Gaussian, power: float) -> tuple[Update, list[Update]]:
        """What every factor makes of its site, given the product of all."""
        mean, variance = self.unit @ q.mean, np.einsum("ij,jk,ik->i", self.unit, q.covariance, self.unit)
        along = self._along_lines(q.mean, variance**0.5)
        lines = tilted_on_lines(approximation.slope, approximation.curvature, mean, variance, along, power)
        if not approximation.wide:
            return lines, []
        heights = self._at_draws(q.mean + self.noise @ q.root.T)
        pairs = zip(approximation.wide, heights.T, strict=True)
        return lines, [tilted_by_draws(site, q, self.noise, height, power) for site, height in pairs]

    def _at_draws(self, draws: np.ndarray) -> np.ndarray:
        """Log of the factors that depend on several directions, and of a prior that is no Gaussian, (row, factor)."""
        columns = []
        if len(self.indices):
            columns.append(np.concatenate([block[:, self.indices] for block in self.factors.blocks(draws)]))
        if not self.prior.is_gaussian:
            columns.append(self.prior.evaluate.values(self.factors.frame.at(draws))[:, None])
        return np.concatenate(columns, axis=1)

    def _along_lines(self, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
        """Log factors at the nodes of their own lines, (factor, node): a row serves a group of directions at once."""
        found = np.empty((len(self.single), len(NODES)))
        if not self.groups:
            return found
        rows = [mean + NODES[:, None] * (group.inverse @ deviation[group.leaders]) for group in self.groups]
        place = 0
        for block in self.factors.blocks(np.concatenate(rows)):
            for values in block:
                members = self.groups[place // len(NODES)].members
                found[members, place % len(NODES)] = values[self.single[members]]
                place += 1
        return found


def prior_of(evaluate: Evaluator, frame: LocationScale, draws: np.ndarray) -> Prior:
    """The Gaussian of the prior's slopes a deviation off on both sides of the middle, and whether that is all."""
    target = evaluate.target
    asked = Evaluator(Target(_log_prior, target.initial_position, target.prior), evaluate.precision)
    size = len(frame.mean)
    gradients = frame.whitened(asked(frame.at(np.concatenate([np.eye(size), -np.eye(size)])))[1].astype(float))
    ahead, behind = gradients[:size], gradients[size:]
    slope, precision = 0.5 * np.mean(ahead + behind, axis=0), 0.5 * (behind - ahead)
    slope, precision = np.nan_to_num(slope), np.nan_to_num(0.5 * (precision + precision.T))
    values = asked.values(frame.at(draws)).astype(float)
    rest = values - draws @ slope + 0.5 * np.sum((draws @ precision) * draws, axis=1)
    is_gaussian = bool(np.ptp(rest) <= SAME[evaluate.precision] * (1 + np.max(np.abs(values))))
    return Prior(asked, slope, precision, float(np.mean(rest)) if is_gaussian else 0.0, is_gaussian)


def groups_of(unit: np.ndarray) -> list[Group]:
    """Equal directions once; then, as long as any are left, those that pivots show to be far from dependent."""
    from scipy.linalg import qr  # slow to import

    _, leaders, which = np.unique(np.round(unit, 9), axis=0, return_index=True, return_inverse=True)
    left, groups = np.arange(len(leaders)), []
    while len(left):
        pivoted: Any = qr(unit[leaders[left]].T, mode="r", pivoting=True)
        upper, order = pivoted[-2:]
        number = max(int(np.sum(np.abs(np.diagonal(upper)) > LEAST_PIVOT)), 1)
        chosen, left = left[order[:number]], np.delete(left, order[:number])
        inverse = np.linalg.pinv(unit[leaders[chosen]])
        groups.append(Group(np.flatnonzero(np.isin(which.ravel(), chosen)), leaders[chosen], inverse))
    return groups


def _log_prior(position: Any, prior: Any) -> jax.Array:
    return prior.log_density(position)


def _check_widths(wide: list[tuple[int, np.ndarray]]) -> None:
    widest = max((len(basis) for _, basis in wide), default=0)
    if widest > MOST_DIRECTIONS:
        raise ThermoclineError(
            f"a factor depends on {widest} directions, and EP is for factors that each depend on few "
            f"(up to {MOST_DIRECTIONS}); give one for each observation, or use tc.fit_advi."
        )


def _constant(evaluate: Evaluator, frame: LocationScale, prior: Prior, draws: np.ndarray, values: np.ndarray) -> float:
    """Log density less prior and factors, which must be the same everywhere."""
    rows = frame.at(draws)
    parts = prior.evaluate.values(rows) + np.sum(values, axis=1)
    rest = evaluate.values(rows) - parts
    known = np.flatnonzero(np.isfinite(rest))
    size = 1 + np.max(np.sum(np.abs(values[known]), axis=1), initial=0.0)
    if not len(known) or np.ptp(rest[known]) > SAME[evaluate.precision] * size:
        where = describe(evaluate.unravel(rows[known[np.argmax(rest[known])]])) if len(known) else "all draws"
        raise ThermoclineError(
            "prior and factors do not multiply to the density: their logs differ from log_density by another number at "
            f"{where} than elsewhere. Factors are all of the density but the prior, each once."
        )
    return float(np.mean(rest[known]))
