"""The search for modes: many starts, the optima they climb to, and which optima belong together."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from thermocline.bases import fresh_draws
from thermocline.fits.optimise import CURVATURE_BYTES, Curvature, Optima, are_optima, climb, curvature_at
from thermocline.support.precision import to_numpy
from thermocline.target import Target

NEAREST, WIDEST = 0.5, 10.0  # spread of starts about the initial position, in each coordinate
WORK = 2**17  # starts times dimensions
MOST_STARTS, FEWEST_STARTS = 4096, 64
MOST_OPTIMA = 1024
GROUP = 1024  # starts that climb at once
LEAST_SHARE = 0.05  # of a group that must arrive for the search to go on
NUM_NEIGHBOURS = 8
BARRIER = 2.0  # nats: optima joined by a path that drops by less are one mode
ALONG = np.linspace(0, 1, 9)[1:-1]  # points of a chord at which it may drop


class Found(NamedTuple):
    """Distinct optima, best first, and the mode that each belongs to.

    `counts` holds how many starts ended at each, and how many draws of chains that were climbed from.
    """

    optima: Optima
    curvature: Curvature
    counts: np.ndarray
    mode: np.ndarray
    num_starts: int
    num_lost: int  # climbs, of starts and draws, that ended nowhere
    num_gradients: int

    @property
    def share_converged(self) -> float:
        """Of all climbs, of starts and draws, those that ended at an optimum."""
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


def spread_starts(target: Target, seed: int) -> np.ndarray:
    """Starts, ravelled, one a row: widely around the initial position, half of them from the prior if there is one.

    Spreads are log-uniform: nobody knows the scale of the target.
    """
    centre = np.asarray(ravel_pytree(target.initial_position)[0])
    generator = np.random.default_rng([seed, 0x5EED])
    number = int(np.clip(WORK // centre.size, FEWEST_STARTS, MOST_STARTS))
    spread = np.exp(generator.uniform(np.log(NEAREST), np.log(WIDEST), (number, 1)))
    starts = centre + spread * generator.normal(size=(number, centre.size))
    starts[0] = centre
    if target.prior is not None:
        draws = to_numpy(_draws_of(jax.random.key(seed), target.prior, number // 2))
        starts[1 : 1 + len(draws)] = draws
    return starts


@partial(jax.jit, static_argnames="number")
def _draws_of(key: jax.Array, base: Any, number: int) -> jax.Array:
    return fresh_draws(key, base, number)


def find_modes(target: Target, starts: np.ndarray, known: Found | None = None) -> Found:
    """Climb from every start, drop duplicates, and join optima with no barrier between them.

    With what is `known` from an earlier search, the starts are draws of chains.

    Starts climb a group at a time; where hardly any of the first arrive anywhere, the density has no optima
    worth the name (it may be unbounded) and the rest is spared.
    """
    ends, spent, starts = climb_in_groups(target, starts)
    usable = np.isfinite(ends.log_density) & np.isfinite(ends.position).all(axis=1)
    ends = ends.chosen(np.flatnonzero(usable))
    counts = np.tile([1, 0] if known is None else [0, 1], (len(ends.position), 1))
    if known is not None:
        ends = Optima(*(np.concatenate(pair) for pair in zip(known.optima, ends, strict=True)))
        counts = np.concatenate([known.counts, counts])
        spent += known.num_gradients
    distinct, counts = without_duplicates(ends, counts)
    curvature, cost = with_known(target, distinct, known)
    spent += cost
    kept = are_optima(curvature, distinct.gradient)
    num_starts = len(starts) if known is None else known.num_starts
    num_lost = int(np.sum(~usable) + counts[~kept].sum()) + (0 if known is None else known.num_lost)
    distinct, counts = distinct.chosen(np.flatnonzero(kept)), counts[kept]
    curvature = Curvature(*(leaf[kept] for leaf in curvature))
    mode = joined(target, distinct)
    return Found(distinct, curvature, counts, mode, num_starts, num_lost, spent)


def with_known(target: Target, optima: Optima, known: Found | None) -> tuple[Curvature, int]:
    """The curvature at every optimum, asked for only where an earlier search has not, and the gradients it took."""
    places = {} if known is None else {row.tobytes(): i for i, row in enumerate(known.optima.position)}
    place = np.array([places.get(row.tobytes(), -1) for row in optima.position], int)
    fresh = curvature_at(target, optima.position[place < 0])
    if known is None:
        return fresh, fresh.values.size
    both = Curvature(*(np.empty((len(place), *leaf.shape[1:])) for leaf in fresh))
    for room, new, old in zip(both, fresh, known.curvature, strict=True):
        room[place < 0], room[place >= 0] = new, old[place[place >= 0]]
    return both, fresh.values.size


def climb_in_groups(target: Target, starts: np.ndarray) -> tuple[Optima, int, np.ndarray]:
    """Where the starts end, the gradients spent, and the starts that were used."""
    parts, spent = [], 0
    for begin in range(0, len(starts), GROUP):
        group = starts[begin : begin + GROUP]
        ends, cost = climb(target, group)
        parts.append(ends)
        spent += cost
        slope = np.abs(ends.gradient).max(axis=1)
        if np.mean(slope < 1e-2) < LEAST_SHARE:  # also when NaN
            break
    ends = Optima(*(np.concatenate(leaves) for leaves in zip(*parts, strict=True)))
    return ends, spent, starts[: len(ends.position)]


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


def joined(target: Target, optima: Optima) -> np.ndarray:
    """A mode's number for every optimum: those connected by chords of low barrier between neighbours are one."""
    number = len(optima.position)
    if number < 2:
        return np.zeros(number, int)
    squares = np.sum(optima.position**2, axis=1)
    distances = squares[:, None] + squares - 2 * optima.position @ optima.position.T
    np.fill_diagonal(distances, np.inf)
    neighbours = np.argsort(distances, axis=1)[:, : min(NUM_NEIGHBOURS, number - 1)]
    first, second = np.repeat(np.arange(number), neighbours.shape[1]), neighbours.ravel()
    lowest = lowest_along(target, optima.position[first], optima.position[second])
    ends = np.minimum(optima.log_density[first], optima.log_density[second])
    low = lowest > ends - BARRIER
    graph = coo_matrix((np.ones(low.sum()), (first[low], second[low])), (number, number))
    return _by_first_appearance(connected_components(graph, directed=False)[1])


def lowest_along(target: Target, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The lowest log density on each chord."""
    points = first[:, None] + ALONG[:, None] * (second - first)[:, None]
    room = -(-len(points) // 1024) * 1024  # a few sizes, a few programs
    padded = np.concatenate([points, np.broadcast_to(points[:1], (room - len(points), *points.shape[1:]))])
    return np.min(to_numpy(_log_densities(target, padded))[: len(points)], axis=1)


@jax.jit
def _log_densities(target: Target, positions: jax.Array) -> jax.Array:
    unravel = ravel_pytree(target.initial_position)[1]
    values = jax.vmap(jax.vmap(lambda position: target(unravel(position))))(positions)
    return jnp.where(jnp.isnan(values), -jnp.inf, values)


def _by_first_appearance(labels: np.ndarray) -> np.ndarray:
    """Labels renumbered in order of appearance, so that mode 0 holds the highest optimum."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return rank[inverse]
