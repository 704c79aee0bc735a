"""Population Monte Carlo: a Gaussian mixture drawn to the target by importance sampling (Cappé et al. 2008).

Each round draws from the mixture, weights the draws for the target, and fits the mixture to them, which lowers the
divergence from the target to the mixture: it covers modes where variational fits choose one.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.bases.base import fresh_draws
from thermocline.bases.gaussian import Gaussian
from thermocline.bases.mixture import Mixture
from thermocline.estimators.resampling import systematic_resample
from thermocline.fits.expectation_maximisation import expectation_maximisation
from thermocline.support import linear
from thermocline.support.precision import to_numpy
from thermocline.target import Target

NUM_DRAWS = 4096
MOST_ROUNDS = 10
LEAST_SHARE = 0.02  # of draws that must be effective for a round to be learned from
NUM_STEPS = 20  # of expectation maximisation
STRAYED = 16.0  # squared deviations a dimension, of both the old fit and the new: so far off lies another mode
LEAST_WEIGHT = 1e-3  # of a component, so that a mode once known goes on being looked at
GAIN = 1.02  # of the effective share that makes another round worth it


class Population(NamedTuple):
    """Draws of a mixture, ravelled, with log weights for the target relative to it and the target's log density."""

    position: np.ndarray
    log_weight: np.ndarray
    log_target: np.ndarray

    def part(self, rows: slice) -> "Population":
        """Some of the draws."""
        return Population(*(leaf[rows] for leaf in self))

    @property
    def log_evidence(self) -> float:
        """Importance sampling's estimate."""
        return float(np.logaddexp.reduce(self.log_weight) - np.log(self.log_weight.size))

    @property
    def effective_share(self) -> float:
        """Kish's effective number of weights, as a share of the draws; none where all are off the support."""
        if not self.log_weight.max() > -np.inf:
            return 0.0
        weight = np.exp(self.log_weight - self.log_weight.max())
        return float(weight.sum() ** 2 / np.sum(weight**2) / weight.size)


def draw_population(key: jax.Array, target: Target, mixture: Mixture, *, num_draws: int = NUM_DRAWS) -> Population:
    """Fresh draws of the mixture, weighted for the target; off its support, or where it is NaN, they weigh nothing."""
    return Population(*to_numpy(_draw(key, target, mixture, num_draws)))


@partial(jax.jit, static_argnames="num_draws")
def _draw(key: jax.Array, target: Target, mixture: Mixture, num_draws: int) -> tuple[jax.Array, ...]:
    unravel = ravel_pytree(target.initial_position)[1]
    positions = fresh_draws(key, mixture, num_draws)
    log_target = jax.vmap(lambda position: jnp.asarray(target(unravel(position)), position.dtype))(positions)
    log_target = jnp.where(jnp.isfinite(log_target), log_target, -jnp.inf)
    log_base = jax.vmap(lambda position: mixture.log_density(unravel(position)))(positions)
    return positions, log_target - log_base, log_target


def adapt_population(key: jax.Array, target: Target, mixture: Mixture) -> tuple[Mixture, Population, int]:
    """The best mixture of a few rounds, its own draws, and how many densities were evaluated.

    A mixture that covers the target poorly is left alone: its few heavy draws would pull it onto themselves. For
    the same reason a round that finds less mass is no gain, however even its weights.
    """
    best, best_population = mixture, draw_population(jax.random.fold_in(key, 0), target, mixture)
    num_rounds = 1
    while num_rounds < MOST_ROUNDS and best_population.effective_share > LEAST_SHARE:
        current = learn_from(best, best_population.position, best_population.log_weight)
        population = draw_population(jax.random.fold_in(key, num_rounds), target, current)
        num_rounds += 1
        if not is_better(population, best_population):
            break
        best, best_population = current, population
    return best, best_population, num_rounds * NUM_DRAWS


def is_better(population: Population, than: Population) -> bool:
    """More even weights, and no mass lost."""
    return has_lost_no_mass(population, than) and population.effective_share > GAIN * than.effective_share


def has_lost_no_mass(population: Population, than: Population) -> bool:
    """Whether it finds as much as another does, but for what chance can do."""
    chance = np.hypot(*(1 / np.sqrt(p.effective_share * p.log_weight.size) for p in (population, than)))
    return bool(than.log_evidence - population.log_evidence < 2 * chance)


def learn_from(mixture: Mixture, positions: np.ndarray, log_weight: np.ndarray) -> Mixture:
    """The mixture after expectation maximisation on weighted draws; a mode once known goes on being looked at.

    Whatever their number, as many are resampled as a population has: one size, one program.
    """
    index = systematic_resample(log_weight, NUM_DRAWS, 0)
    return to_numpy(_learn(mixture, positions[index]))


@jax.jit
def _learn(mixture: Mixture, positions: jax.Array) -> Mixture:
    weights = jnp.full(len(positions), 1 / len(positions))
    fitted = expectation_maximisation(mixture, positions, weights, most_steps=NUM_STEPS)
    is_padding = jnp.isneginf(jnp.asarray(mixture.log_weights))
    log_weights = jnp.where(is_padding, -jnp.inf, jnp.maximum(fitted.log_weights, np.log(LEAST_WEIGHT)))
    means, scales = fitted.components.mean, fitted.components.scale_tril
    has_strayed = _distance(mixture, fitted) > STRAYED * positions.shape[1]
    has_strayed &= _distance(fitted, mixture) > STRAYED * positions.shape[1]

    def kept(old: jax.Array, new: jax.Array) -> jax.Array:
        return jnp.where(has_strayed.reshape(-1, *[1] * (new.ndim - 1)), old, new)

    means = jax.tree.map(kept, mixture.components.mean, means)
    scales = kept(jnp.asarray(mixture.components.scale_tril), scales)
    components = Gaussian(means, scales, linear.inverse(scales))
    return Mixture(components, log_weights - jax.nn.logsumexp(log_weights))


def _distance(mixture: Mixture, other: Mixture) -> jax.Array:
    """Squared distance of each component's mean from its counterpart's, in its own deviations."""
    offset = other.centres() - mixture.centres()
    whitened = jnp.einsum("kij,kj->ki", linear.inverse(jnp.asarray(mixture.components.scale_tril)), offset)
    return jnp.sum(whitened**2, axis=1)
