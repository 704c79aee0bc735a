"""From a path to what its chains start from: fresh draws of the base, and what they say."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.bases.base import centres_of, initial_scale, log_densities, sampled_rows
from thermocline.engine.batch import Blocks, Paths, joined, stacked
from thermocline.estimators.convergence import kish_share, pareto_k
from thermocline.estimators.two_state_answers import FINITE_VARIANCE
from thermocline.evaluator import WIDTHS, Evaluator
from thermocline.movers import Metric, metric_of
from thermocline.paths import Path
from thermocline.records import BaseDraws, Estimate
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import to_numpy
from thermocline.support.programs import jit_by
from thermocline.support.runner import Runner, in_process
from thermocline.target import describe

NUM_BASE_DRAWS = 4096
NUM_SUPPORT_DRAWS = 2**16  # once some fall off the target's support
MOST_BASE_DRAWS = 2**16
MOST_BYTES, BYTES_AT_ONCE = 1e9, 2.5e8  # of draws of one base, and of those that are looked at together
FIRST, BOUGHT, MORE = 0xBA5E, 0xBA5F, 0xBA60  # streams of random numbers
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


def prepare(streams: np.ndarray, paths: Paths, blocks: Blocks, num_chains: int, runner: Runner) -> Prepared:
    """Fresh draws of every base, and what they say.

    A block at a time, because width changes rounding, and to hold the draws of one block only.
    """
    if paths.is_single:
        log_zeta, *known = _prepared_block(num_chains, (streams, paths), runner)
    else:
        parts = [(streams[rows], paths.take(rows)) for rows in blocks.all_rows()]
        log_zeta, *known = joined(list(runner(partial(_prepared_block, num_chains), parts)))
    return Prepared(paths.with_log_zeta(log_zeta), *known)


def _prepared_block(num_chains: int, block: tuple[np.ndarray, Paths], runner: Runner = in_process) -> tuple[Any, ...]:
    """Log zeta and what else is prepared.

    Where log zeta is NaN, that of importance sampling from the base is used: it need not be good.
    """
    streams, paths = block
    log_zeta = np.array(np.broadcast_to(paths.path.log_zeta, len(paths)))
    is_known = np.isfinite(log_zeta)
    paths = paths.with_log_zeta(np.where(is_known, log_zeta, np.zeros_like(log_zeta)))
    positions, log_ratio = draw_bases(streams, paths, NUM_BASE_DRAWS, runner=runner)
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
    return log_zeta, metric, log_ratio, chosen, num_bad, kept


def draw_bases(
    streams: np.ndarray, paths: Paths, number: int, kind: int = FIRST, runner: Runner = in_process
) -> tuple[np.ndarray, np.ndarray]:
    """Exact draws of each base, (target, draw, coordinate), and r at each; (seed, stream) of a target decide them.

    A single target is asked through the evaluator, whose program there is anyway.
    """
    bases = [to_numpy(paths.one(target).base) for target in range(len(paths))]
    dtype = np.asarray(paths.path.log_zeta).dtype
    positions = np.stack(
        [
            sampled_rows(base, [*map(int, stream), kind], number).astype(dtype)
            for base, stream in zip(bases, streams, strict=True)
        ]
    )
    if not paths.is_single:
        return positions, np.asarray(_log_ratios(paths, positions))
    return positions, log_ratio_at(paths.path, positions[0], runner)[None]


def log_ratio_at(path: Path, rows: np.ndarray, runner: Runner = in_process) -> np.ndarray:
    """R at ravelled positions of a single target, one a row."""
    evaluate, base = Evaluator(path.target, str(rows.dtype), runner=runner), to_numpy(path.base)
    number = max(int(BYTES_AT_ONCE / (rows.itemsize * rows.shape[1])) // WIDTHS[-1], 1) * WIDTHS[-1]
    parts = [rows[first : first + number] for first in range(0, len(rows), number)]
    log_target = np.concatenate([evaluate.unchecked(part)[0] for part in parts])
    log_base = np.concatenate([log_densities(base, part, path.target.initial_position) for part in parts])
    with np.errstate(invalid="ignore"):
        return log_target - float(path.log_zeta) - log_base


@jit_by(lambda paths, positions: paths.path.target.log_density)
def _log_ratios(paths: Paths, positions: jax.Array) -> jax.Array:
    return paths.map(lambda path, own: jax.vmap(path.log_ratio)(own), positions)


def bought(streams: np.ndarray, prepared: Prepared, target_error: float, runner: Runner) -> Prepared:
    """With as many draws of a single target's base as would reach half the wanted error by themselves.

    Only where their weights have a variance: else more of them say little. Whether chains agree is asked later.
    """
    log_ratio = prepared.log_ratio[0]
    wanted = (1 / max(kish_share(log_ratio), 1e-12) - 1) / (target_error / 2) ** 2
    most = min(MOST_BASE_DRAWS, int(MOST_BYTES / (8 * prepared.paths.one(0).dimension)))
    number = int(min(2 ** np.ceil(np.log2(max(wanted, 1.0))), most)) - log_ratio.size
    if number <= 0 or not pareto_k(log_ratio) < FINITE_VARIANCE:
        return prepared
    assert prepared.positions is not None, "a single target's are kept"
    positions, more = draw_bases(streams, prepared.paths, number, BOUGHT, runner)
    more = np.where(np.isfinite(more), more, -np.inf)
    return prepared._replace(
        positions=np.concatenate([prepared.positions, positions], axis=1),
        log_ratio=np.concatenate([prepared.log_ratio, more], axis=1),
    )


def base_draws_of(streams: np.ndarray, paths: Paths) -> list[BaseDraws]:
    """Each target's fresh draws of its base, the same as `prepare` saw: for those who need more of them than that."""
    known = [moments_of(paths.one(target).base) for target in range(len(paths))]
    each = zip(*draw_bases(streams, paths, NUM_BASE_DRAWS), known, strict=True)
    return [BaseDraws(position, log_ratio, *moments) for position, log_ratio, moments in each]


def moments_of(base: Any) -> tuple[Any, Any]:
    """Mean and variance, of a base that states them."""
    return (None, None) if getattr(base, "moments", None) is None else to_numpy(to_numpy(base).moments())


def count_support(streams: np.ndarray, prepared: Prepared, blocks: Blocks, runner: Runner) -> np.ndarray:
    """How many base draws fell on each target's support and of how many; many more where some did not."""
    num_inside, paths = prepared.num_inside, prepared.paths
    is_partial = prepared.is_usable & (num_inside < NUM_BASE_DRAWS)
    some = [rows for rows in blocks.all_rows() if is_partial[rows].any()]
    counts = runner(_more_inside, [(streams[rows], paths.take(rows)) for rows in some]) if some else ()
    for rows, inside in zip(some, counts, strict=True):
        num_inside[rows] += is_partial[rows] * inside
    return np.stack([num_inside, NUM_BASE_DRAWS + is_partial * NUM_SUPPORT_DRAWS], axis=1)


def _more_inside(block: tuple[np.ndarray, Paths]) -> np.ndarray:
    """How many of many more draws of the bases of a block fall on each target's support."""
    number = np.zeros(len(block[0]), int)
    for part in range(NUM_SUPPORT_DRAWS // NUM_BASE_DRAWS):
        number += np.isfinite(draw_bases(*block, NUM_BASE_DRAWS, MORE + part)[1]).sum(axis=1)
    return number


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
