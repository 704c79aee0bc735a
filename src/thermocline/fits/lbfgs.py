"""Where L-BFGS ends from many starts, on an evaluator, with the curvature there to make sure.

Lanes go in lock step: one evaluation an iteration and lane, and the done leave.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from thermocline.engine.batch import at
from thermocline.evaluator import RowDensity
from thermocline.fits.curvature import CURVATURE_BYTES, curvature_at
from thermocline.fits.quasi_newton import Pairs

NUM_ITERATIONS = 200  # of a lane, in all rounds
ROUND = 50  # iterations, the first of them without a metric, before the curvature is looked at
MOST_PLACES = 64  # after each round, at which the curvature is looked at
MOST_DIMENSIONS = 1000  # for a metric, which takes two evaluations a dimension and their square in memory
CONFIRMED_GAIN = 1e-5  # likewise by the curvature, which a last step of Newton's then takes
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


class Path(NamedTuple):
    """The points of one ascent, from its start on; gradients are of the log density."""

    position: np.ndarray
    log_density: np.ndarray
    gradient: np.ndarray


class Optima(NamedTuple):
    """Where lanes ended, with log density and gradient there, and why; `path` is empty unless it was asked for.

    `metric` is R with the covariance R Rᵀ of the curvature where the best lane arrived, None where none did.
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


class _Ends:
    """What is known of all lanes so far: where they are, by which way they came, and why they stopped."""

    def __init__(self, evaluate: RowDensity, starts: np.ndarray, keep_paths: bool) -> None:
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

    def paths(self) -> tuple[Path, ...]:
        """Of every lane, in order."""
        number, *leaves = (np.concatenate(parts) for parts in zip(*self.visited, strict=True))
        order = np.argsort(number, kind="stable")
        last = np.cumsum(np.bincount(number, minlength=len(self.value)))[:-1]
        return tuple(map(Path, *(np.split(leaf[order], last) for leaf in leaves)))


def maximise(
    evaluate: RowDensity,
    starts: np.ndarray,
    *,
    root: np.ndarray | None = None,
    num_iterations: int = NUM_ITERATIONS,
    keep_paths: bool = False,
    confirms: bool = True,
) -> Optima:
    """Where L-BFGS ends from each ravelled start, one a row; `root` is R of a metric R Rᵀ to begin in, or deviations.

    A lane has arrived where the quasi-Newton step promises next to no gain, in nats: units of the coordinates do not
    matter. Until a lane has moved in a direction, though, L-BFGS cannot know how far that goes. So rounds end with
    the curvature where lanes are: who has something to gain in that metric goes on in it. Unless it `confirms`, one
    round is all.
    """
    ends, metric = _Ends(evaluate, starts, keep_paths), None
    lanes = np.flatnonzero(ends.ending != Ending.LOST)
    roots = None if root is None else np.broadcast_to(root, (len(lanes), *root.shape))
    while len(lanes) and num_iterations > 0:
        num_iterations -= ascend(evaluate, ends, lanes, roots, min(ROUND, num_iterations))
        if ends.position.shape[1] > MOST_DIMENSIONS or not confirms:
            break
        lanes, roots, found = _unconfirmed(evaluate, ends, lanes, is_first=roots is None)
        metric = found if metric is None else metric
    paths = ends.paths() if keep_paths else ()
    return Optima(ends.position, ends.value, ends.gradient, ends.ending, paths, metric)


