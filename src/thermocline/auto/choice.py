"""Which base to take, by what is known: Gaussian, Student's t, a mixture, or a constellation."""

from typing import Any, NamedTuple

import numpy as np

from thermocline.bases import BaseFit, Gaussian, Mixture, StudentT
from thermocline.evaluator import Evaluator
from thermocline.fits.clusters import cluster
from thermocline.fits.expectation_maximisation import mixture_of_clusters
from thermocline.fits.importance import ImportanceSample, adapt_by_importance, em_update
from thermocline.fits.moments import fit_moments
from thermocline.fits.weighted import weighted_draws_of
from thermocline.modes.local_fits import MOST_COMPONENTS, LocalFit, evened, mixture_of
from thermocline.modes.search import Found

MANY_UNSEEN = 0.02  # chance of a new mode at the next start from which a list of modes is hopeless
FAIR_SHARE = 0.1  # effective share of a mixture's own draws from which it follows a shape
NUM_SHAPING = 15  # components laid along a shape
BROAD_WEIGHT = 0.05  # of the component that goes on looking for modes between and around those known
WORTH_A_COMPONENT = 0.05  # nats of divergence from the target that each must save, for it is paid for at every step
WORTH_A_SHAPE = WORTH_A_COMPONENT * (1 + NUM_SHAPING)
DEGREES, EXTRA_WIDTH = 5.0, 0.42  # of Student's t: set so that the errors on a banana are right (studies/calibrate.py)
FEWEST_EFFECTIVE = 50  # draws of the pool that must count for it to tell


class Knowledge(NamedTuple):
    """What rounds have learned: optima, a fit for each mode, and draws weighted for the target."""

    found: Found
    fits: list[LocalFit]
    pool: ImportanceSample  # draws of the fits and of pilots, with weights that account for both
    num_gradients: int  # of pilots
    story: tuple[str, ...]
    has_piloted: bool = False


def has_many_modes(found: Found) -> bool:
    """Whether a list of modes is hopeless: too many to hold, or new ones still turning up."""
    return found.num_modes > MOST_COMPONENTS or found.unseen > MANY_UNSEEN


def chosen_base(known: Knowledge, like: Any, target_error: float) -> BaseFit:
    """The Gaussian with the pool's moments, or a mixture with a component for each mode if that is closer.

    Divergences are measured on the pool, which holds draws of all fits and pilots. Where the pool cannot tell,
    because few of its draws count, the fits stand as they are.
    """
    pool, size = known.pool, known.pool.effective_share * known.pool.log_weight.size
    everything = mixture_of(evened(known.fits), like, at_least=1)
    if size < FEWEST_EFFECTIVE or np.any(np.ptp(pool.position, axis=0) == 0):
        return BaseFit(everything if len(known.fits) > 1 else everything.component(0), pool.log_evidence)
    kept, lost = pruned(known.fits, target_error / 10)
    gaussian = gaussian_of(pool, like)
    far = divergence(pool, gaussian)
    if len(kept) == 1:
        return BaseFit(gaussian, pool.log_evidence, story=(f"One Gaussian: KL(target, base) is {far:.2g}.{lost}",))
    other = mixture_of(kept, like, at_least=1)
    near, number = divergence(pool, other), len(kept)
    if far - near > WORTH_A_COMPONENT * (1 + number):
        story = f"A mixture of {number}: KL(target, base) is {near:.2g}; of one Gaussian, {far:.2g}.{lost}"
        return BaseFit(other, pool.log_evidence, story=(story,))
    story = f"One Gaussian: KL(target, base) is {far:.2g}; of a mixture of {number}, {near:.2g}.{lost}"
    return BaseFit(gaussian, pool.log_evidence, story=(story,))


