"""`fit_mixture`: Gaussians fitted to weighted draws by expectation maximisation."""

from typing import Any

import numpy as np

from thermocline.bases import BaseFit, Gaussian, Mixture
from thermocline.fits.moments import weighted_draws_of
from thermocline.fits.student_mixture import StudentMixture, em_step
from thermocline.records import WeightedDraws
from thermocline.support.errors import ThermoclineError

MOST_STEPS = 200
LEAST_GAIN = 1e-5  # of the mean log density in a step, in nats, at which it ends
LEAST_SIZE = 2.0  # effective draws that a component needs
NUM_STARTS = 4
NUM_LLOYD = 20  # steps of k-means


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
    if draws.num_effective < LEAST_SIZE * num_components:
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
