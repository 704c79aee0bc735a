"""From a path to what its chains start from: fresh draws of the base, and what they say."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.bases import centres_of, fresh_draws, initial_scale
from thermocline.engine.batch import Blocks, Paths, joined, stacked
from thermocline.movers import Metric, metric_of
from thermocline.paths import Path
from thermocline.records import BaseDraws, Estimate
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import to_numpy
from thermocline.target import describe

NUM_BASE_DRAWS = 2048
NUM_SUPPORT_DRAWS = 2**16  # once some fall off the target's support
CERTAIN = Estimate(0.0, 0.0, np.inf)


class Prepared(NamedTuple):
    """What chains start from and methods begin with: leaves have a leading axis over targets."""

    paths: Paths
    metric: Metric
    log_ratio: np.ndarray  # at fresh draws of the base; -inf also where it is no number
    starts: np.ndarray  # (target, chain, coordinate)
    num_bad: np.ndarray  # draws of the base where r is NaN or +inf
    positions: np.ndarray | None  # of all those draws; kept for a single target

    @property
    def num_inside(self) -> np.ndarray:
        """Draws of the base that fell on the target's support."""
        return np.isfinite(self.log_ratio).sum(axis=1)

    @property
    def is_usable(self) -> np.ndarray:
        """Whose density is a number at every draw of the base, and positive at some."""
        return (self.num_bad == 0) & (self.num_inside > 0)


def prepare(keys: jax.Array, paths: Paths, blocks: Blocks, num_chains: int) -> Prepared:
    """Fresh draws of every base, and what they say.

    A block at a time, because width changes rounding, and to hold the draws of one block only.
    """
    parts = [_prepare_block(keys[rows], paths.take(rows), num_chains) for rows in blocks.all_rows()]
    if len(parts) == 1:
        return parts[0]
    log_zeta = np.concatenate([part.paths.path.log_zeta for part in parts])
    return Prepared(paths.with_log_zeta(log_zeta), *joined([part[1:] for part in parts]))


def _prepare_block(keys: jax.Array, paths: Paths, num_chains: int) -> Prepared:
    """Where log zeta is NaN, that of importance sampling from the base is used: it need not be good."""
    log_zeta = np.array(np.broadcast_to(paths.path.log_zeta, len(paths)))
    is_known = np.isfinite(log_zeta)
    paths = paths.with_log_zeta(np.where(is_known, log_zeta, np.zeros_like(log_zeta)))
    positions, log_ratio = to_numpy(draw_bases(keys, paths, NUM_BASE_DRAWS))
    num_bad = np.sum(np.isnan(log_ratio) | np.isposinf(log_ratio), axis=1)
    if paths.is_single:
        check_log_ratio(paths.path, positions[0], log_ratio[0])
    log_ratio = np.where(np.isfinite(log_ratio), log_ratio, -np.inf)
    for target in np.flatnonzero(~is_known):
        inside = log_ratio[target][np.isfinite(log_ratio[target])]
        log_zeta[target] = np.logaddexp.reduce(inside) - np.log(log_ratio.shape[1]) if inside.size else 0.0
        log_ratio[target] -= log_zeta[target]
    known = [(to_numpy(paths.one(target).base), positions[target]) for target in range(len(paths))]
    metric = stacked([metric_of(initial_scale(*each), centres_of(*each)) for each in known])
    chosen = np.stack([starts(*of_target, num_chains) for of_target in zip(positions, log_ratio, strict=True)])
    kept = positions if paths.is_single else None
    return Prepared(paths.with_log_zeta(log_zeta), metric, log_ratio, chosen, num_bad, kept)


def base_draws_of(keys: jax.Array, paths: Paths) -> list[BaseDraws]:
    """Each target's fresh draws of its base, the same as `prepare` saw: for those who need more of them than that."""
    positions, log_ratio = to_numpy(draw_bases(keys, paths, NUM_BASE_DRAWS))
    known = [moments_of(paths.one(target).base) for target in range(len(paths))]
    each = zip(positions, log_ratio, known, strict=True)
    return [BaseDraws(position, log_ratio, *moments) for position, log_ratio, moments in each]


