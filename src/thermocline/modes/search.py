"""The search for modes: many starts, the optima above them, and which optima belong together."""

from typing import NamedTuple

import numpy as np

from thermocline.bases import sampled_rows
from thermocline.evaluator import Evaluator
from thermocline.fits.curvature import Curvature, are_optima, curvature_at
from thermocline.fits.lbfgs import Optima, maximise

NEAREST, WIDEST = 0.5, 10.0  # spread of starts about the initial position, in each coordinate
WORK = 2**17  # starts times dimensions
MOST_STARTS, FEWEST_STARTS = 4096, 64
MOST_OPTIMA = 1024
CURVATURE_BYTES = 2e8  # of all matrices of curvature
GROUP = 1024  # starts that ascend at once
LEAST_SHARE = 0.05  # of a group that must arrive for the search to go on
NUM_NEIGHBOURS = 8
SAME = 0.1  # deviations between ends that are one optimum
CONTINUUM = 1e-5  # curvature, relative to the largest, of a direction along which optima are a continuum
BARRIER = 2.0  # nats: optima joined by a path that drops by less are one mode
ALONG = np.linspace(0, 1, 9)[1:-1]  # points of a chord at which it may drop


class Found(NamedTuple):
    """Distinct optima, best first, and the mode that each belongs to.

    `counts` holds how many starts ended at each, and how many draws of chains.
    """

    optima: Optima
    curvature: Curvature
    counts: np.ndarray
    mode: np.ndarray
    num_starts: int
    num_lost: int  # ascents, of starts and draws, that ended nowhere

    @property
    def share_converged(self) -> float:
        """Of all ascents, of starts and draws, those that ended at an optimum."""
        return float(self.counts.sum() / max(self.counts.sum() + self.num_lost, 1))

    @property
    def num_modes(self) -> int:
        return int(self.mode.max(initial=-1)) + 1

    @property
    def unseen(self) -> float:
        """Good and Turing's estimate of the chance that one more start finds another mode."""
        by_mode = np.bincount(self.mode, self.counts[:, 0], minlength=self.num_modes)
        return float(np.sum(by_mode == 1) / max(self.counts[:, 0].sum(), 1))

    def is_from_starts(self, mode: int) -> bool:
        """Whether a start led there, and not a chain alone."""
        return bool(self.counts[self.mode == mode, 0].sum() > 0)


