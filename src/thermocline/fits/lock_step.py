"""Lanes of L-BFGS in lock step: one evaluation an iteration and lane, and the done leave."""

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from thermocline.evaluator import Evaluator
from thermocline.fits.quasi_newton import MEMORY, Pairs

LEAST_GAIN = 1e-7  # predicted gain, in nats, at which a lane has arrived
STUCK_GAIN = 1e-3  # likewise, of a lane that rounding holds up
FIRST_GAIN = 1.0  # that the slope alone promises of a first step, in nats
SUFFICIENT = 1e-4  # share of the gain promised by the slope, that a step must keep
OVERSHOOT = 0.8  # of the slope, reversed, up to which a step that rounding cannot judge is good
STEEP = 0.5  # share of the slope that is left after a step too short
GROWTH, MOST_GROWTH = 4.0, 100.0  # of steps in length: where no curvature is seen, and at most
SHRINK_OFF, LEAST_SHRINK, MOST_SHRINK = 0.1, 1e-4, 0.5  # beyond an edge, and the range where slopes tell
PATIENCE = 6  # iterations without a gain above rounding
ROUNDING = 8.0  # units in the last place of a log density, that count as level


class Ending(IntEnum):
    """Why a lane ended; with more optima than places looked at, some have arrived as far as L-BFGS can tell."""

    ARRIVED = 0  # nothing more to gain
    STUCK = 1  # at an edge, or where rounding hides the rest
    RAN_OUT = 2  # of iterations: a long way, or no optimum at all
    LOST = 3  # the start has no density


Visit = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None]  # of lanes, positions, values and gradients


class _Lanes(NamedTuple):
    """The lanes still under way. Directions, pairs and `slope` are in the units of the metric."""

    number: np.ndarray  # of the lane among all
    position: np.ndarray
    value: np.ndarray
    gradient: np.ndarray
    slope: np.ndarray  # the gradient, in the metric
    steps: np.ndarray  # of the pairs
    falls: np.ndarray
    direction: np.ndarray
    size: np.ndarray  # of the step to be tried, in directions
    num_idle: np.ndarray
    root: np.ndarray  # of the metric, (lane, dimension, dimension), or of size 0 for none

    def chosen(self, index: np.ndarray) -> "_Lanes":
        return _Lanes(*(leaf[index] for leaf in self))

    @property
    def pairs(self) -> Pairs:
        return Pairs(self.steps, self.falls)

    @property
    def promise(self) -> np.ndarray:
        """What the slope alone promises of a step of the whole direction: twice the predicted gain."""
        return np.sum(self.slope * self.direction, axis=1)


def ascend(
    evaluate: Evaluator,
    position: np.ndarray,
    value: np.ndarray,
    gradient: np.ndarray,
    *,
    roots: np.ndarray | None,
    num_iterations: int,
    visit: Visit,
) -> tuple[np.ndarray, int]:
    """How lanes end from where they are, each in the metric R Rᵀ of its root if there are any; and the iterations.

    Where they go is told to `visit`.
    """
    number = len(position)
    root = np.zeros((number, 0, 0)) if roots is None else roots
    slope = _white(gradient, root)
    lanes = _Lanes(
        number=np.arange(number),
        position=position,
        value=value,
        gradient=gradient,
        slope=slope,
        steps=np.zeros((number, MEMORY, slope.shape[1])),
        falls=np.zeros((number, MEMORY, slope.shape[1])),
        direction=slope,
        size=_first_size(slope, root),
        num_idle=np.zeros(number, int),
        root=root,
    )
    ending = np.full(number, Ending.RAN_OUT)
    for iteration in range(num_iterations):
        lanes = _depart(lanes, ending)
        if not len(lanes.number):
            return ending, iteration
        with np.errstate(over="ignore", invalid="ignore"):  # what is too far is refused
            lanes, moved = _step(evaluate, lanes)
        visit(*(leaf[moved] for leaf in lanes[:4]))
    _depart(lanes, ending)
    return ending, num_iterations


def _depart(lanes: _Lanes, ending: np.ndarray) -> _Lanes:
    """Without the lanes that have arrived or cannot go on, whose ending is noted."""
    promise = lanes.promise
    is_known = ~lanes.pairs.is_empty | (lanes.root.size > 0)  # without units a slope of nearly 0 says nothing
    arrived = (promise == 0) | (is_known & (promise / 2 < LEAST_GAIN))
    hopeless = (lanes.num_idle > PATIENCE) | (lanes.size * promise < 0.1 * LEAST_GAIN)
    arrived |= hopeless & is_known & (promise / 2 < STUCK_GAIN)
    ending[lanes.number[hopeless]] = Ending.STUCK
    ending[lanes.number[arrived]] = Ending.ARRIVED
    stays = ~(arrived | hopeless)
    return lanes if stays.all() else lanes.chosen(stays)


