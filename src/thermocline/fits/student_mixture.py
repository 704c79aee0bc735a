"""Mixtures of Student's t on ravelled positions, in NumPy: their densities, draws, and expectation maximisation.

The family of the black box: a Gaussian is one of infinitely many degrees of freedom. `fit_mixture` has these alone.
"""

from typing import Any, NamedTuple

import numpy as np

from thermocline.bases import BaseFit, Gaussian, Mixture, StudentT
from thermocline.fits.moments import weighted_draws_of
from thermocline.records import WeightedDraws
from thermocline.support import special
from thermocline.support.errors import ThermoclineError
from thermocline.support.flat import unravelled
from thermocline.support.linear import inverse, log_determinant, log_sum_exp, triangular

DEGREES = np.array([2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0, 50.0, np.inf])  # to choose from
MOST_DEGREES = 1000.0  # of a base, among others of few
NUM_STEPS = 10  # of the black box
LEAST_WEIGHT = 1e-3  # of a component, so that a place once known goes on being looked at
LEAST_SIZE = 2.0  # effective draws beyond the dimension, below which a component stays as it is
MOST_ROWS, ROWS_AT_ONCE = 4096, 1024
JITTER = 1e-12  # of variances, against rounding
MOST_STEPS = 200  # of `fit_mixture`
LEAST_GAIN = 1e-5  # of the mean log density in a step, in nats, at which it ends
LEAST_DRAWS = 2.0  # effective ones for each component
NUM_STARTS = 4
NUM_LLOYD = 20  # steps of k-means


