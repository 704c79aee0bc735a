"""L-BFGS from many starts in lock step on an evaluator: one evaluation an iteration and lane, and the done leave."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from thermocline.evaluator import Evaluator
from thermocline.fits.curvature import curvature_at
from thermocline.fits.quasi_newton import MEMORY, Pairs

NUM_ITERATIONS = 200  # of a lane, in all rounds
FIRST_ITERATIONS = 50  # without a metric; each round with one may take twice as many as the last
NUM_PLACES = 8  # after each round, at which the curvature is looked at
MOST_DIMENSIONS = 1000  # for a metric, which takes two evaluations a dimension and their square in memory
LEAST_GAIN = 1e-7  # predicted gain, in nats, at which a lane has arrived
CONFIRMED_GAIN = 1e-5  # likewise by the curvature, which a last step of Newton's then takes
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


class Path(NamedTuple):
    """The points of one ascent, from its start on; gradients are of the log density."""

    position: np.ndarray
    log_density: np.ndarray
    gradient: np.ndarray


class Optima(NamedTuple):
    """Where lanes ended, with log density and gradient there, and why; `path` is empty unless it was asked for.

    `metric` is R with the covariance R Rᵀ of the curvature at the best lane, None where there is no such.
    """

    position: np.ndarray
    log_density: np.ndarray
    gradient: np.ndarray
    ending: np.ndarray  # of `Ending`
    path: tuple[Path, ...] = ()
    metric: np.ndarray | None = None

    @property
    def deviations(self) -> np.ndarray | None:
        """Of each coordinate with the others held, as the metric has them: what steps of differences may begin with."""
        return None if self.metric is None else 1 / np.linalg.norm(np.linalg.inv(self.metric), axis=0)

    def chosen(self, index: np.ndarray) -> "Optima":
        """Some of the lanes."""
        position, log_density, gradient, ending = (leaf[index] for leaf in self[:4])
        kept = np.arange(len(self.position))[index] if self.path else ()
        return Optima(position, log_density, gradient, ending, tuple(self.path[i] for i in kept), self.metric)


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

    def chosen(self, index: np.ndarray) -> "_Lanes":
        return _Lanes(*(leaf[index] for leaf in self))

    @property
    def pairs(self) -> Pairs:
        return Pairs(self.steps, self.falls)

    @property
    def promise(self) -> np.ndarray:
        """What the slope alone promises of a step of the whole direction: twice the predicted gain."""
        return np.sum(self.slope * self.direction, axis=1)


def maximise(
    evaluate: Evaluator,
    starts: np.ndarray,
    *,
    root: np.ndarray | None = None,
    num_iterations: int = NUM_ITERATIONS,
    keep_paths: bool = False,
) -> Optima:
    """Where L-BFGS ends from each ravelled start, one a row; `root` is R of a metric R Rᵀ to begin with, if one is known.

    A lane has arrived where the quasi-Newton step promises next to no gain, in nats: units of the coordinates do not
    matter. Until a lane has moved in a direction, though, L-BFGS cannot know how far that goes. So rounds end with
    the curvature at the best lane: who has something to gain in that metric goes on in it.
    """
    ends = _Ends(evaluate, starts, keep_paths)
    left = np.flatnonzero(ends.ending != Ending.LOST)
    metric = root
    budget = FIRST_ITERATIONS
    while len(left) and num_iterations > 0:
        num_iterations -= _ascend(evaluate, ends, left, root, min(budget, num_iterations))
        left, root, metric = _unconfirmed(evaluate, ends, left, metric)
        if root is None:
            break
        budget *= 2
    return ends.optima(metric)


def _unconfirmed(
    evaluate: Evaluator, ends: "_Ends", lanes: np.ndarray, metric: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """The lanes that should go on, and the metric in which to; also that of the first optimum, if there was none.

    The best lane is looked at; if it has arrived in the metric of its own curvature, so have those within a deviation
    that have nothing to gain there; then the best of the rest, until one should go on, or for a few places.
    """
    for _ in range(NUM_PLACES if ends.position.shape[1] <= MOST_DIMENSIONS else 0):
        if not len(lanes):
            break
        arrived = ends.ending[lanes] == Ending.ARRIVED
        best = lanes[np.lexsort((ends.value[lanes], arrived))[-1]]
        curvature = curvature_at(evaluate, ends.position[[best]])
        if not curvature.is_usable[0]:
            ends.ending[best], lanes = Ending.STUCK, lanes[lanes != best]
            continue
        root = curvature.roots()[0]
        metric = root if metric is None and curvature.bends_down[0] else metric
        gain = 0.5 * np.sum((ends.gradient[lanes] @ root) ** 2, axis=1)
        distance = np.linalg.norm(np.linalg.solve(root, (ends.position[lanes] - ends.position[best]).T), axis=0)
        is_confirmed = arrived & (gain < CONFIRMED_GAIN) & (distance < 1)
        _polish(evaluate, ends, lanes[is_confirmed], root)
        lanes = lanes[~is_confirmed]
        if best in lanes:
            ends.ending[best] = Ending.RAN_OUT  # unless it can go on
            return lanes, root, metric
    return lanes, None, metric


def _polish(evaluate: Evaluator, ends: "_Ends", lanes: np.ndarray, root: np.ndarray) -> None:
    """One step of Newton's for lanes at an optimum of known curvature, where it leaves less to gain."""
    slope = ends.gradient[lanes] @ root
    position = (ends.position[lanes] + slope @ root.T).astype(ends.position.dtype)
    value, gradient = (leaf.astype(float) for leaf in evaluate(position))
    is_better = np.isfinite(value) & (np.linalg.norm(gradient @ root, axis=1) < np.linalg.norm(slope, axis=1))
    ends.move(lanes[is_better], position[is_better], value[is_better], gradient[is_better])


