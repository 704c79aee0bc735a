"""Where L-BFGS ends from many starts, on an evaluator, with the curvature there to make sure."""

from typing import NamedTuple

import numpy as np

from thermocline.evaluator import Evaluator
from thermocline.fits.curvature import CURVATURE_BYTES, curvature_at
from thermocline.fits.lock_step import Ending, Ends, ascend

NUM_ITERATIONS = 200  # of a lane, in all rounds
ROUND = 50  # iterations, the first of them without a metric, before the curvature is looked at
MOST_PLACES = 64  # after each round, at which the curvature is looked at
MOST_DIMENSIONS = 1000  # for a metric, which takes two evaluations a dimension and their square in memory
CONFIRMED_GAIN = 1e-5  # likewise by the curvature, which a last step of Newton's then takes


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


def maximise(
    evaluate: Evaluator,
    starts: np.ndarray,
    *,
    root: np.ndarray | None = None,
    num_iterations: int = NUM_ITERATIONS,
    keep_paths: bool = False,
    confirms: bool = True,
) -> Optima:
    """Where L-BFGS ends from each ravelled start, one a row; `root` is R of a metric R Rᵀ to begin in.

    A lane has arrived where the quasi-Newton step promises next to no gain, in nats: units of the coordinates do not
    matter. Until a lane has moved in a direction, though, L-BFGS cannot know how far that goes. So rounds end with
    the curvature where lanes are: who has something to gain in that metric goes on in it. Unless it `confirms`, one
    round is all.
    """
    ends, metric = Ends(evaluate, starts, keep_paths), None
    lanes = np.flatnonzero(ends.ending != Ending.LOST)
    roots = None if root is None else np.broadcast_to(root, (len(lanes), *root.shape))
    while len(lanes) and num_iterations > 0:
        num_iterations -= ascend(evaluate, ends, lanes, roots, min(ROUND, num_iterations))
        if ends.position.shape[1] > MOST_DIMENSIONS or not confirms:
            break
        lanes, roots, found = _unconfirmed(evaluate, ends, lanes, is_first=roots is None)
        metric = found if metric is None else metric
    paths = _paths(ends) if keep_paths else ()
    return Optima(ends.position, ends.value, ends.gradient, ends.ending, paths, metric)


def _paths(ends: Ends) -> tuple[Path, ...]:
    """By lane, in order."""
    number, *leaves = (np.concatenate(parts) for parts in zip(*ends.visited, strict=True))
    order = np.argsort(number, kind="stable")
    last = np.cumsum(np.bincount(number, minlength=len(ends.value)))[:-1]
    return tuple(map(Path, *(np.split(leaf[order], last) for leaf in leaves)))


def _unconfirmed(
    evaluate: Evaluator, ends: Ends, lanes: np.ndarray, *, is_first: bool
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


def _confirmed(evaluate: Evaluator, ends: Ends, lanes: np.ndarray, place: int, root: np.ndarray) -> np.ndarray:
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