class StudentMixture(NamedTuple):
    """Leading axes are over components."""

    mean: np.ndarray
    scale: np.ndarray  # lower triangular
    degrees: np.ndarray
    log_weight: np.ndarray

    @classmethod
    def of(cls, means: Any, roots: Any, degrees: float, log_weights: Any) -> "StudentMixture":
        """From roots R of any form, with the scale R Rᵀ."""
        scales = np.stack([triangular(root) for root in roots])
        log_weights = np.asarray(log_weights, float)
        return cls(
            np.asarray(means), scales, np.full(len(scales), degrees), log_weights - np.logaddexp.reduce(log_weights)
        )

    @property
    def size(self) -> int:
        return len(self.log_weight)

    def joined_by(self, other: "StudentMixture", log_share: float) -> "StudentMixture":
        """With another that has this share of the whole."""
        weights = np.concatenate([self.log_weight + np.log1p(-np.exp(log_share)), other.log_weight + log_share])
        mean, scale, degrees = (np.concatenate(pair) for pair in zip(self[:3], other[:3], strict=True))
        return StudentMixture(mean, scale, degrees, weights)

    def distances(self, rows: np.ndarray) -> np.ndarray:
        """Squared, in each component's own scale, (component, row)."""
        size, whitening = self.mean.shape, inverse(self.scale, np)
        centre = self.mean[0]  # numbers are then of the size of the mixture
        shifts = np.einsum("kij,kj->ki", whitening, self.mean - centre)
        found = np.empty((size[0], len(rows)))
        for begin in range(0, len(rows), ROWS_AT_ONCE):  # one product for all components, within a cache
            part = slice(begin, begin + ROWS_AT_ONCE)
            white = ((rows[part] - centre) @ whitening.reshape(-1, size[1]).T).reshape(-1, *size) - shifts
            found[:, part] = np.einsum("nkd,nkd->kn", white, white)
        return found

    def log_densities(self, rows: np.ndarray) -> np.ndarray:
        """Log of weight times density, (component, row)."""
        return self.log_densities_at(self.distances(rows))

    def log_densities_at(self, distances: np.ndarray) -> np.ndarray:
        """The same, at places of these squared distances."""
        heights = log_student(distances, self.degrees[:, None], self.mean.shape[1])
        return self.log_weight[:, None] + (heights - log_determinant(self.scale, np)[:, None])

    def log_density_of_rows(self, rows: np.ndarray) -> np.ndarray:
        return log_sum_exp(self.log_densities(rows), axis=0)

    def sample_rows(self, generator: np.random.Generator, number: int) -> np.ndarray:
        """Exact draws, one a row."""
        counts = generator.multinomial(number, np.exp(self.log_weight - np.logaddexp.reduce(self.log_weight)))
        parts = []
        for mean, scale, degrees, count in zip(self.mean, self.scale, self.degrees, counts, strict=True):
            width = 1.0 if np.isinf(degrees) else np.sqrt(degrees / generator.chisquare(degrees, (count, 1)))
            parts.append(mean + width * generator.normal(size=(count, mean.size)) @ scale.T)
        return generator.permutation(np.concatenate(parts))

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean, and a root of the covariance, with that of a component taken for its scale."""
        weight = np.exp(self.log_weight)
        mean = weight @ self.mean
        within = np.hstack(list(np.sqrt(weight)[:, None, None] * self.scale))
        between = np.sqrt(weight) * (self.mean - mean).T
        return mean, triangular(np.hstack([within, between]))

    def base(self, like: Any, *, room: int = 1) -> Mixture | StudentT | Gaussian:
        """As a base on PyTrees like this one: of Gaussians if all are; a single component is no mixture.

        With `room` for more it is one of Student's t whatever it holds, so that runs from several share a program.
        """
        each = self.students(like)
        if room > 1:
            return Mixture.of(each, self.log_weight, at_least=room)
        if np.isinf(self.degrees).all():
            each = [Gaussian(one.mean, one.scale_tril).prepared() for one in each]
        return each[0] if len(each) == 1 else Mixture.of(each, self.log_weight)

    def students(self, like: Any) -> list[StudentT]:
        """The components as bases of one family."""
        degrees = np.minimum(self.degrees, MOST_DEGREES)
        parts = zip(self.mean, self.scale, degrees, strict=True)
        return [StudentT(unravelled(mean, like), scale, float(of)).prepared() for mean, scale, of in parts]


def log_student(distances: np.ndarray, degrees: np.ndarray, dimension: int) -> np.ndarray:
    """Log density of a t of unit scale, or of a Gaussian, at these squared distances from its centre."""
    few = np.minimum(degrees, MOST_DEGREES)
    half = 0.5 * (few + dimension)
    constant = special.gammaln(half) - special.gammaln(0.5 * few) - 0.5 * dimension * np.log(few * np.pi)
    student = constant - half * np.log1p(distances / few)
    return np.where(np.isinf(degrees), -0.5 * (distances + dimension * np.log(2 * np.pi)), student)


def em_fit_student(
    mixture: StudentMixture, rows: np.ndarray, weights: np.ndarray, *, num_steps: int = NUM_STEPS
) -> StudentMixture:
    """The mixture drawn to weighted rows; each component is held where it was by as many draws as dimensions.

    Of many rows some are chosen, evenly by weight: a fit has no use for more.
    """
    if len(rows) > MOST_ROWS:
        places = np.searchsorted(np.cumsum(weights), (np.arange(MOST_ROWS) + 0.5) / MOST_ROWS * weights.sum())
        chosen, counts = np.unique(np.minimum(places, len(rows) - 1), return_counts=True)
        rows, weights = rows[chosen], counts / MOST_ROWS
    held = mixture
    for step in range(num_steps):
        mixture, _ = em_step(mixture, held, rows, weights, fits_degrees=step % 3 == 2)
    return mixture


def em_step(
    mixture: StudentMixture, held: StudentMixture, rows: np.ndarray, weights: np.ndarray, *, fits_degrees: bool
) -> tuple[StudentMixture, float]:
    """One step, and the mean log density of the rows before it."""
    dimension, distances = rows.shape[1], mixture.distances(rows)
    log_shares = mixture.log_densities_at(distances)
    log_total = log_sum_exp(log_shares, axis=0)
    shares = weights * np.exp(log_shares - log_total)
    mass = shares.sum(axis=1)
    mean, scale, degrees = mixture.mean.copy(), mixture.scale.copy(), mixture.degrees.copy()
    for k in range(mixture.size):
        evenly = mass[k] ** 2 / max(np.sum(shares[k] ** 2), 1e-300)
        size = min(evenly, mass[k] / np.sum(weights**2))  # many small shares of other modes' draws are not many draws
        if size < dimension + LEAST_SIZE:  # too few to tell its shape: it keeps the one it has
            continue
        if fits_degrees:
            degrees[k] = _degrees(distances[k], shares[k], dimension)
        pulled = shares[k] * _pull(distances[k], degrees[k], dimension)
        trust = size / (size + 2 * dimension)
        centre = pulled @ rows / pulled.sum()
        offset, apart = rows - centre, centre - held.mean[k]
        spread = (offset.T * pulled) @ offset / mass[k]
        before = held.scale[k] @ held.scale[k].T
        spread = trust * spread + (1 - trust) * before + trust * (1 - trust) * np.outer(apart, apart)
        try:
            scale[k] = np.linalg.cholesky(spread + JITTER * np.diag(np.diag(spread)))
        except np.linalg.LinAlgError:  # rows in a plane: it stays where it is
            continue
        mean[k] = trust * centre + (1 - trust) * held.mean[k]
    log_weight = np.log(np.maximum(mass, LEAST_WEIGHT))
    fitted = StudentMixture(mean, scale, degrees, log_weight - np.logaddexp.reduce(log_weight))
    return fitted, float(weights @ log_total)


def _pull(distances: np.ndarray, degrees: Any, dimension: int) -> np.ndarray:
    """What a draw counts for: far out in a heavy tail it is less. One for a Gaussian."""
    return (1 + dimension / degrees) / (1 + distances / degrees)


def _degrees(distances: np.ndarray, shares: np.ndarray, dimension: int) -> float:
    """Of a few numbers, the most likely, with the scale that suits each."""
    degrees, ratio = DEGREES[:, None], np.ones((len(DEGREES), 1))
    for _ in range(3):  # the scale of largest likelihood for each tail, relative to the present one
        pulled = shares * _pull(distances / ratio, degrees, dimension)
        ratio = np.sum(pulled * distances, axis=1, keepdims=True) / (dimension * shares.sum())
    heights = log_student(distances / ratio, degrees, dimension) - 0.5 * dimension * np.log(ratio)
    return float(DEGREES[np.argmax(heights @ shares)])


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
    """The mixture of Gaussians of largest likelihood for weighted draws, held a little to where it began.

    `source` and `like` are as for `fit_moments`. It goes up from `start`, whose components without draws keep their
    shape and a thousandth of the weight, or from the best of four clusterings. log zeta is what is given, else the
    Result's log evidence, else 0: a mere placeholder. The trace has the draws' mean log density by step.
    """
    draws = weighted_draws_of(source, like)
    starts = [_rows_of(start)] if start is not None else _clustered(draws, num_components, seed)
    mixture, trace = max((_ascended(one, draws, diagonal) for one in starts), key=lambda end: end[1][-1])
    scales = [np.diagonal(scale) if diagonal else scale for scale in mixture.scale]
    pairs = zip(mixture.mean, scales, strict=True)
    base = Mixture.of([Gaussian(draws.unravel(mean), scale).prepared() for mean, scale in pairs], mixture.log_weight)
    known = draws.log_evidence if log_zeta is None else log_zeta
    notes = f"Expectation maximisation fitted {mixture.size} Gaussians to {len(draws.weight)} draws."
    return BaseFit(base, float(known or 0.0), trace=np.array(trace), notes=(notes,))


def _ascended(start: StudentMixture, draws: WeightedDraws, diagonal: bool) -> tuple[StudentMixture, list[float]]:
    """Steps until the mean log density changes no more."""
    mixture, trace = start, []
    while len(trace) < MOST_STEPS and not (len(trace) > 1 and abs(trace[-1] - trace[-2]) < LEAST_GAIN):
        mixture, height = em_step(mixture, start, draws.position, draws.weight, fits_degrees=False)
        if diagonal:
            deviations = np.linalg.norm(mixture.scale, axis=2)
            mixture = mixture._replace(scale=deviations[:, :, None] * np.eye(draws.position.shape[1]))
        trace.append(height)
    return mixture, trace


def _rows_of(mixture: Mixture) -> StudentMixture:
    """A user's mixture of Gaussians, on ravelled positions."""
    used = np.isfinite(mixture.log_weights)
    means, scales = mixture.centres()[used], np.asarray(mixture.components.scale_tril)[used]
    roots = scales if scales.ndim == 3 else [np.diag(scale) for scale in scales]
    return StudentMixture.of(means, roots, np.inf, np.asarray(mixture.log_weights)[used])


