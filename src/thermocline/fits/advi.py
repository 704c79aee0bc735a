"""Automatic differentiation variational inference: the Gaussian of largest ELBO."""

from functools import partial
from typing import Any

import numpy as np

from thermocline.bases.base import BaseFit
from thermocline.evaluator import Evaluator, checked_evaluator
from thermocline.fits.gaussian_ascent import Ascent, LocationScale, Move, Objective, ascend
from thermocline.support.flat import ravelled
from thermocline.target import Target

STREAM = 0xAD71  # of random numbers, beside the seed
NUM_FIXED = 256  # draws that compare one block with another
NUM_FRESH = 4096  # draws of the final estimate of the ELBO
FIRST_SCALES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
LARGEST_RESIDUAL = 10.0  # of a draw, root mean square over coordinates: bounds what one draw can do to a step


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
    evaluate = checked_evaluator(target, precision, seed=seed)
    start = evaluate.initial_position if initial is None else ravelled(initial).astype(precision)
    generator = np.random.default_rng([seed, STREAM])
    ascent, reached = advi(generator, evaluate, start, full_rank=full_rank, num_draws=num_draws, most_steps=most_steps)
    kind = "full rank" if full_rank else "independent coordinates"
    return ascent.base_fit(evaluate, reached, "lower bound", f"ADVI with {kind} reached an ELBO of")


def advi(
    generator: np.random.Generator,
    evaluate: Evaluator,
    position: np.ndarray,
    *,
    full_rank: bool = False,
    num_draws: int = 16,
    most_steps: int = 10_000,
) -> tuple[Ascent, Objective]:
    """ADVI from one ravelled position, and the ELBO that it reached by fresh draws.

    It starts there with the scale, of a few, that has the largest ELBO.
    """
    fixed = generator.normal(size=(NUM_FIXED, position.size))

    def height(normal: LocationScale) -> Objective:
        return elbo(log_ratios(evaluate, normal, fixed), penalty=1.0)

    deviations = np.outer(FIRST_SCALES, np.ones(position.size))
    starts = [LocationScale(position.astype(float), np.diag(row) if full_rank else row) for row in deviations]
    start = max(starts, key=lambda normal: height(normal).value)
    direction = partial(elbo_gradient, generator, evaluate, num_draws)
    ascent = ascend(start, direction, height, most_steps=most_steps)
    fresh = generator.normal(size=(NUM_FRESH, position.size))
    return ascent, elbo(log_ratios(evaluate, ascent.normal, fresh))


def log_ratios(evaluate: Evaluator, normal: LocationScale, noise: np.ndarray) -> np.ndarray:
    """Log of target over Gaussian, where standard normal noise takes it."""
    return evaluate.values(normal.at(noise)) - normal.log_densities(noise)


def elbo(log_ratios: np.ndarray, *, penalty: float = 0.0) -> Objective:
    """The ELBO of the Gaussian cut to the target's support: mean log ratio there, plus log of the share that is there.

    It is a lower bound of log Z too, and finite where a density ends at an edge. A penalty, times the log share,
    keeps an ascent from spreading: cut to a box, the widest Gaussian is the best.
    """
    inside = np.isfinite(log_ratios)
    share, log_ratios = np.mean(inside, axis=-1), np.where(inside, log_ratios, 0.0)
    some = np.where(share > 0, share, 1.0)
    mean = np.mean(log_ratios, axis=-1) / some
    influence = np.where(inside, log_ratios - mean[..., None] + 1 + penalty, 0.0) / some[..., None]
    return Objective(np.where(share > 0, mean + (1 + penalty) * np.log(some), -np.inf), influence)


def elbo_gradient(generator: np.random.Generator, evaluate: Evaluator, num_draws: int, normal: LocationScale) -> Move:
    r"""The ELBO's gradient along (u, W), by reparameterisation with the path derivative (Roeder et al. 2017).

    With $x = m + L\epsilon$ and $h = L^\top\nabla\log p(x) + \epsilon$ it is $E[h]$ and $E[h\epsilon^\top]$: without
    noise where the approximation is exact. A draw off the support, or with no gradient, has $h = -\epsilon$: it
    pulls inwards, as if the target fell there twice as fast as the approximation.
    """
    noise = generator.normal(size=(num_draws, normal.mean.size))
    residuals = residuals_at(evaluate, normal, noise)[1] / num_draws
    return np.sum(residuals, axis=0), normal.stretch(residuals, noise)


def residuals_at(evaluate: Evaluator, normal: LocationScale, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log densities where noise takes a Gaussian, and the slopes h there that it does not have itself, bounded."""
    values, gradients = evaluate(normal.at(noise))
    residuals = normal.whitened(gradients) + noise
    usable = np.isfinite(values) & np.isfinite(residuals).all(axis=1)
    residuals = np.where(usable[:, None], residuals, -noise)
    size = np.sqrt(np.mean(residuals**2, axis=1, keepdims=True))
    return values, residuals / np.maximum(1.0, size / LARGEST_RESIDUAL)