def spread_starts(evaluate: Evaluator, seed: int) -> np.ndarray:
    """Starts, ravelled, one a row: widely around the initial position, half of them from the prior if there is one.

    Spreads are log-uniform: nobody knows the scale of the target.
    """
    centre, prior = evaluate.initial_position, evaluate.target.prior
    generator = np.random.default_rng([seed, 0x5EED])
    number = int(np.clip(WORK // centre.size, FEWEST_STARTS, MOST_STARTS))
    spread = np.exp(generator.uniform(np.log(NEAREST), np.log(WIDEST), (number, 1)))
    starts = centre + spread * generator.normal(size=(number, centre.size))
    starts[0] = centre
    if prior is not None:
        draws = sampled_rows(prior, [seed, 0x5EED, 1], number // 2)
        starts[1 : 1 + len(draws)] = draws
    return starts


def find_modes(evaluate: Evaluator, starts: np.ndarray, known: Found | None = None) -> Found:
    """Ascend from every start, drop duplicates, and join optima with no barrier between them.

    With what is `known` from an earlier search, the starts are draws of chains.

    Starts ascend a group at a time; where hardly any of the first arrive anywhere, the density has no optima
    worth the name (it may be unbounded) and the rest is spared.
    """
    ends, starts = ascend_in_groups(evaluate, starts)
    usable = np.isfinite(ends.log_density) & np.isfinite(ends.position).all(axis=1)
    ends = ends.chosen(np.flatnonzero(usable))
    counts = np.tile([1, 0] if known is None else [0, 1], (len(ends.position), 1))
    if known is not None:
        ends = merged(known.optima, ends)
        counts = np.concatenate([known.counts, counts])
    distinct, counts = without_duplicates(ends, counts)
    curvature = with_known(evaluate, distinct, known)
    kept = are_optima(curvature, distinct.gradient)
    num_starts = len(starts) if known is None else known.num_starts
    num_lost = int(np.sum(~usable) + counts[~kept].sum()) + (0 if known is None else known.num_lost)
    distinct = distinct.chosen(np.flatnonzero(kept))
    distinct, counts, curvature = in_own_units(distinct, counts[kept], curvature.chosen(kept))
    mode = joined(evaluate, distinct)
    return Found(distinct, curvature, counts, mode, num_starts, num_lost)


def with_known(evaluate: Evaluator, optima: Optima, known: Found | None) -> Curvature:
    """The curvature at every optimum, asked for only where an earlier search has not."""
    places = {} if known is None else {row.tobytes(): i for i, row in enumerate(known.optima.position)}
    place = np.array([places.get(row.tobytes(), -1) for row in optima.position], int)
    fresh = curvature_at(evaluate, optima.position[place < 0])
    if known is None:
        return fresh
    both = Curvature(*(np.empty((len(place), *leaf.shape[1:])) for leaf in fresh))
    for room, new, old in zip(both, fresh, known.curvature, strict=True):
        room[place < 0], room[place >= 0] = new, old[place[place >= 0]]
    return both


def ascend_in_groups(evaluate: Evaluator, starts: np.ndarray) -> tuple[Optima, np.ndarray]:
    """Where the starts end, and the starts that were used."""
    parts = []
    for begin in range(0, len(starts), GROUP):
        group = starts[begin : begin + GROUP]
        ends = maximise(evaluate, group)
        parts.append(ends)
        slope = np.abs(ends.gradient).max(axis=1)
        if np.mean(slope < 1e-2) < LEAST_SHARE:  # also when NaN
            break
    ends = merged(*parts)
    return ends, starts[: len(ends.position)]


def without_duplicates(ends: Optima, counts: np.ndarray) -> tuple[Optima, np.ndarray]:
    """The best of every heap of ends, best first, and how many there were in each."""
    order = np.argsort(-ends.log_density, kind="stable")
    ends, counts = ends.chosen(order), counts[order]
    spread = np.median(np.abs(ends.position - np.median(ends.position, axis=0)), axis=0)
    tolerance = 1e-3 * (spread + 1e-2 * np.abs(np.median(ends.position, axis=0)) + 1e-3)
    most = int(np.clip(CURVATURE_BYTES / (8 * ends.position.shape[1] ** 2), 8, MOST_OPTIMA))
    heap = np.full(len(order), -1)
    first: list[int] = []
    for i in range(len(order)):
        if heap[i] >= 0:
            continue
        if len(first) == most:
            break
        is_same = (heap < 0) & (np.abs(ends.position - ends.position[i]) <= tolerance).all(axis=1)
        heap[is_same] = len(first)
        first.append(i)
    number = np.zeros((len(first), 2), int)
    np.add.at(number, heap[heap >= 0], counts[heap >= 0])
    return ends.chosen(np.array(first, int)), number


def in_own_units(optima: Optima, counts: np.ndarray, curvature: Curvature) -> tuple[Optima, np.ndarray, Curvature]:
    """Without those that lie within a part of a deviation of a higher one; a continuum of optima is left as it is."""
    owner, roots = np.arange(len(counts)), curvature.roots()
    is_peak = curvature.values[:, 0] > CONTINUUM * curvature.values[:, -1]
    for i in np.flatnonzero(is_peak):
        if owner[i] == i:
            rest = np.flatnonzero(is_peak & (owner == np.arange(len(owner))) & (np.arange(len(owner)) > i))
            offsets = np.linalg.solve(roots[i], (optima.position[rest] - optima.position[i]).T)
            owner[rest[np.sum(offsets**2, axis=0) < SAME**2]] = i
    total = np.zeros_like(counts)
    np.add.at(total, owner, counts)
    first = np.flatnonzero(owner == np.arange(len(owner)))
    return optima.chosen(first), total[first], curvature.chosen(first)


def merged(*parts: Optima) -> Optima:
    """All rows together, without their paths."""
    position, log_density, gradient, ending = (
        np.concatenate(leaves) for leaves in zip(*(part[:4] for part in parts), strict=True)
    )
    return Optima(position, log_density, gradient, ending)


def joined(evaluate: Evaluator, optima: Optima) -> np.ndarray:
    """A mode's number for every optimum: those connected by chords of low barrier between neighbours are one."""
    number = len(optima.position)
    if number < 2:
        return np.zeros(number, int)
    squares = np.sum(optima.position**2, axis=1)
    distances = squares[:, None] + squares - 2 * optima.position @ optima.position.T
    np.fill_diagonal(distances, np.inf)
    neighbours = np.argsort(distances, axis=1)[:, : min(NUM_NEIGHBOURS, number - 1)]
    first, second = np.repeat(np.arange(number), neighbours.shape[1]), neighbours.ravel()
    lowest = lowest_along(evaluate, optima.position[first], optima.position[second])
    ends = np.minimum(optima.log_density[first], optima.log_density[second])
    low = lowest > ends - BARRIER
    from scipy.sparse import coo_matrix  # slow to import
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(low.sum()), (first[low], second[low])), (number, number))
    return _by_first_appearance(connected_components(graph, directed=False)[1])


def lowest_along(evaluate: Evaluator, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The lowest log density on each chord."""
    points = first[:, None] + ALONG[:, None] * (second - first)[:, None]
    return np.min(evaluate.values(points), axis=1)


def _by_first_appearance(labels: np.ndarray) -> np.ndarray:
    """Labels renumbered in order of appearance, so that mode 0 holds the highest optimum."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return rank[inverse]