class _Ends:
    """What is known of all lanes so far: where they are, what they took and why they stopped."""

    def __init__(self, evaluate: Evaluator, starts: np.ndarray, keep_paths: bool) -> None:
        self.position = np.array(starts, evaluate.precision)
        values, gradients = evaluate(self.position)
        self.value, self.gradient = values.astype(float), gradients.astype(float)
        usable = np.isfinite(self.value) & np.isfinite(self.gradient).all(axis=1)
        self.ending = np.where(usable, Ending.RAN_OUT, Ending.LOST)
        self.visited = [(np.arange(len(self.value)), self.position.copy(), self.value.copy(), self.gradient.copy())]
        self.keep_paths = keep_paths

    def move(self, number: np.ndarray, position: np.ndarray, value: np.ndarray, gradient: np.ndarray) -> None:
        """Keep where some lanes have got to."""
        self.position[number], self.value[number], self.gradient[number] = position, value, gradient
        if self.keep_paths:
            self.visited.append((number, position, value, gradient))

    def optima(self, metric: np.ndarray | None) -> Optima:
        """All lanes, with their paths in order."""
        number, *leaves = (np.concatenate(parts) for parts in zip(*self.visited, strict=True))
        order = np.argsort(number, kind="stable")
        last = np.cumsum(np.bincount(number, minlength=len(self.value)))[:-1]
        paths = zip(*(np.split(leaf[order], last) for leaf in leaves), strict=True) if self.keep_paths else ()
        return Optima(
            self.position, self.value, self.gradient, self.ending, tuple(Path(*path) for path in paths), metric
        )


def _ascend(evaluate: Evaluator, ends: _Ends, index: np.ndarray, root: np.ndarray | None, number: int) -> int:
    """One round: at most a number of iterations of some lanes, in the metric of `root`; and how many it took."""
    position, gradient = ends.position[index], ends.gradient[index]
    slope = _white(gradient, root)
    lanes = _Lanes(
        number=index,
        position=position,
        value=ends.value[index],
        gradient=gradient,
        slope=slope,
        steps=np.zeros((len(index), MEMORY, slope.shape[1])),
        falls=np.zeros((len(index), MEMORY, slope.shape[1])),
        direction=slope,
        size=_first_size(slope, root),
        num_idle=np.zeros(len(index), int),
    )
    ends.ending[index] = Ending.RAN_OUT
    for iteration in range(number):
        lanes = _depart(lanes, ends, root)
        if not len(lanes.number):
            return iteration
        lanes, moved = _step(evaluate, lanes, root)
        ends.move(*(leaf[moved] for leaf in lanes[:4]))
    _depart(lanes, ends, root)
    return number


