r"""Gaussians that cover the target: least Rényi divergence, $\chi^2$ among them, from target to base.

The bound of order n is $\tfrac1n \log E_q[(p/q)^n] = \log Z + \tfrac{n-1}{n} D_n(p \| q)$. For n < 1 it lies below
log Z: Li & Turner (2016), whose $\alpha$ is 1 - n. For n > 1 it lies above: the CUBO of Dieng et al. (2017), which is
$\chi^2$ for n = 2.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from thermocline.bases.base import BaseFit
from thermocline.evaluator import Evaluator, checked_evaluator
from thermocline.fits.advi import STREAM as ADVI_STREAM
from thermocline.fits.advi import advi
from thermocline.fits.gaussian_ascent import BLOCK, Ascent, LocationScale, Move, Objective, ascend
from thermocline.support.errors import ThermoclineError
from thermocline.target import Target

STREAM = 0x4E71  # of random numbers, beside the seed
NUM_FIXED = 512  # draws of each proposal that compare one block with another
NUM_FRESH = 4096  # draws of each proposal for the final estimate of the bound
WIDENING = 4.0  # of ADVI's fit, for the draws that look for what it missed


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
    evaluate, side = checked_evaluator(target, precision, seed=seed), "lower" if order < 1 else "upper"
    generators = [np.random.default_rng([seed, stream]) for stream in (ADVI_STREAM, STREAM)]
    first, _ = advi(generators[0], evaluate, evaluate.initial_position, full_rank=full_rank)
    ascent, reached = renyi(generators[1], evaluate, first.normal, float(order), num_draws, most_steps)
    return ascent.base_fit(evaluate, reached, f"{side} bound", f"The Rényi bound of order {order:g}, {side}, reached")


def renyi(
    generator: np.random.Generator,
    evaluate: Evaluator,
    start: LocationScale,
    order: float,
    num_draws: int,
    most_steps: int,
) -> tuple[Ascent, Objective]:
    """The ascent from one Gaussian on ravelled positions, and the bound that it reached by fresh draws."""
    anchors, dimension = (start, LocationScale(start.mean, start.scale * WIDENING)), start.mean.size
    sign = 1 if order < 1 else -1  # lower bounds are raised, upper bounds lowered
    weigh = partial(weighted_draws, evaluate, anchors, order)
    fixed = generator.normal(size=(3, NUM_FIXED, dimension))
    fixed_there = drawn(evaluate, anchors, fixed[1:])
    stream = _anchor_draws(generator, evaluate, anchors, num_draws)

    def height(normal: LocationScale) -> Objective:
        bound = bound_of(weigh(normal, fixed[0], fixed_there)[0], order)
        return Objective(sign * bound.value, sign * bound.influence)

    def direction(normal: LocationScale) -> Move:
        return weighted_score(*weigh(normal, generator.normal(size=(num_draws, dimension)), next(stream)), normal)

    ascent = ascend(start, direction, height, most_steps=most_steps)
    fresh = generator.normal(size=(3, NUM_FRESH, dimension))
    reached = bound_of(weigh(ascent.normal, fresh[2], drawn(evaluate, anchors, fresh[:2]))[0], order)
    return ascent._replace(trace=sign * ascent.trace), reached


Drawn = tuple[np.ndarray, np.ndarray]  # positions, and the target's log density at each


def drawn(evaluate: Evaluator, normals: tuple[LocationScale, ...], noise: np.ndarray) -> Drawn:
    """Where noise (normal, …, draw, dimension) takes each of the Gaussians: (…, all draws, dimension)."""
    position = np.concatenate([normal.at(part) for normal, part in zip(normals, noise, strict=True)], axis=-2)
    return position, evaluate.values(position)


def weighted_draws(
    evaluate: Evaluator,
    anchors: tuple[LocationScale, ...],
    order: float,
    normal: LocationScale,
    noise: np.ndarray,
    there: Drawn,
) -> tuple[np.ndarray, np.ndarray]:
    """Draws of q = `normal`, and as many of each anchor: log weights whose mean is E_q[(p/q)^n], and q's noise at each.

    They are weighted as draws of the mixture of all proposals, so that no weight is large because one missed it.
    """
    own = drawn(evaluate, (normal,), noise[None])
    positions, log_targets = (np.concatenate(leaves) for leaves in zip(own, there, strict=True))
    noise = np.concatenate([noise, normal.noise_at(there[0])])
    log_own = normal.log_densities(noise)
    log_anchors = [anchor.log_densities(anchor.noise_at(positions)) for anchor in anchors]
    log_mixture = np.logaddexp.reduce([log_own, *log_anchors]) - np.log(1 + len(anchors))
    log_weights = order * log_targets + (1 - order) * log_own - log_mixture
    return np.where(np.isfinite(log_weights), log_weights, -np.inf), noise


def _anchor_draws(
    generator: np.random.Generator, evaluate: Evaluator, anchors: tuple[LocationScale, ...], num_draws: int
) -> Iterator[Drawn]:
    """Draws of the anchors, a step's at a time; they do not move, so those of a block are evaluated together."""
    while True:
        noise = generator.normal(size=(len(anchors), BLOCK, num_draws, anchors[0].mean.size))
        yield from zip(*drawn(evaluate, anchors, noise), strict=True)


def bound_of(log_weights: np.ndarray, order: float) -> Objective:
    """The bound, and each draw's influence on it (the delta method's)."""
    log_mean = np.logaddexp.reduce(log_weights) - np.log(log_weights.size)
    return Objective(log_mean / order, np.exp(log_weights - (log_mean if log_mean > -np.inf else 0.0)) / order)


def weighted_score(log_weights: np.ndarray, noise: np.ndarray, normal: LocationScale) -> Move:
    r"""Ascent for every order: $\sum_i w_i \nabla \log q(x_i)$ along (u, W), weights normalised by their sum.

    For a Gaussian the score is $\epsilon$ and $\epsilon\epsilon^\top - I$. The pathwise form of the same gradient has
    $\nabla\log p$ in it, large and of either sign on the flanks of a mode narrower than q: there it runs away.
    """
    largest = np.max(log_weights)
    has_any = largest > -np.inf
    weights = np.exp(log_weights - (largest if has_any else 0.0))[:, None]
    weights = weights / max(np.sum(weights), 1.0)
    identity = np.eye(noise.shape[1]) * has_any
    return np.sum(weights * noise, axis=0), normal.stretch(weights * noise, noise) - normal.stretch(identity, identity)
