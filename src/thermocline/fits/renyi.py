r"""Gaussians that cover the target: least Rényi divergence, $\chi^2$ among them, from target to base.

The bound of order n is $\tfrac1n \log E_q[(p/q)^n] = \log Z + \tfrac{n-1}{n} D_n(p \| q)$. For n < 1 it lies below
log Z: Li & Turner (2016), whose $\alpha$ is 1 - n. For n > 1 it lies above: the CUBO of Dieng et al. (2017), which is
$\chi^2$ for n = 2.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from thermocline.bases.base import BaseFit
from thermocline.bases.gaussian import Gaussian
from thermocline.fits.advi import fit_advi
from thermocline.fits.ravelled import Ravelled
from thermocline.fits.stochastic_ascent import BLOCK, Ascent, Height, Normal, ascend
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import cast, computing_in, to_numpy
from thermocline.support.streams import fit_key
from thermocline.target import Target

NUM_FIXED = 512  # draws of each proposal that compare one block with another
NUM_FRESH = 4096  # draws of each proposal for the final estimate of the bound
WIDENING = 4.0  # of ADVI's fit, for the draws that look for what it missed
NUM_PROPOSALS = 3


def fit_renyi(
    target: Target,
    *,
    seed: int = 0,
    order: float = 2.0,
    full_rank: bool = True,
    num_draws: int = 48,
    most_steps: int = 5000,
    precision: str = "float64",
) -> BaseFit:
    """The Gaussian of least Rényi divergence of this order from target to base: it covers modes that ADVI drops.

    It starts from ADVI's fit. A step takes `num_draws` from the base, as many from ADVI's fit and as many from that
    fit widened fourfold, so that mass seen there is not forgotten. What is farther is never seen, and in many
    dimensions little is.

    Biased, for a finite number of draws, are the gradient, whose weights are normalised by their own sum, and log
    zeta, the log of a mean: draws that miss mass make an upper bound (order > 1) too low, and nothing here can know.
    `num_gradients` counts evaluations of the density.
    """
    if not order > 0 or order == 1:
        raise ThermoclineError(
            f"order is {order}; give one above 1 (2 is chi-squared) or between 0 and 1. Order 0 is fit_advi; "
            "order 1, KL(target ‖ base), asks for the target's moments: fit_moments on draws."
        )
    first = fit_advi(target, seed=seed, full_rank=full_rank, precision=precision)
    with computing_in(precision):
        density, advi = Ravelled.of(target, precision), cast(first.base, precision)
        program = partial(_renyi, order=float(order), num_draws=num_draws, most_steps=most_steps)
        fitted = program(fit_key(seed), density, Normal(ravel_pytree(advi.mean)[0], advi.scale_tril))
        base = to_numpy(Gaussian(density.unravel(fitted.ascent.normal.mean), fitted.ascent.normal.scale))
        fitted = to_numpy(fitted)
    num_blocks = int(fitted.ascent.num_blocks)
    return BaseFit(
        base,
        float(fitted.bound),
        first.num_gradients + NUM_PROPOSALS * (num_blocks * (BLOCK * num_draws + NUM_FIXED) + NUM_FIXED + NUM_FRESH),
        "lower bound" if order < 1 else "upper bound",
        fitted.ascent.trace[:num_blocks] * _sign(order),
        story=_story(fitted, order),
    )


class Covering(NamedTuple):
    """Where the ascent ended, and the bound there by fresh draws."""

    ascent: Ascent
    bound: jax.Array
    standard_error: jax.Array


def renyi(
    key: jax.Array,
    log_density: Callable[[jax.Array], jax.Array],
    start: Normal,
    *,
    order: float = 2.0,
    num_draws: int = 48,
    most_steps: int = 5000,
) -> Covering:
    """The ascent from one Gaussian on ravelled positions, as pure JAX: to be jitted and vmapped."""
    key_fixed, key_steps, key_fresh = jax.random.split(key, 3)
    anchors = start, Normal(start.mean, start.scale * WIDENING)
    draw = partial(weighted_draws, log_density, anchors, order)

    def height(normal: Normal) -> Height:
        bound = bound_of(draw(key_fixed, NUM_FIXED, normal)[0], order)
        return Height(_sign(order) * bound.value, _sign(order) * bound.influence)

    def direction(key: jax.Array, normal: Normal) -> tuple[jax.Array, jax.Array]:
        return weighted_score(*draw(key, num_draws, normal), normal)

    ascent = ascend(key_steps, start, height(start), direction, height, most_steps=most_steps)
    bound = bound_of(draw(key_fresh, NUM_FRESH, ascent.normal)[0], order)
    return Covering(ascent, bound.value, jnp.std(bound.influence) / jnp.sqrt(bound.influence.size))


def weighted_draws(
    log_density: Callable[[jax.Array], jax.Array],
    anchors: tuple[Normal, ...],
    order: float,
    key: jax.Array,
    num_draws: int,
    normal: Normal,
) -> tuple[jax.Array, jax.Array]:
    """Draws of q = `normal` and of each anchor: log weights whose mean is E_q[(p/q)^n], and q's noise at each.

    They are weighted as draws of the mixture of all proposals, so that no weight is large because one missed it.
    """
    proposals = (normal, *anchors)
    noise = jax.random.normal(key, (len(proposals), num_draws, normal.mean.size), normal.mean.dtype)
    positions = jnp.concatenate([each.at(part) for each, part in zip(proposals, noise, strict=True)])
    log_proposals = jnp.stack([each.log_densities(each.noise_at(positions)) for each in proposals])
    log_mixture = jax.nn.logsumexp(log_proposals, axis=0) - jnp.log(len(proposals))
    log_weights = order * jax.vmap(log_density)(positions) + (1 - order) * log_proposals[0] - log_mixture
    return jnp.where(jnp.isfinite(log_weights), log_weights, -jnp.inf), normal.noise_at(positions)


def bound_of(log_weights: jax.Array, order: float) -> Height:
    """The bound, and each draw's influence on it (the delta method's)."""
    log_mean = jax.nn.logsumexp(log_weights) - jnp.log(log_weights.size)
    has_any = log_mean > -jnp.inf
    return Height(log_mean / order, jnp.exp(log_weights - jnp.where(has_any, log_mean, 0.0)) / order)


def weighted_score(log_weights: jax.Array, noise: jax.Array, normal: Normal) -> tuple[jax.Array, jax.Array]:
    r"""Ascent for every order: $\sum_i w_i \nabla \log q(x_i)$ along (u, W), weights normalised by their sum.

    For a Gaussian the score is $\epsilon$ and $\epsilon\epsilon^\top - I$. The pathwise form of the same gradient has
    $\nabla\log p$ in it, large and of either sign on the flanks of a mode narrower than q: there it runs away.
    """
    has_any = jnp.max(log_weights) > -jnp.inf
    weights = jnp.where(has_any, jax.nn.softmax(log_weights), 0.0)[:, None]
    identity = jnp.eye(noise.shape[1], dtype=noise.dtype) * has_any
    return jnp.sum(weights * noise, axis=0), normal.stretch(weights * noise, noise) - normal.stretch(identity, identity)


def _sign(order: float) -> int:
    """Lower bounds are raised, upper bounds lowered."""
    return 1 if order < 1 else -1


def _story(fitted: Covering, order: float) -> tuple[str, ...]:
    ending = "" if fitted.ascent.has_converged else " It was still improving when the steps ran out."
    side = "lower" if order < 1 else "upper"
    return (
        f"The Rényi bound of order {order:g}, {side}, reached {fitted.bound:.3f} ± {fitted.standard_error:.3f} "
        f"in {int(fitted.ascent.num_blocks) * BLOCK} steps.{ending}",
    )


_renyi = partial(jax.jit, static_argnames=("order", "num_draws", "most_steps"))(renyi)
