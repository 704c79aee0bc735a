"""Which base to take, by what is known: Gaussian, Student's t, a mixture, or a constellation."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.bases import BaseFit, Gaussian, Mixture, StudentT
from thermocline.bases.expectation_maximisation import fit_mixture
from thermocline.bases.moments import fit_moments
from thermocline.bases.population import Population, adapt_population, has_lost_no_mass
from thermocline.modes.local_mixture import MOST_COMPONENTS, LocalFit, evened, mixture_of
from thermocline.modes.search import Found
from thermocline.precision import to_numpy
from thermocline.target import Target

MANY_UNSEEN = 0.02  # chance of a new mode at the next start from which a list of modes is hopeless
GOOD_SHARE = 0.3  # effective share of a fit's own draws from which it needs no pilot
NUM_SHAPING = 15  # components laid along a shape
BROAD_WEIGHT = 0.05  # of the component that goes on looking for modes between and around those known
WORTH_A_COMPONENT = 0.05  # nats of divergence from the target that each must save, for it is paid for at every step
FEWEST_EFFECTIVE = 50  # draws of the pool that must count for it to tell


class Knowledge(NamedTuple):
    """What rounds have learned: optima, a fit for each mode, and draws weighted for the target."""

    found: Found
    fits: list[LocalFit]
    pool: Population  # draws of the fits and of pilots, with weights that account for both
    num_gradients: int
    story: tuple[str, ...]
    has_piloted: bool = False


def has_many_modes(found: Found) -> bool:
    """Whether a list of modes is hopeless: too many to hold, or new ones still turning up."""
    return found.num_modes > MOST_COMPONENTS or found.unseen > MANY_UNSEEN


def chosen_base(known: Knowledge, target: Target, target_error: float) -> BaseFit:
    """The Gaussian with the pool's moments, or what is closer: for one mode Student's t, for more a mixture.

    Divergences are measured on the pool, which holds draws of all fits and pilots. Where the pool cannot tell,
    because few of its draws count, the fits stand as they are.
    """
    pool, size = known.pool, known.pool.effective_share * known.pool.log_weight.size
    everything = mixture_of(evened(known.fits), target.initial_position)
    if size < FEWEST_EFFECTIVE:
        return BaseFit(everything if len(known.fits) > 1 else everything.component(0), pool.log_evidence)
    kept = pruned(known.fits, target_error / 10)
    gaussian = gaussian_of(pool, target)
    other = heavy_tailed(gaussian) if len(kept) == 1 else mixture_of(kept, target.initial_position)
    saved = divergence(pool, gaussian, target) - divergence(pool, other, target)
    return BaseFit(other if saved > WORTH_A_COMPONENT * (1 + len(kept)) else gaussian, pool.log_evidence)


def reshaped(key: jax.Array, known: Knowledge, fit: BaseFit, target: Target) -> BaseFit:
    """The base, or a mixture that follows the shape of the pool, where it covers the target far better.

    Arms, rings and necks are no modes, but Gaussians can be laid along them. The mixture goes on to learn from its own
    draws, which must find as much mass as the pool has.
    """
    pool = known.pool
    if pool.effective_share * pool.log_weight.size < NUM_SHAPING * FEWEST_EFFECTIVE / 4:
        return fit
    draws = pool.position, pool.log_weight
    first = fit_mixture(draws, num_components=NUM_SHAPING, like=target.initial_position).base
    mixture, population, cost = adapt_population(key, target, broadened(first))
    saved = divergence(pool, fit.base, target) - divergence(pool, mixture, target)
    is_whole = has_lost_no_mass(population, pool) and population.effective_share > GOOD_SHARE
    if not (is_whole and saved > WORTH_A_COMPONENT * (1 + NUM_SHAPING)):
        return fit._replace(num_gradients=fit.num_gradients + cost)
    story = f"A mixture of {NUM_SHAPING + 1} follows its shape: {population.effective_share:.0%} of its draws count."
    return BaseFit(mixture, population.log_evidence, fit.num_gradients + cost, story=(*fit.story, story))


def heavy_tailed(gaussian: Gaussian) -> StudentT:
    """Student's t with the moments of a Gaussian: for one mode with arms or necks that no Gaussian reaches."""
    degrees = StudentT(gaussian.mean, gaussian.scale_tril).degrees_of_freedom
    return StudentT(gaussian.mean, np.sqrt(1 - 2 / degrees) * np.asarray(gaussian.scale_tril))


def gaussian_of(pool: Population, target: Target) -> Gaussian:
    """The Gaussian with the pool's mean and covariance (the paper's proposal)."""
    return fit_moments((pool.position, pool.log_weight), like=target.initial_position).base


def pruned(fits: list[LocalFit], most_lost: float) -> list[LocalFit]:
    """The heaviest fits that hold all but `most_lost` of the mass."""
    order = sorted(fits, key=lambda fit: -fit.log_mass)
    mass = np.exp([fit.log_mass for fit in order] - np.logaddexp.reduce([fit.log_mass for fit in order]))
    held = np.cumsum(mass)
    return order[: int(np.searchsorted(held, 1 - most_lost)) + 1]


def broadened(mixture: Mixture) -> Mixture:
    """The mixture with a broad component over all of it, which goes on looking for modes; if there is room for one."""
    number = mixture.num_components
    if number == len(mixture.log_weights):
        return mixture
    gaussian = fit_moments(mixture).base
    broad = Gaussian(gaussian.mean, np.sqrt(2.0) * np.asarray(gaussian.scale_tril)).whitened()
    log_weights = np.append(mixture.log_weights[:number] + np.log1p(-BROAD_WEIGHT), np.log(BROAD_WEIGHT))
    return Mixture.of([*(mixture.component(i).whitened() for i in range(number)), broad], log_weights)


def divergence(pool: Population, base: Any, target: Target) -> float:
    """KL divergence from the target to a base, on the pool."""
    log_base = to_numpy(_log_densities(base, target, pool.position))
    weight = np.exp(pool.log_weight - pool.log_weight.max())
    is_used = weight > 0
    ratio = pool.log_target[is_used] - log_base[is_used]
    return float(weight[is_used] @ ratio / weight.sum() - pool.log_evidence)


@jax.jit
def _log_densities(base: Any, target: Target, positions: jax.Array) -> jax.Array:
    unravel = ravel_pytree(target.initial_position)[1]
    return jax.vmap(lambda position: base.log_density(unravel(position)))(positions)