def _step(evaluate: Evaluator, lanes: _Lanes) -> tuple[_Lanes, np.ndarray]:
    """Try one step of each lane: those that rise move on, and all decide on their next."""
    step = lanes.size[:, None] * lanes.direction
    position = (lanes.position + _white(step, lanes.root.swapaxes(1, 2))).astype(lanes.position.dtype)
    value, gradient = (leaf.astype(float) for leaf in evaluate(position))
    usable = np.isfinite(value) & np.isfinite(gradient).all(axis=1) & np.isfinite(position).all(axis=1)
    value, gradient = np.where(usable, value, lanes.value), np.where(usable[:, None], gradient, lanes.gradient)
    slope = _white(gradient, lanes.root)
    promise, left = lanes.promise, np.sum(slope * lanes.direction, axis=1)
    noise = ROUNDING * np.finfo(lanes.position.dtype).eps * np.maximum(np.abs(value), np.abs(lanes.value))
    rise = value - lanes.value
    is_level = (np.abs(rise) <= noise) & (left >= -OVERSHOOT * promise)
    moved = usable & ((rise >= SUFFICIENT * lanes.size * promise) | is_level)
    tried = lanes._replace(
        position=np.where(moved[:, None], position, lanes.position),
        value=np.where(moved, value, lanes.value),
        gradient=np.where(moved[:, None], gradient, lanes.gradient),
        slope=np.where(moved[:, None], slope, lanes.slope),
        num_idle=np.where(rise > noise, 0, lanes.num_idle + moved),
    )
    shorter = lanes.size * _shrink(usable, lanes.size * promise, lanes.size * left)
    after = _after_move(tried, lanes.slope, step, is_steep=left > STEEP * promise)
    return _merged(moved, after, _after_failure(tried._replace(size=shorter))), moved


def _after_move(lanes: _Lanes, slope_before: np.ndarray, step: np.ndarray, is_steep: np.ndarray) -> _Lanes:
    """The next quasi-Newton step; where none of the curvature was seen, a longer one than the last."""
    pairs, is_new = lanes.pairs.with_one(step, slope_before, lanes.slope)
    direction = pairs.times(lanes.slope)
    is_down = np.sum(direction * lanes.slope, axis=1) <= 0  # rounding has spoilt the pairs
    pairs = pairs.without(is_down)
    direction = np.where((is_down | pairs.is_empty)[:, None], lanes.slope, direction)
    relative = np.linalg.norm(step, axis=1) / np.maximum(np.linalg.norm(direction, axis=1), 1e-300)
    blind = relative * np.where(is_steep, GROWTH, 1.0)
    size = np.where(is_new, 1.0, np.where(pairs.is_empty, blind, np.maximum(blind, 1.0)))
    size = np.minimum(size, MOST_GROWTH * relative)
    return lanes._replace(steps=pairs.steps, falls=pairs.falls, direction=direction, size=size)


def _after_failure(lanes: _Lanes) -> _Lanes:
    """A shorter step; where none is left, once more along the slope without what the pairs say."""
    is_spent = (lanes.size * lanes.promise < LEAST_GAIN) & ~lanes.pairs.is_empty
    direction = np.where(is_spent[:, None], lanes.slope, lanes.direction)
    size = np.where(is_spent, _first_size(lanes.slope, lanes.root), lanes.size)
    pairs = lanes.pairs.without(is_spent)
    return lanes._replace(steps=pairs.steps, falls=pairs.falls, direction=direction, size=size)


def _shrink(usable: np.ndarray, promise: np.ndarray, left: np.ndarray) -> np.ndarray:
    """By what to shorten a step that failed: to where the slope along it would vanish, if it does."""
    secant = promise / np.where(left < promise, promise - left, np.inf)
    return np.where(usable, np.clip(secant, LEAST_SHRINK, MOST_SHRINK), SHRINK_OFF)


def _first_size(slope: np.ndarray, root: np.ndarray) -> np.ndarray:
    """In a metric, all of the slope: Newton's step. Without, as far as promises a nat, whatever the units."""
    squares = np.sum(slope**2, axis=1)
    return np.ones(len(slope)) if root.size else FIRST_GAIN / np.maximum(squares, 1e-300)


def _white(rows: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Each row times its root, if there are any."""
    return (rows[:, None] @ root)[:, 0] if root.size else rows


def _merged(condition: np.ndarray, one: _Lanes, other: _Lanes) -> _Lanes:
    """Each lane from one of two."""
    leaves = (
        np.where(condition.reshape(-1, *[1] * (first.ndim - 1)), first, second)
        for first, second in zip(one[:-1], other[:-1], strict=True)
    )
    return _Lanes(*leaves, root=one.root)
