"""`fit_local_mixture`: a Gaussian for every mode that a search found (eq. variational-mixture-approx)."""

from itertools import combinations

import numpy as np

from thermocline.auto.black_box import searched
from thermocline.bases import BaseFit, Gaussian, Mixture
from thermocline.engine.progress import Silent
from thermocline.evaluator import Evaluator, checked_evaluator
from thermocline.fits.pool import Pool
from thermocline.modes.peaks import Peak
from thermocline.support.errors import ThermoclineError
from thermocline.support.flat import unravelled
from thermocline.support.linear import triangular
from thermocline.support.precision import computing_in
from thermocline.target import Target

STREAM = 0x10CA  # of random numbers
SHARED = 0.01  # of two fits' mass, at which they overlap
NUM_DRAWS = 4096  # by which fits are weighed


def fit_local_mixture(target: Target, *, seed: int = 0, importance: bool = True, precision: str = "float64") -> BaseFit:
    """The mixture of Laplace approximations of all modes that a search has found (eq. variational-mixture-approx).

    By default log zeta and the weights are those of importance sampling from the fits. With `importance=False` they
    are the paper's: weights in proportion to exp of the fits' own variational objectives, and log zeta the log of
    their sum, a lower bound where the fits do not overlap. Such a base is multimodal and needs jumps.
    """
    with computing_in(precision):
        evaluate = checked_evaluator(target, precision, seed=seed)
        search = searched(evaluate, seed, evaluate.initial_position[None], Silent())
        peaks = [peak for peak in search.peaks if peak.found_by not in ("path", "variational fit")]
        if not peaks:
            raise ThermoclineError(
                f"none of {search.num_ascents} ascents reached an optimum: the log density may be unbounded, as that "
                "of a centred hierarchy is; use tc.fit_advi or tc.fit_auto."
            )
        generator, like = np.random.default_rng([seed, STREAM]), evaluate.target.initial_position
        fits = [Gaussian(unravelled(peak.location, like), triangular(peak.root)).prepared() for peak in peaks]
        if importance:
            weights, kind = np.log(masses_of(fits, [peak.log_mass for peak in peaks], generator, evaluate)), "estimate"
            log_zeta = weighed(Mixture.of(fits, weights), generator, evaluate).log_evidence
        else:
            weights = [float(np.mean(weighed(fit, generator, evaluate).log_weight)) + np.log(NUM_DRAWS) for fit in fits]
            log_zeta, kind = float(np.logaddexp.reduce(weights)), "estimate" if do_overlap(peaks) else "lower bound"
        notes = (f"{search.num_looks} looks and {search.num_ascents} ascents found {len(peaks)} modes.",)
        return BaseFit(Mixture.of(fits, weights), log_zeta, evaluate.num_rows, kind, notes=notes)


def weighed(base: Gaussian | Mixture, generator: np.random.Generator, evaluate: Evaluator) -> Pool:
    """Fresh draws of a base, weighted for the target."""
    return Pool.empty(evaluate.dimension).drawn(generator, evaluate, base, NUM_DRAWS)[0]


def masses_of(
    fits: list[Gaussian], log_masses: list[float], generator: np.random.Generator, evaluate: Evaluator
) -> np.ndarray:
    """The share of the target that each fit stands for, by draws of all; none gets less than the draws can tell."""
    mixture = Mixture.of(fits, np.logaddexp(log_masses, np.logaddexp.reduce(log_masses) - np.log(len(fits))))
    pool = weighed(mixture, generator, evaluate)
    heights = mixture.log_densities_of_rows(pool.position)
    shares = np.exp(heights - np.logaddexp.reduce(heights, axis=1, keepdims=True))
    return np.maximum(pool.weight @ shares, 1 / NUM_DRAWS)


def do_overlap(peaks: list[Peak]) -> bool:
    """Whether any two fits share more than a hundredth of their mass."""
    return any(bhattacharyya_distance(*pair) < -np.log(SHARED) for pair in combinations(peaks, 2))


def bhattacharyya_distance(first: Peak, second: Peak) -> float:
    """Between two Gaussians: 0 for the same, large for those that do not overlap."""
    own, other = (peak.root @ peak.root.T for peak in (first, second))
    middle, offset = 0.5 * (own + other), first.location - second.location
    log_determinants = [np.linalg.slogdet(matrix)[1] for matrix in (middle, own, other)]
    apart = offset @ np.linalg.solve(middle, offset) / 8
    return float(apart + 0.5 * (log_determinants[0] - 0.5 * (log_determinants[1] + log_determinants[2])))
