"""Lanes of L-BFGS in lock step: one evaluation an iteration and lane, and the done leave."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from thermocline.engine.batch import at
from thermocline.evaluator import Evaluator
from thermocline.fits.quasi_newton import Pairs

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


class Ends:
    """What is known of all lanes so far: where they are, by which way they came, and why they stopped."""

    def __init__(self, evaluate: Evaluator, starts: np.ndarray, keep_paths: bool) -> None:
        self.position = np.array(starts, evaluate.precision)
        self.value, self.gradient = (leaf.astype(float) for leaf in evaluate(self.position))
        usable = np.isfinite(self.value) & np.isfinite(self.gradient).all(axis=1)
        self.ending = np.where(usable, Ending.RAN_OUT, Ending.LOST)
        self.visited = [(np.arange(len(self.value)), self.position.copy(), self.value.copy(), self.gradient.copy())]
        self.keep_paths = keep_paths

    def move(self, number: np.ndarray, position: np.ndarray, value: np.ndarray, gradient: np.ndarray) -> None:
        """Keep where some lanes have got to."""
        self.position[number], self.value[number], self.gradient[number] = position, value, gradient
        if self.keep_paths:
            self.visited.append((number, position, value, gradient))


class _Lanes(NamedTuple):
    """The lanes still under way: all that is theirs is in the units of the metric."""

    number: np.ndarray  # of the lane among all
    slope: np.ndarray  # the gradient
    pairs: Pairs
    direction: np.ndarray
    size: np.ndarray  # of the step to be tried, in directions
    num_idle: np.ndarray
    root: np.ndarray  # of the metric, (lane, dimension, dimension), or of size 0 for none

    @property
    def promise(self) -> np.ndarray:
        """What the slope alone promises of a step of the whole direction: twice the predicted gain."""
        return np.sum(self.slope * self.direction, axis=1)


def ascend(evaluate: Evaluator, ends: Ends, number: np.ndarray, roots: np.ndarray | None, num_iterations: int) -> int:
    """These lanes go on, each in the metric R Rᵀ of its root if there are any; how many iterations that took."""
    root = np.zeros((len(number), 0, 0)) if roots is None else roots
    slope = _white(ends.gradient[number], root)
    idle = np.zeros(len(number), int)
    lanes = _Lanes(number, slope, Pairs.none(*slope.shape), slope, _first_size(slope, root), idle, root)
    ends.ending[number] = Ending.RAN_OUT
    for iteration in range(num_iterations):
        lanes = _staying(lanes, ends)
        if not len(lanes.number):
            return iteration
        with np.errstate(over="ignore", invalid="ignore"):  # what is too far is refused
            lanes = _step(evaluate, ends, lanes)
    _staying(lanes, ends)
    return num_iterations


def _staying(lanes: _Lanes, ends: Ends) -> _Lanes:
    """Without the lanes that have arrived or cannot go on, whose ending is noted."""
    promise = lanes.promise
    is_known = ~lanes.pairs.is_empty | (lanes.root.size > 0)  # without units a slope of nearly 0 says nothing
    arrived = (promise == 0) | (is_known & (promise / 2 < LEAST_GAIN))
    hopeless = (lanes.num_idle > PATIENCE) | (lanes.size * promise < 0.1 * LEAST_GAIN)
    arrived |= hopeless & is_known & (promise / 2 < STUCK_GAIN)
    ends.ending[lanes.number[hopeless]] = Ending.STUCK
    ends.ending[lanes.number[arrived]] = Ending.ARRIVED
    stays = ~(arrived | hopeless)
    return lanes if stays.all() else at(lanes, stays)


def _step(evaluate: Evaluator, ends: Ends, lanes: _Lanes) -> _Lanes:
    """Try one step of each lane: those that rise move on, and all decide on their next."""
    step, before = lanes.size[:, None] * lanes.direction, ends.value[lanes.number]
    position = ends.position[lanes.number] + _white(step, lanes.root.swapaxes(1, 2))
    position = position.astype(ends.position.dtype)
    value, gradient = (leaf.astype(float) for leaf in evaluate(position))
    usable = np.isfinite(value) & np.isfinite(gradient).all(axis=1) & np.isfinite(position).all(axis=1)
    value = np.where(usable, value, before)
    slope = _white(gradient, lanes.root)
    promise, left = lanes.promise, np.sum(slope * lanes.direction, axis=1)
    noise = ROUNDING * np.finfo(position.dtype).eps * np.maximum(np.abs(value), np.abs(before))
    rise = value - before
    is_level = (np.abs(rise) <= noise) & (left >= -OVERSHOOT * promise)
    moved = usable & ((rise >= SUFFICIENT * lanes.size * promise) | is_level)
    ends.move(*(leaf[moved] for leaf in (lanes.number, position, value, gradient)))
    tried = lanes._replace(
        slope=np.where(moved[:, None], slope, lanes.slope),
        num_idle=np.where(rise > noise, 0, lanes.num_idle + moved),
        size=lanes.size * _shrink(usable, lanes.size * promise, lanes.size * left),
    )
    return _turned(tried, lanes.slope, step, moved, is_steep=left > STEEP * promise)


def _turned(
    lanes: _Lanes, slope_before: np.ndarray, step: np.ndarray, moved: np.ndarray, is_steep: np.ndarray
) -> _Lanes:
    """Lanes that moved take the next quasi-Newton step; where none of the curvature was seen, one longer than the last.

    The others try a shorter one; where none is left, once more along the slope without what the pairs say.
    """
    is_spent = ~moved & (lanes.size * lanes.promise < LEAST_GAIN) & ~lanes.pairs.is_empty
    pairs, is_new = lanes.pairs.with_one(step, slope_before, lanes.slope)  # none where no step was made
    direction = pairs.times(lanes.slope)
    is_down = np.sum(direction * lanes.slope, axis=1) <= 0  # rounding has spoilt the pairs
    pairs = pairs.without(is_down | is_spent)
    direction = np.where(pairs.is_empty[:, None], lanes.slope, direction)
    relative = np.linalg.norm(step, axis=1) / np.maximum(np.linalg.norm(direction, axis=1), 1e-300)
    blind = relative * np.where(is_steep, GROWTH, 1.0)
    size = np.where(is_new, 1.0, np.where(pairs.is_empty, blind, np.maximum(blind, 1.0)))
    shorter = np.where(is_spent, _first_size(lanes.slope, lanes.root), lanes.size)
    size = np.where(moved, np.minimum(size, MOST_GROWTH * relative), shorter)
    return lanes._replace(pairs=pairs, direction=direction, size=size)


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
