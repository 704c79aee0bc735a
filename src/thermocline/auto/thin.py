r"""Where a base is thin: ascents of $p^2/(q + p/W)$, which is $p\,w$ with the weight $w = p/q$ held below $W$.

A base's own draws know nothing of what it misses. Its weights have the second moment $\int p\,w$, and where most of
that lies no draw of the base need ever fall; but ascents lead there (AdMit, Hoogerheide et al. 2012, which ascends $w$
itself). Where the tails of the base are the lighter both run off to where the target holds nothing: a place whose
weight is $W$ times the mean matters if it holds a share $1/W$, and beyond that share this density falls as the target.
"""

from typing import NamedTuple

import numpy as np

from thermocline.estimators.convergence import THIN
from thermocline.evaluator import Evaluator
from thermocline.fits.curvature import curvature_at
from thermocline.fits.lbfgs import maximise
from thermocline.fits.pool import NEGLIGIBLE
from thermocline.fits.student_mixture import StudentMixture
from thermocline.modes.peaks import Peak, peak_of
from thermocline.support.linear import inverse

NUM_LANES = 64
MOST_PLACES = 8
APART = 2.0  # deviations between places, beyond the root of the dimension


class Missed(NamedTuple):
    """2 log p - log(q + p/W) and its gradient, as an evaluator gives log p."""

    evaluate: Evaluator
    mixture: StudentMixture
    log_most: float  # log W

    @property
    def precision(self) -> str:
        return self.evaluate.precision

    def __call__(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, gradients = self.evaluate(rows)
        log_base, of_base = log_density_and_gradient(self.mixture, np.asarray(rows, float))
        with np.errstate(invalid="ignore"):  # off the support of the target
            log_sum = np.logaddexp(log_base, values - self.log_most)
            share = np.exp(log_base - log_sum)[:, None]
            return 2 * values - log_sum, (1 + share) * gradients - share * of_base


def log_density_and_gradient(mixture: StudentMixture, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of a mixture, at some rows."""
    distances, whitening = mixture.distances(rows), inverse(mixture.scale, np)
    heights = mixture.log_densities_at(distances)
    log_density = np.logaddexp.reduce(heights, axis=0)
    degrees, dimension = mixture.degrees[:, None], rows.shape[1]
    pull = np.where(np.isinf(degrees), 1.0, (1 + dimension / degrees) / (1 + distances / degrees))
    share = np.exp(heights - log_density) * pull
    gradient = np.zeros_like(rows)
    for mean, white, of_rows in zip(mixture.mean, whitening, share, strict=True):
        gradient -= of_rows[:, None] * ((rows - mean) @ white.T @ white)
    return log_density, gradient


def thin_places(
    evaluate: Evaluator, mixture: StudentMixture, starts: np.ndarray, root: np.ndarray, log_mean_weight: float
) -> list[Peak]:
    """Ends of ascents where a mixture's weight is many times the mean of it under the target, the worst first.

    Each with the shape that the target has there as far as the mixture is level beside it: of twice the variance that
    p w has. `root` is R of the metric R Rᵀ to ascend in.
    """
    missed = Missed(evaluate, mixture, log_mean_weight + NEGLIGIBLE)
    ends = maximise(missed, starts, root=root, confirms=False)
    values = evaluate.values(ends.position)
    log_weight = values - mixture.log_density_of_rows(ends.position) - log_mean_weight
    is_thin = np.isfinite(ends.log_density) & (log_weight > np.log(THIN))
    places: list[Peak] = []
    for lane in np.argsort(-ends.log_density, kind="stable"):
        row = ends.position[lane]
        is_new = all(place.distance(row) > np.sqrt(row.size) + APART for place in places)
        if not (is_thin[lane] and is_new) or len(places) == MOST_PLACES:
            continue
        curvature = curvature_at(missed, row[None])
        if curvature.is_usable[0]:
            places.append(peak_of(row, float(values[lane]), np.sqrt(2) * curvature.roots()[0], "thin"))
    return places