def _unconfirmed(
    evaluate: RowDensity, ends: _Ends, lanes: np.ndarray, *, is_first: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The lanes that should go on, a metric for each, (lane, dimension, dimension), and that of an optimum confirmed.

    The best lane is looked at first: others may have ended at the same place, or need the same metric, which all try
    the first time. After that those that are left, the best first, get metrics of their own.
    """
    order = np.lexsort((ends.value[lanes], ends.ending[lanes] == Ending.ARRIVED))[::-1]
    left, going, roots, metric = lanes[order], [], [], None
    most = int(np.clip(CURVATURE_BYTES / (8 * ends.position.shape[1] ** 2), 1, MOST_PLACES))
    for number in (1, most):
        if is_first and going:
            break
        places = left[:number]
        curvature = curvature_at(evaluate, ends.position[places])
        for place, root, is_usable in zip(places, curvature.roots(), curvature.is_usable, strict=True):
            if not is_usable:
                ends.ending[place] = Ending.STUCK
            elif place in left:
                left = left[~_confirmed(evaluate, ends, left, place, root)]
                if place in left:
                    going.append(place)
                    roots.append(root)
                elif metric is None:
                    metric = root
            left = left[left != place]
    ends.ending[going] = Ending.RAN_OUT  # unless they can go on
    left = left if going else left[:0]
    return np.array([*going, *left], int), np.array(roots + roots[:1] * len(left)), metric


def _confirmed(evaluate: RowDensity, ends: _Ends, lanes: np.ndarray, place: int, root: np.ndarray) -> np.ndarray:
    """Which lanes have arrived within a deviation of a place, by the metric there.

    A step of Newton's ends them, where it leaves less to gain.
    """
    gain = 0.5 * np.sum((ends.gradient[lanes] @ root) ** 2, axis=1)
    distance = np.linalg.norm(np.linalg.solve(root, (ends.position[lanes] - ends.position[place]).T), axis=0)
    is_confirmed = (ends.ending[lanes] == Ending.ARRIVED) & (gain < CONFIRMED_GAIN) & (distance < 1)
    lanes = lanes[is_confirmed]
    slope = ends.gradient[lanes] @ root
    position = (ends.position[lanes] + slope @ root.T).astype(ends.position.dtype)
    value, gradient = (leaf.astype(float) for leaf in evaluate(position))
    is_better = np.isfinite(value) & (np.linalg.norm(gradient @ root, axis=1) < np.linalg.norm(slope, axis=1))
    ends.move(*(leaf[is_better] for leaf in (lanes, position, value, gradient)))
    return is_confirmed


class _Lanes(NamedTuple):
    """The lanes still under way: all that is theirs is in the units of the metric."""

    number: np.ndarray  # of the lane among all
    slope: np.ndarray  # the gradient
    pairs: Pairs
    direction: np.ndarray
    size: np.ndarray  # of the step to be tried, in directions
    num_idle: np.ndarray
    root: np.ndarray | None  # of the metric, (lane, dimension, dimension), or of a diagonal one, (lane, dimension)

    @property
    def promise(self) -> np.ndarray:
        """What the slope alone promises of a step of the whole direction: twice the predicted gain."""
        return np.sum(self.slope * self.direction, axis=1)


def ascend(evaluate: RowDensity, ends: _Ends, number: np.ndarray, roots: np.ndarray | None, num_iterations: int) -> int:
    """These lanes go on, each in the metric R Rᵀ of its root if there are any; how many iterations that took."""
    slope, idle = _white(ends.gradient[number], roots), np.zeros(len(number), int)
    lanes = _Lanes(number, slope, Pairs.none(*slope.shape), slope, _first_size(slope, roots), idle, roots)
    ends.ending[number] = Ending.RAN_OUT
    for iteration in range(num_iterations):
        lanes = _staying(lanes, ends)
        if not len(lanes.number):
            return iteration
        with np.errstate(over="ignore", invalid="ignore"):  # what is too far is refused
            lanes = _step(evaluate, ends, lanes)
    _staying(lanes, ends)
    return num_iterations


def _staying(lanes: _Lanes, ends: _Ends) -> _Lanes:
    """Without the lanes that have arrived or cannot go on, whose ending is noted."""
    promise = lanes.promise
    is_known = ~lanes.pairs.is_empty | (lanes.root is not None)  # without units a slope of nearly 0 says nothing
    arrived = (promise == 0) | (is_known & (promise / 2 < LEAST_GAIN))
    hopeless = (lanes.num_idle > PATIENCE) | (lanes.size * promise < 0.1 * LEAST_GAIN)
    arrived |= hopeless & is_known & (promise / 2 < STUCK_GAIN)
    ends.ending[lanes.number[hopeless]] = Ending.STUCK
    ends.ending[lanes.number[arrived]] = Ending.ARRIVED
    stays = ~(arrived | hopeless)
    return lanes if stays.all() else at(lanes, stays)


def _step(evaluate: RowDensity, ends: _Ends, lanes: _Lanes) -> _Lanes:
    """Try one step of each lane: those that rise move on, and all decide on their next."""
    step, before = lanes.size[:, None] * lanes.direction, ends.value[lanes.number]
    position = ends.position[lanes.number] + _white(step, lanes.root, is_turned=True)
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
    whole, rest = lanes.size * promise, lanes.size * left
    secant = whole / np.where(rest < whole, whole - rest, np.inf)  # to where the slope along the step would vanish
    tried = lanes._replace(
        slope=np.where(moved[:, None], slope, lanes.slope),
        num_idle=np.where(rise > noise, 0, lanes.num_idle + moved),
        size=lanes.size * np.where(usable, np.clip(secant, LEAST_SHRINK, MOST_SHRINK), SHRINK_OFF),
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


def _first_size(slope: np.ndarray, root: np.ndarray | None) -> np.ndarray:
    """In a metric, all of the slope: Newton's step. Without, as far as promises a nat, whatever the units."""
    squares = np.sum(slope**2, axis=1)
    return FIRST_GAIN / np.maximum(squares, 1e-300) if root is None else np.ones(len(slope))


def _white(rows: np.ndarray, root: np.ndarray | None, *, is_turned: bool = False) -> np.ndarray:
    """Each row times its root, if there are any; or times that transposed. A row of deviations is a diagonal one."""
    if root is None or root.ndim == 2:
        return rows if root is None else rows * root
    return (rows[:, None] @ (root.swapaxes(1, 2) if is_turned else root))[:, 0]