def moments_of(base: Any) -> tuple[Any, Any]:
    """Mean and variance, of a base that states them."""
    return (None, None) if getattr(base, "moments", None) is None else to_numpy(to_numpy(base).moments())


@partial(jax.jit, static_argnames="num_draws")
def draw_bases(keys: jax.Array, paths: Paths, num_draws: int) -> tuple[jax.Array, jax.Array]:
    """Exact draws of each base, ravelled, and r at each."""

    def of_target(path: Path, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        positions = fresh_draws(key, path.base, num_draws)
        return positions, jax.vmap(path.log_ratio)(positions)

    return paths.map(of_target, keys)


@partial(jax.jit, static_argnames="num_draws")
def count_inside(keys: jax.Array, paths: Paths, first: jax.Array, num_draws: int) -> jax.Array:
    """How many of some of `NUM_SUPPORT_DRAWS` more draws of each base fall on the target's support."""

    def of_target(path: Path, key: jax.Array) -> jax.Array:
        all_keys = jax.random.split(jax.random.fold_in(key, 1), NUM_SUPPORT_DRAWS)
        own = jax.lax.dynamic_slice_in_dim(all_keys, first, num_draws)
        positions = jax.vmap(lambda key: ravel_pytree(path.base.sample(key))[0])(own)
        return jnp.sum(jnp.isfinite(jax.vmap(path.log_ratio)(positions)))

    return paths.map(of_target, keys)


def count_support(keys: jax.Array, prepared: Prepared, blocks: Blocks) -> np.ndarray:
    """How many base draws fell on each target's support and of how many; many more where some did not."""
    num_inside, paths = prepared.num_inside, prepared.paths
    is_partial = prepared.is_usable & (num_inside < NUM_BASE_DRAWS)
    for rows in blocks.all_rows():
        for first in range(0, NUM_SUPPORT_DRAWS if is_partial[rows].any() else 0, NUM_BASE_DRAWS):
            more = np.asarray(count_inside(keys[rows], paths.take(rows), first, NUM_BASE_DRAWS))
            num_inside[rows] += is_partial[rows] * more
    return np.stack([num_inside, NUM_BASE_DRAWS + is_partial * NUM_SUPPORT_DRAWS], axis=1)


def log_support(support: np.ndarray) -> Estimate:
    """Log of the base's mass on the target's support, from how many draws fell on it, and of how many."""
    inside, drawn = map(int, support)
    if inside == drawn:
        return CERTAIN
    share = max(inside, 1) / drawn
    return Estimate(float(np.log(share)), float(np.sqrt((1 - share) / (share * drawn))), np.inf)


def check_log_ratio(path: Path, positions: np.ndarray, log_ratio: np.ndarray) -> None:
    """R may be -inf at draws of the base, off the target's support, but not at all of them, and not NaN or +inf."""
    bad = np.isnan(log_ratio) | np.isposinf(log_ratio)
    if bad.any():
        where = describe(path.unravel(jnp.asarray(positions[np.flatnonzero(bad)[0]])))
        raise ThermoclineError(
            f"log density minus the base's is {log_ratio[bad][0]} at {bad.sum()} of {bad.size} draws of the base, "
            f"first at {where}; return -inf off the support, and check that the base has a density where it draws."
        )
    if np.isneginf(log_ratio).all():
        raise ThermoclineError(
            f"log density is -inf at all {log_ratio.size} draws of the base: it misses the target's support. "
            "Give a base that covers it."
        )


def starts(positions: np.ndarray, log_ratio: np.ndarray, num_chains: int) -> np.ndarray:
    """Exact draws of the base on the target's support, as far as there are such, one a chain."""
    is_inside = np.isfinite(log_ratio)
    supported = positions[is_inside] if is_inside.any() else positions
    return supported[np.arange(num_chains) % len(supported)]