def reshaped(
    generator: np.random.Generator, evaluate: Evaluator, pool: ImportanceSample, fit: BaseFit, worth: float
) -> tuple[BaseFit, bool]:
    """The base, or a mixture that follows the shape of the pool where that saves so many nats; and whether it does.

    Arms, rings and necks are no modes, but Gaussians can be laid along them. The mixture goes on to learn from its own
    draws; that it has lost nothing on the way shows in its divergence from the target on the pool.
    """
    if pool.effective_share * pool.log_weight.size < NUM_SHAPING * FEWEST_EFFECTIVE / 4:
        return fit, False
    draws = weighted_draws_of((pool.position, pool.log_weight), evaluate.target.initial_position)
    first = broadened(mixture_of_clusters(cluster(draws, NUM_SHAPING, 0, 0), draws))
    first = em_update(first, pool.position, pool.log_weight)
    mixture, sample = adapt_by_importance(generator, evaluate, first)
    saved = divergence(pool, fit.base) - divergence(pool, mixture)
    if sample.effective_share < FAIR_SHARE or saved < worth:
        return fit, False
    story = f"A mixture of {NUM_SHAPING + 1} follows its shape: {sample.effective_share:.0%} of its draws count."
    base = heavy_tailed(mixture)
    return BaseFit(base, sample.log_evidence, story=(*fit.story, story)), True


def heavy_tailed(base: Any) -> Any:
    """Student's t about a Gaussian, or about each of a mixture, a little wider: for arms and necks beyond its reach.

    The wider, the less of a tail is left for chains to find by walking; wider by a share that falls with the square
    root of the dimension costs the same divergence in any.
    """
    if isinstance(base, Mixture):
        return base.mapped(heavy_tailed)
    wider = 1 + EXTRA_WIDTH / np.sqrt(np.shape(base.scale_tril)[-1])
    return StudentT(base.mean, wider * np.asarray(base.scale_tril), DEGREES).prepared()


def tailed(pool: ImportanceSample, fit: BaseFit) -> BaseFit:
    """The base as it is, or with heavy tails where that is closer to the target."""
    heavy = heavy_tailed(fit.base)
    near, far = (divergence(pool, base) for base in (heavy, fit.base))
    if not near < far:
        return fit
    story = f"With Student's t in place of every Gaussian it is {near:.2g}, on {far:.2g}."
    return fit._replace(base=heavy, story=(*fit.story, story))


def piloting(base: Gaussian | Mixture) -> Mixture:
    """For a pilot: the base with heavy tails, and one more component over all of it that looks for what lies around.

    Of whatever base, it has the form of a mixture that follows a shape: pilots share their programs with it.
    """
    return heavy_tailed(broadened(Mixture.of([base], [0.0]) if isinstance(base, Gaussian) else base))


def gaussian_of(pool: ImportanceSample, like: Any) -> Gaussian:
    """The Gaussian with the pool's mean and covariance (the paper's proposal)."""
    return fit_moments((pool.position, pool.log_weight), like=like).base


def pruned(fits: list[LocalFit], most_lost: float) -> tuple[list[LocalFit], str]:
    """The heaviest fits that hold all but `most_lost` of the mass, and a sentence on the others."""
    order = sorted(fits, key=lambda fit: -fit.log_mass)
    mass = np.exp([fit.log_mass for fit in order] - np.logaddexp.reduce([fit.log_mass for fit in order]))
    held = np.cumsum(mass)
    number = min(int(np.searchsorted(held, 1 - most_lost)) + 1, len(order))
    others = len(order) - number
    lost = f" Pruned: {others} of {len(order)} modes, with {mass[number:].sum():.1g} of the mass." if others else ""
    return order[:number], lost


def broadened(mixture: Mixture) -> Mixture:
    """The mixture with a broad component over all of it, which goes on looking for modes."""
    number = mixture.num_components
    if number == MOST_COMPONENTS:
        return mixture
    gaussian = fit_moments(mixture).base
    broad = Gaussian(gaussian.mean, np.sqrt(2.0) * np.asarray(gaussian.scale_tril)).prepared()
    log_weights = np.append(mixture.log_weights[:number] + np.log1p(-BROAD_WEIGHT), np.log(BROAD_WEIGHT))
    components = [*(mixture.component(i).prepared() for i in range(number)), broad]
    return Mixture.of(components, log_weights, at_least=NUM_SHAPING + 1)


def divergence(pool: ImportanceSample, base: Any) -> float:
    """KL divergence from the target to a base, on the pool."""
    log_base = base.log_density_of_rows(pool.position)
    weight = np.exp(pool.log_weight - pool.log_weight.max())
    is_used = weight > 0
    ratio = pool.log_target[is_used] - log_base[is_used]
    return float(weight[is_used] @ ratio / weight.sum() - pool.log_evidence)
