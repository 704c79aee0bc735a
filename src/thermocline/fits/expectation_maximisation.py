"""Mixtures of Gaussians fitted to weighted draws by expectation maximisation."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.bases.base import BaseFit
from thermocline.bases.gaussian import Gaussian
from thermocline.bases.mixture import Mixture
from thermocline.fits.clusters import cluster
from thermocline.fits.stochastic_ascent import Normal
from thermocline.fits.weighted import weighted_draws_of, weighted_moments
from thermocline.records import WeightedDraws
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import cast, computing_in, to_numpy

MOST_STEPS = 200
LEAST_GAIN = 1e-5  # of the mean log density in a step, in nats, at which it ends
LEAST_SIZE = 2.0  # effective draws below which a component has no support
LEAST_VARIANCE = 1e-8  # of a component, relative to that of all draws
NUM_STARTS = 4


def fit_mixture(
    source: Any,
    *,
    seed: int = 0,
    num_components: int = 4,
    start: Mixture | None = None,
    diagonal: bool = False,
    like: Any = None,
    log_zeta: float | None = None,
    precision: str = "float64",
) -> BaseFit:
    """The mixture of Gaussians of largest likelihood for weighted draws, with covariances shrunk a little.

    `source` and `like` are as for `fit_moments`. It climbs from `start`, whose components without support are kept as
    they are, or from the best of four clusterings. log zeta is what is given, else the Result's log evidence, else
    0: a mere placeholder. The trace has the draws' mean log density by step.
    """
    with computing_in(precision):
        draws = weighted_draws_of(source, like)
        starts = [start] if start is not None else _starts(draws, num_components, diagonal, seed)
        positions, weights, starts = cast((draws.position, draws.weight, starts), precision)
        ends = [to_numpy(_climb(one, positions, weights, start is not None)) for one in starts]
    best = max(ends, key=lambda end: end.trace[end.num_steps - 1])
    known = draws.log_evidence if log_zeta is None else log_zeta
    story = f"Expectation maximisation fitted {best.mixture.num_components} Gaussians to {len(draws.weight)} draws."
    return BaseFit(best.mixture, float(known or 0.0), trace=best.trace[: best.num_steps], story=(story,))


class Climb(NamedTuple):
    """Where expectation maximisation ended; `trace` is NaN after the last step."""

    mixture: Mixture
    trace: jax.Array
    num_steps: jax.Array


def expectation_maximisation(
    mixture: Mixture, positions: jax.Array, weights: jax.Array, *, keep: Any = True, most_steps: int = MOST_STEPS
) -> Mixture:
    """The mixture that fits weighted draws (ravelled, one a row) best, from a given one of Gaussians, as pure JAX.

    A component supported by fewer than two effective draws keeps its mean, scale and weight if `keep`, one answer or
    one for each component, says so; otherwise it becomes padding. Padding stays padding.
    """
    return climb(mixture, positions, weights, keep, most_steps=most_steps).mixture


def climb(
    mixture: Mixture, positions: jax.Array, weights: jax.Array, keep: Any, *, most_steps: int = MOST_STEPS
) -> Climb:
    """Steps of expectation maximisation until the mean log density changes no more."""
    unravel = ravel_pytree(mixture.component(0).mean)[1]
    weights = weights / jnp.sum(weights)

    def goes_on(carry: tuple) -> jax.Array:
        _, trace, step = carry
        gain = jnp.abs(trace[step - 1] - trace[step - 2])
        return (step < most_steps) & ~((step > 1) & (gain < LEAST_GAIN))

    def step(carry: tuple) -> tuple:
        state, trace, step = carry
        state, height = maximised(state, positions, weights, keep)
        return state, trace.at[step].set(height), step + 1

    state = Components(mixture.centres(), mixture.components.scale_tril, jnp.asarray(mixture.log_weights))
    trace = jnp.full(most_steps, jnp.nan, positions.dtype)
    state, trace, num_steps = jax.lax.while_loop(goes_on, step, (state, trace, jnp.asarray(0)))
    components = Gaussian(jax.vmap(unravel)(state.mean), state.scale)
    return Climb(Mixture(components, state.log_weight), trace, num_steps)


class Components(NamedTuple):
    """Gaussians on ravelled positions, with a leading axis over them."""

    mean: jax.Array
    scale: jax.Array
    log_weight: jax.Array


def maximised(old: Components, positions: jax.Array, weights: jax.Array, keep: Any) -> tuple[Components, jax.Array]:
    """One step, and the mean log density before it.

    A component's covariance is shrunk towards the mean covariance within components, as if that had been seen in D + 2
    further draws. One whose shares, however even, do not amount to two draws loses its weight but stays where it is.
    """
    log_shares = old.log_weight[:, None] + jax.vmap(partial(_log_densities, positions))(old.mean, old.scale)
    height = weights @ jax.nn.logsumexp(log_shares, axis=0)
    shares = weights * jax.nn.softmax(log_shares, axis=0)  # (component, draw)
    mass = jnp.sum(shares, axis=1)
    size = mass**2 / jnp.maximum(jnp.sum(shares**2, axis=1), jnp.finfo(mass.dtype).tiny)
    is_supported = (size > LEAST_SIZE) & (mass > 0)
    safe = jnp.where(is_supported[:, None], shares, 1.0)
    mean, spread = jax.vmap(weighted_moments, (None, 0))(positions, safe)
    least = LEAST_VARIANCE * jnp.diag(jnp.diagonal(weighted_moments(positions, weights)[1]))
    within = jnp.einsum("k,kij->ij", jnp.where(is_supported, mass, 0.0), spread) / jnp.sum(mass) + least
    prior = positions.shape[1] + 2.0
    size = size[:, None, None]
    scale = _factor((size * spread + prior * within) / (size + prior), old.scale)
    is_new = is_supported & jnp.all(jnp.isfinite(scale), axis=tuple(range(1, scale.ndim)))
    moves = is_new & (mass > LEAST_SIZE * jnp.sum(weights**2))
    return Components(
        jnp.where(moves[:, None], mean, old.mean),
        jnp.where(moves.reshape(-1, *[1] * (scale.ndim - 1)), scale, old.scale),
        _log_weights(old.log_weight, mass, is_new, keep),
    ), height


def _log_weights(old: jax.Array, mass: jax.Array, is_new: jax.Array, keep: Any) -> jax.Array:
    """Those kept have the weight they had; those with support share the rest by their mass."""
    kept = jnp.where(~is_new & jnp.asarray(keep), old, -jnp.inf)
    rest = jnp.log1p(-jnp.minimum(jnp.sum(jnp.exp(kept)), 1.0))
    new = jnp.where(is_new, jnp.log(jnp.where(is_new, mass, 1.0)), -jnp.inf)
    total = jax.nn.logsumexp(new)
    new = jnp.where(is_new, new - jnp.where(jnp.isfinite(total), total, 0.0) + rest, kept)
    return new - jax.nn.logsumexp(new)


def _log_densities(positions: jax.Array, mean: jax.Array, scale: jax.Array) -> jax.Array:
    normal = Normal(mean, scale)
    return normal.log_densities(normal.noise_at(positions))


def _factor(covariances: jax.Array, like: jax.Array) -> jax.Array:
    """Scale factors of the kind of `like`: deviations, or lower triangles."""
    if like.ndim == 2:
        return jnp.sqrt(jnp.diagonal(covariances, axis1=1, axis2=2))
    return jnp.linalg.cholesky(covariances)


def _starts(draws: WeightedDraws, num_components: int, diagonal: bool, seed: int) -> list[Mixture]:
    """Mixtures of clusters: their means and shares, and the covariance within them, pooled."""
    if draws.num_effective < LEAST_SIZE * num_components:
        raise ThermoclineError(
            f"the weights amount to {draws.num_effective:.1f} draws, too few for {num_components} components; "
            "ask for fewer, or give more draws."
        )
    labels = [cluster(draws, num_components, seed, index) for index in range(NUM_STARTS)]
    return [mixture_of_clusters(label, draws, diagonal) for label in labels]


def mixture_of_clusters(label: np.ndarray, draws: WeightedDraws, diagonal: bool = False) -> Mixture:
    """A Gaussian for every cluster, by its mean and share; the covariance is that within clusters, pooled."""
    shares = draws.weight * (label == np.unique(label)[:, None])
    mass = shares.sum(axis=1)
    means = shares @ draws.position / mass[:, None]
    centred = draws.position - means[np.searchsorted(np.unique(label), label)]
    covariance = (centred.T * draws.weight) @ centred
    covariance += np.diag(1e-3 * np.var(draws.position, axis=0))
    scale = np.sqrt(np.diagonal(covariance)) if diagonal else np.linalg.cholesky(covariance)
    return Mixture.of([Gaussian(to_numpy(draws.unravel(mean)), scale) for mean in means], np.log(mass))


_climb = jax.jit(climb)