def _depart(lanes: _Lanes, ends: _Ends, root: np.ndarray | None) -> _Lanes:
    """Without the lanes that have arrived or cannot go on, whose ending is noted."""
    promise = lanes.promise
    is_known = ~lanes.pairs.is_empty | (root is not None)  # without units a slope of nearly 0 says nothing
    arrived = (promise == 0) | (is_known & (promise / 2 < LEAST_GAIN))
    hopeless = (lanes.num_idle > PATIENCE) | (lanes.size * promise < 0.1 * LEAST_GAIN)
    arrived |= hopeless & is_known & (promise / 2 < STUCK_GAIN)
    ends.ending[lanes.number[hopeless]] = Ending.STUCK
    ends.ending[lanes.number[arrived]] = Ending.ARRIVED
    stays = ~(arrived | hopeless)
    return lanes if stays.all() else lanes.chosen(stays)


def _step(evaluate: Evaluator, lanes: _Lanes, root: np.ndarray | None) -> tuple[_Lanes, np.ndarray]:
    """Try one step of each lane: those that rise move on, and all decide on their next."""
    step = lanes.size[:, None] * lanes.direction
    position = (lanes.position + _white(step, None if root is None else root.T)).astype(lanes.position.dtype)
    value, gradient = (leaf.astype(float) for leaf in evaluate(position))
    usable = np.isfinite(value) & np.isfinite(gradient).all(axis=1) & np.isfinite(position).all(axis=1)
    value, gradient = np.where(usable, value, lanes.value), np.where(usable[:, None], gradient, lanes.gradient)
    slope = _white(gradient, root)
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
    return _merged(moved, after, _after_failure(tried._replace(size=shorter), root)), moved


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


def _after_failure(lanes: _Lanes, root: np.ndarray | None) -> _Lanes:
    """A shorter step; where none is left, once more along the slope without what the pairs say."""
    is_spent = (lanes.size * lanes.promise < LEAST_GAIN) & ~lanes.pairs.is_empty
    direction = np.where(is_spent[:, None], lanes.slope, lanes.direction)
    size = np.where(is_spent, _first_size(lanes.slope, root), lanes.size)
    pairs = lanes.pairs.without(is_spent)
    return lanes._replace(steps=pairs.steps, falls=pairs.falls, direction=direction, size=size)


def _shrink(usable: np.ndarray, promise: np.ndarray, left: np.ndarray) -> np.ndarray:
    """By what to shorten a step that failed: to where the slope along it would vanish, if it does."""
    secant = promise / np.where(left < promise, promise - left, np.inf)
    return np.where(usable, np.clip(secant, LEAST_SHRINK, MOST_SHRINK), SHRINK_OFF)


def _first_size(slope: np.ndarray, root: np.ndarray | None) -> np.ndarray:
    """In a metric, all of the slope: Newton's step. Without, as far as promises a nat, whatever the units."""
    squares = np.sum(slope**2, axis=1)
    return np.ones(len(slope)) if root is not None else FIRST_GAIN / np.maximum(squares, 1e-300)


def _white(rows: np.ndarray, root: np.ndarray | None) -> np.ndarray:
    return rows if root is None else rows @ root


def _merged(condition: np.ndarray, one: _Lanes, other: _Lanes) -> _Lanes:
    """Each lane from one of two."""
    return _Lanes(
        *(
            np.where(condition.reshape(-1, *[1] * (first.ndim - 1)), first, second)
            for first, second in zip(one, other, strict=True)
        )
    )
