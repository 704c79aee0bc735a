"""Automatic differentiation variational inference: the Gaussian of largest ELBO."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from thermocline.bases.base import BaseFit
from thermocline.bases.gaussian import Gaussian
from thermocline.fits.ravelled import Ravelled
from thermocline.fits.stochastic_ascent import BLOCK, Height, Normal, ascend
from thermocline.support.precision import cast, computing_in, to_numpy
from thermocline.support.streams import fit_key
from thermocline.target import Target

NUM_FIXED = 256  # draws that compare one block with another
NUM_FRESH = 4096  # draws of the final estimate of the ELBO
FIRST_SCALES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
LARGEST_RESIDUAL = 10.0  # of a draw, root mean square over coordinates: bounds what one draw can do to a step


class Approximation(NamedTuple):
    """A Gaussian on ravelled positions, with its ELBO as fresh draws estimate it."""

    mean: jax.Array
    scale_tril: jax.Array  # as in linear.py
    elbo: jax.Array
    standard_error: jax.Array
    trace: jax.Array  # of the ELBO by block, NaN after the last
    num_blocks: jax.Array
    num_gradients: jax.Array
    has_converged: jax.Array


def fit_advi(
    target: Target,
    *,
    seed: int = 0,
    full_rank: bool = False,
    num_draws: int = 16,
    most_steps: int = 10_000,
    initial: Any = None,
    precision: str = "float64",
) -> BaseFit:
    """The Gaussian of least KL(base ‖ target), eq. kl-base-to-target, by stochastic gradients (Kucukelbir et al. 2017).

    Coordinates are independent or, with `full_rank`, correlated. It settles in one mode, near `initial` (a position,
    by default the target's own), and stops when the ELBO no longer rises above its noise (see `ascend`). log zeta
    is the ELBO: a lower bound of log Z, but for the error of the 4096 fresh draws that estimate it.
    """
    with computing_in(precision):
        density = Ravelled.of(target, precision)
        start = density.initial_position if initial is None else ravel_pytree(cast(initial, precision))[0]
        program = partial(_advi, full_rank=full_rank, num_draws=num_draws, most_steps=most_steps)
        fitted = program(fit_key(seed), density, start)
        base = to_numpy(Gaussian(density.unravel(fitted.mean), fitted.scale_tril))
        fitted = to_numpy(fitted)
    trace = fitted.trace[: int(fitted.num_blocks)]
    return BaseFit(base, float(fitted.elbo), int(fitted.num_gradients), "lower bound", trace, story=_story(fitted))


def advi(
    key: jax.Array,
    log_density: Callable[[jax.Array], jax.Array],
    position: jax.Array,
    *,
    full_rank: bool = False,
    num_draws: int = 16,
    most_steps: int = 10_000,
) -> Approximation:
    """ADVI from one ravelled position, as pure JAX: to be jitted, and vmapped over positions.

    It starts there with the scale, of a few, that has the largest ELBO.
    """
    key_fixed, key_steps, key_fresh = jax.random.split(key, 3)
    fixed = jax.random.normal(key_fixed, (NUM_FIXED, position.size), position.dtype)

    def height(normal: Normal) -> Height:
        return elbo(log_ratios(log_density, normal, fixed), penalty=1.0)

    def start_of(scale: jax.Array) -> tuple[Normal, Height]:
        deviations = jnp.full(position.size, scale, position.dtype)
        normal = Normal(position, jnp.diag(deviations) if full_rank else deviations)
        return normal, height(normal)

    starts, heights = jax.lax.map(start_of, jnp.asarray(FIRST_SCALES, position.dtype))
    start, first_height = jax.tree.map(lambda leaf: leaf[jnp.argmax(heights.value)], (starts, heights))
    direction = partial(elbo_gradient, log_density, num_draws)
    end = ascend(key_steps, start, first_height, direction, height, most_steps=most_steps)
    fresh = jax.random.normal(key_fresh, (NUM_FRESH, position.size), position.dtype)
    reached = elbo(log_ratios(log_density, end.normal, fresh))
    return Approximation(
        mean=end.normal.mean,
        scale_tril=end.normal.scale,
        elbo=reached.value,
        standard_error=jnp.std(reached.influence) / jnp.sqrt(NUM_FRESH),
        trace=end.trace,
        num_blocks=end.num_blocks,
        num_gradients=end.num_blocks * (BLOCK * num_draws + NUM_FIXED) + len(FIRST_SCALES) * NUM_FIXED + NUM_FRESH,
        has_converged=end.has_converged,
    )


def log_ratios(log_density: Callable[[jax.Array], jax.Array], normal: Normal, noise: jax.Array) -> jax.Array:
    """Log of target over Gaussian, where standard normal noise takes it."""
    return jax.vmap(log_density)(normal.at(noise)) - normal.log_densities(noise)


def elbo(log_ratios: jax.Array, *, penalty: float = 0.0) -> Height:
    """The ELBO of the Gaussian cut to the target's support: mean log ratio there, plus log of the share that is there.

    It is a lower bound of log Z too, and finite where a density ends at an edge. A penalty, times the log share,
    keeps an ascent from spreading: cut to a box, the widest Gaussian is the best.
    """
    inside = jnp.isfinite(log_ratios)
    share = jnp.mean(inside)
    mean = jnp.mean(jnp.where(inside, log_ratios, 0.0)) / share
    influence = jnp.where(inside, log_ratios - mean + 1 + penalty, 0.0) / share
    return Height(jnp.where(share > 0, mean + (1 + penalty) * jnp.log(share), -jnp.inf), influence)


def elbo_gradient(
    log_density: Callable[[jax.Array], jax.Array], num_draws: int, key: jax.Array, normal: Normal
) -> tuple[jax.Array, jax.Array]:
    r"""The ELBO's gradient along (u, W), by reparameterisation with the path derivative (Roeder et al. 2017).

    With $x = m + L\epsilon$ and $h = L^\top\nabla\log p(x) + \epsilon$ it is $E[h]$ and $E[h\epsilon^\top]$: without
    noise where the approximation is exact. A draw off the support, or with no gradient, has $h = -\epsilon$: it
    pulls inwards, as if the target fell there twice as fast as the approximation.
    """
    noise = jax.random.normal(key, (num_draws, normal.mean.size), normal.mean.dtype)
    values, gradients = jax.vmap(jax.value_and_grad(log_density))(normal.at(noise))
    residuals = normal.whitened(gradients) + noise
    usable = jnp.isfinite(values) & jnp.all(jnp.isfinite(residuals), axis=1)
    residuals = jnp.where(usable[:, None], residuals, -noise)
    size = jnp.sqrt(jnp.mean(residuals**2, axis=1, keepdims=True))
    residuals = residuals / jnp.maximum(1.0, size / LARGEST_RESIDUAL) / num_draws
    return jnp.sum(residuals, axis=0), normal.stretch(residuals, noise)


def _story(fitted: Approximation) -> tuple[str, ...]:
    kind = "full rank" if fitted.scale_tril.ndim == 2 else "independent coordinates"
    ending = "" if fitted.has_converged else " It was still rising when the steps ran out."
    return (
        f"ADVI with {kind} reached an ELBO of {fitted.elbo:.3f} ± {fitted.standard_error:.3f} "
        f"in {int(fitted.num_blocks) * BLOCK} steps.{ending}",
    )


_advi = partial(jax.jit, static_argnames=("full_rank", "num_draws", "most_steps"))(advi)
