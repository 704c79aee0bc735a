r"""Stochastic ascent of a Gaussian on any objective, in the Gaussian's own coordinates.

A move shifts $m \to m + Lu$ and $L \to L(I + W)$, so that steps have the size of the approximation whatever the scale
and the correlations of the target; the diagonal of $I + W$ is taken as $e^{W_{ii}}$, which keeps it positive.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from thermocline.bases.base import BaseFit
from thermocline.bases.gaussian import Gaussian
from thermocline.evaluator import Evaluator
from thermocline.support import linear

BLOCK = 100  # steps between looks at the objective
FIRST_STEP = 0.3  # of Adam, in standard deviations
DECAY = 1 / 3
NUM_DECAYS = 6
LEAST_GAIN = 1e-3  # of a block, in nats, below which nothing is gained whatever the noise


class LocationScale(NamedTuple):
    """The parameters of a Gaussian on ravelled positions: mean, and scale factor, deviations or a lower triangle."""

    mean: np.ndarray
    scale: np.ndarray

    def at(self, noise: np.ndarray) -> np.ndarray:
        """The positions that standard normal noise, one a row, becomes."""
        return self.mean + linear.multiply(self.scale, noise)

    def noise_at(self, positions: np.ndarray) -> np.ndarray:
        """The noise that would become these positions, one a row.

        By a product: SciPy's triangular solve wakes threads that keep XLA's waiting, at ten times its own cost.
        """
        centred = positions - self.mean
        return centred / self.scale if self.scale.ndim == 1 else centred @ np.linalg.inv(self.scale).T

    def log_densities(self, noise: np.ndarray) -> np.ndarray:
        """The Gaussian's log density where noise takes it."""
        constant = 0.5 * noise.shape[-1] * np.log(2 * np.pi) + linear.log_determinant(self.scale, np)
        return -0.5 * np.sum(noise**2, axis=-1) - constant

    def whitened(self, gradients: np.ndarray) -> np.ndarray:
        """Gradients with respect to positions, one a row, as gradients with respect to the noise."""
        return gradients * self.scale if self.scale.ndim == 1 else gradients @ self.scale

    def moved(self, shift: np.ndarray, stretch: np.ndarray) -> "LocationScale":
        """The Gaussian after a move (u, W); W of a diagonal scale is a vector."""
        mean = self.at(shift)
        if self.scale.ndim == 1:
            return LocationScale(mean, self.scale * np.exp(stretch))
        return LocationScale(mean, self.scale @ (np.tril(stretch, -1) + np.diag(np.exp(np.diagonal(stretch)))))

    def stretch(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """What W keeps of the sum of outer products of rows: the diagonal, or the lower triangle."""
        return np.sum(left * right, axis=0) if self.scale.ndim == 1 else np.tril(left.T @ right)


class Objective(NamedTuple):
    """The objective on draws, along the last axis, and each draw's influence: their spread is its noise."""

    value: np.ndarray
    influence: np.ndarray

    @property
    def standard_error(self) -> np.ndarray:
        return np.std(self.influence, axis=-1) / self.influence.shape[-1] ** 0.5


class Ascent(NamedTuple):
    """Where an ascent ended, and the objective by block."""

    normal: LocationScale
    trace: np.ndarray
    has_converged: bool

    def base_fit(self, evaluate: Evaluator, reached: Objective, log_zeta_is: str, achievement: str) -> BaseFit:
        """The Gaussian as a base, with what fresh draws say that it reached for log zeta."""
        base = Gaussian(evaluate.unravel(self.normal.mean), self.normal.scale.astype(evaluate.precision))
        ending = "" if self.has_converged else " It was still improving when the steps ran out."
        notes = (
            f"{achievement} {reached.value:.3f} ± {reached.standard_error:.3f} "
            f"in {len(self.trace) * BLOCK} steps.{ending}",
        )
        return BaseFit(base, float(reached.value), evaluate.num_rows, log_zeta_is, self.trace, notes=notes)


Move = tuple[np.ndarray, np.ndarray]  # (u, W)


class Adam:
    """Directions of unit size, coordinate by coordinate: the mean of the last over the root of their mean square."""

    def __init__(self) -> None:
        self.number, self.mean, self.square = 0, [0.0, 0.0], [0.0, 0.0]

    def __call__(self, move: Move) -> list[np.ndarray]:
        self.number += 1
        self.mean = [0.9 * old + 0.1 * new for old, new in zip(self.mean, move, strict=True)]
        self.square = [0.99 * old + 0.01 * new**2 for old, new in zip(self.square, move, strict=True)]
        mean, square = (1 - decay**self.number for decay in (0.9, 0.99))  # what a start at zero takes off
        return [(m / mean) / (np.sqrt(s / square) + 1e-8) for m, s in zip(self.mean, self.square, strict=True)]


def ascend(
    start: LocationScale,
    direction: Callable[[LocationScale], Move],
    height: Callable[[LocationScale], Objective],
    *,
    most_steps: int,
) -> Ascent:
    """Adam along a noisy `direction`, in blocks, until `height` rises no more.

    After each block the average of its later half stands for it. Unless that is higher than the best so far by a
    thousandth of a nat and twice the noise of the difference (the same draws measure both), the ascent goes back to
    the best with a third of the step; after six such decays it has converged. A block that ran away is undone.
    """
    adam, trace, num_decays = Adam(), [], 0
    normal, best, best_height = start, start, height(start)
    with np.errstate(all="ignore"):  # what runs away overflows
        while len(trace) < max(most_steps // BLOCK, 1) and num_decays < NUM_DECAYS:
            normal, average = _walk(normal, adam, direction, FIRST_STEP * DECAY**num_decays)
            reached = height(average)
            trace.append(float(reached.value))
            noise = np.std(reached.influence - best_height.influence) / reached.influence.size**0.5
            has_stalled = not reached.value - best_height.value > LEAST_GAIN + 2 * noise  # also when NaN
            if reached.value > best_height.value:
                best, best_height = average, reached
            if has_stalled:
                normal, num_decays = best, num_decays + 1
    return Ascent(best, np.array(trace), num_decays == NUM_DECAYS)


def _walk(
    normal: LocationScale, adam: Adam, direction: Callable[[LocationScale], Move], size: float
) -> tuple[LocationScale, LocationScale]:
    """One block of steps, and the average over its later half.

    A matrix of D² moves, each of Adam's unit size, is divided by the root of D, or it would stretch by D at once.
    """
    width = 1.0 if normal.scale.ndim == 1 else normal.mean.size**0.5
    mean, scale = np.zeros_like(normal.mean), np.zeros_like(normal.scale)
    for index in range(BLOCK):
        shift, stretch = adam(direction(normal))
        normal = normal.moved(size * shift, size * stretch / width)
        if index >= BLOCK // 2:
            mean, scale = mean + normal.mean, scale + normal.scale
    number = BLOCK - BLOCK // 2
    return normal, LocationScale(mean / number, scale / number)