def _clustered(draws: WeightedDraws, num_components: int, seed: int) -> list[StudentMixture]:
    """Mixtures of clusters: their means and shares, and the covariance within them, pooled."""
    if draws.num_effective < LEAST_DRAWS * num_components:
        raise ThermoclineError(
            f"the weights amount to {draws.num_effective:.1f} draws, too few for {num_components} components; "
            "ask for fewer, or give more draws."
        )
    return [clustered(draws, cluster(draws, num_components, seed, index), np.inf) for index in range(NUM_STARTS)]


def clustered(draws: WeightedDraws, label: np.ndarray, degrees: float) -> StudentMixture:
    """A component for every cluster, by its mean and share, of the covariance within clusters."""
    names, place = np.unique(label, return_inverse=True)
    shares = draws.weight * (label == names[:, None])
    mass = shares.sum(axis=1)
    means = shares @ draws.position / mass[:, None]
    within = (draws.position - means[place]).T * np.sqrt(draws.weight)
    root = np.hstack([within, 1e-3 * np.diag(draws.position.std(axis=0))])
    return StudentMixture.of(means, [root] * len(names), degrees, np.log(mass))


def cluster(draws: WeightedDraws, num_clusters: int, seed: int, index: int) -> np.ndarray:
    """The cluster of every draw, by Lloyd's steps from seeds of k-means++ (Arthur & Vassilvitskii 2007).

    Distances are in standard deviations of each coordinate. `index` numbers further answers for one seed; a cluster
    may end up empty, and its number unused.
    """
    generator = np.random.default_rng((seed, index))
    mean = draws.weight @ draws.position
    deviations = np.sqrt(draws.weight @ (draws.position - mean) ** 2)
    points = (draws.position - mean) / np.where(deviations > 0, deviations, 1.0)
    centres = _seeds(generator, points, draws.weight, num_clusters)
    label = np.zeros(len(points), int)
    for _ in range(NUM_LLOYD):
        label = np.argmin(_distances(points, centres), axis=1)
        shares = draws.weight * (label == np.arange(num_clusters)[:, None])
        mass = shares.sum(axis=1, keepdims=True)
        centres = np.where(mass > 0, shares @ points / np.where(mass > 0, mass, 1.0), centres)
    return label


def _seeds(generator: np.random.Generator, points: np.ndarray, weight: np.ndarray, number: int) -> np.ndarray:
    """Draws chosen one after another, each by its squared distance from the nearest chosen before."""
    chosen = [generator.choice(len(points), p=weight)]
    for _ in range(number - 1):
        chance = weight * _distances(points, points[chosen]).min(axis=1)
        chance = chance if chance.sum() > 0 else weight
        chosen.append(generator.choice(len(points), p=chance / chance.sum()))
    return points[chosen]


def _distances(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Squared, (point, centre)."""
    return np.sum((points[:, None] - centres) ** 2, axis=2)
