"""Bidirectional Monte Carlo (Grosse et al. 2015): annealed runs up and back, and log Z between them."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.auto.black_box import find_base
from thermocline.bases import BaseFit, NormalisedDensity, check_base
from thermocline.engine.explore import Exploration, Lengths, explore
from thermocline.engine.prepare import resolve_base
from thermocline.engine.progress import Reporter, reporter_for
from thermocline.estimators.batches import Batches, mean_error
from thermocline.estimators.evidence import relative
from thermocline.estimators.resampling import systematic_resample
from thermocline.evaluator import Evaluator
from thermocline.methods import AnnealedImportance
from thermocline.methods.annealed_importance import anneal_back, at_start, moved
from thermocline.methods.tuning import Tuning, betas_of
from thermocline.movers import Keys, Mover
from thermocline.paths import Path
from thermocline.records import Estimate
from thermocline.results.result import Result
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import cast, computing_in, to_numpy
from thermocline.target import Target, check_target, dimension

NUM_SPREAD = 8  # moves at the target before a reverse run, so that runs from one exact draw differ from the start
AT_ONCE = 1024  # reverse runs


@dataclass(frozen=True)
class Sandwich:
    """Log Z from both sides: log mean weights of runs up from the base and back from draws of the target.

    `lower` and `upper` are the raw log means, without any correction of bias. Where the target's draws were exact,
    `is_bound` is True: either fails by more than b nats with probability at most exp(-b) (Markov's inequality), and
    their difference bounds the error of both. Where they were not, it is a consistency gap and bounds nothing.
    The error of `upper` counts draws, not runs; from a single draw it is that of the runs given the draw.
    """

    lower: float
    upper: float
    lower_error: float
    upper_error: float
    is_bound: bool
    num_temperatures: int
    log_weights_forward: np.ndarray  # with log zeta
    log_weights_reverse: np.ndarray  # minus log zeta
    num_gradients: int

    @property
    def gap(self) -> float:
        """Upper less lower, in nats."""
        return self.upper - self.lower

    def __str__(self) -> str:
        runs = f"{self.log_weights_forward.size} runs up and {self.log_weights_reverse.size} back"
        cost = f"{runs}, {self.num_temperatures} temperatures, {self.num_gradients:,} gradients"
        sides = f"{self.lower:.4f} ± {self.lower_error:.4f}", f"{self.upper:.4f} ± {self.upper_error:.4f}"
        if self.is_bound:
            return (
                f"log Z between {sides[0]} and {sides[1]}: stochastic bounds with a gap of {self.gap:.4f}; either "
                f"fails by more than b nats with probability at most exp(-b) ({cost})."
            )
        return (
            f"log Z is {sides[0]} by runs up and {sides[1]} by runs back from tempered draws: a consistency gap of "
            f"{self.gap:.4f}, not a bound, as draws that miss a mode close on a wrong value ({cost})."
        )

    __repr__ = __str__


def bidirectional(
    target: Target,
    exact_draws: Any,
    *,
    base: NormalisedDensity | BaseFit | Callable[..., BaseFit] | None = None,
    method: AnnealedImportance | None = None,
    seed: int = 0,
    num_runs: int = 512,
    num_warmup: int = 500,
    progress: bool = True,
    precision: str = "float64",
) -> Sandwich:
    """Log Z between stochastic bounds, from exact draws of the target.

    `exact_draws` are unconstrained positions, the target's PyTree with a leading axis; one draw will do (a leading
    axis of 1). They may be dependent, but each must follow the target itself. A `Result` in their place gives its
    tempered draws, and then a consistency gap, not bounds. `num_runs` go up from the base, and as many back.
    """
    if not (isinstance(num_runs, int | np.integer) and num_runs >= 2):
        raise ThermoclineError(f"num_runs is {num_runs!r}; give an integer of at least 2.")
    chosen = AnnealedImportance() if method is None else method
    positions, is_exact = _positions(target, exact_draws, num_runs, seed)
    with computing_in(precision), closing(reporter_for(progress)) as reporter:
        target, chosen, positions = cast((target, chosen, positions), precision)
        check_target(target)
        fit = _fit(target, base, seed, precision, reporter)
        num_chains = next(n for n in (8, 4, 2, 1) if num_runs % n == 0)
        lengths = Lengths(num_chains, num_warmup, num_runs // num_chains, num_runs // num_chains)
        explored = explore(seed, target, fit.base, fit.log_zeta, chosen, lengths, reporter)
        reporter.phase("reverse runs", None)
        key = jax.random.fold_in(jax.random.key(seed), 7)
        log_weights, gradients = reverse_runs(key, explored, chosen.mover, positions)
    groups = runs_by_draw(np.asarray(positions)) if is_exact else None
    return _sandwich(explored, log_weights, is_exact, groups, gradients)


def _positions(target: Target, draws: Any, num_runs: int, seed: int) -> tuple[np.ndarray, bool]:
    """Ravelled draws, one for each run, and whether they are exact."""
    if isinstance(draws, Result):
        index = systematic_resample(draws.draws.log_weight_target.ravel(), num_runs, seed)
        return draws.draws.position.reshape(-1, draws.draws.position.shape[-1])[index], False
    shapes = [np.shape(leaf)[1:] for leaf in jax.tree.leaves(draws) if np.ndim(leaf) > 0]
    expected = [np.shape(leaf) for leaf in jax.tree.leaves(target.initial_position)]
    if shapes != expected or jax.tree.structure(draws) != jax.tree.structure(target.initial_position):
        raise ThermoclineError(
            f"exact_draws have shapes {shapes} after their leading axis, where the target's positions have {expected}; "
            "give the PyTree of `initial_position` with one more axis, over draws, in front of every array."
        )
    number = len(jax.tree.leaves(draws)[0])
    flat = [np.reshape(leaf, (number, -1)) for leaf in jax.tree.leaves(draws)]
    positions = np.concatenate(flat, axis=1)
    assert positions.shape[1] == dimension(target)
    return positions[np.arange(num_runs) * min(number, num_runs) // num_runs], True


def _fit(target: Target, base: Any, seed: int, precision: str, reporter: Reporter) -> BaseFit:
    if base is None:
        fit = find_base(Evaluator(target, precision), seed, 0.05, reporter)
    else:
        fit = resolve_base(target, base, seed, precision)
    fit = fit._replace(base=cast(fit.base, precision))
    check_base(fit.base, target.initial_position)
    return fit


def reverse_runs(
    key: jax.Array, explored: Exploration, mover: Mover, positions: jax.Array
) -> tuple[np.ndarray, int]:
    """Log weights of runs back to the base, one from each position, with the schedule of the runs up; and gradients."""
    tuning, parts = explored.outcome.tuning, []
    for first in range(0, len(positions), AT_ONCE):
        keys = jax.random.split(jax.random.fold_in(key, first), len(positions[first : first + AT_ONCE]))
        parts.append(to_numpy(_reverse(keys, explored.path, tuning, mover, positions[first : first + AT_ONCE])))
    log_weights, gradients = (np.concatenate(leaves) for leaves in zip(*parts, strict=True))
    return log_weights, int(gradients.sum())


@jax.jit
def _reverse(
    keys: jax.Array, path: Path, tuning: Tuning, mover: Mover, positions: jax.Array
) -> tuple[jax.Array, jax.Array]:
    run = lambda key, position: reverse_run(Keys(key, keys[0]), path, tuning, mover, position)  # noqa: E731
    return jax.vmap(run)(keys, positions)


def reverse_run(
    keys: Keys, path: Path, tuning: Tuning, mover: Mover, position: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The log weight of one run from a draw of the target back to the base, and its gradients."""
    spread, back = map(Keys, jax.random.split(keys.own), jax.random.split(keys.shared))
    one = jnp.ones((), position.dtype)
    step = lambda i, state: moved(spread, path, tuning, mover, one, state, i)  # noqa: E731
    start = jax.lax.fori_loop(0, NUM_SPREAD, step, at_start(path.evaluate(position)))
    end = anneal_back(back, path, tuning, mover, betas_of(tuning), start.point)
    return end.log_weight, end.moves.num_gradients + start.moves.num_gradients


def runs_by_draw(positions: np.ndarray) -> Batches | None:
    """Runs from one draw, side by side, are no more independent than it is; None for a draw each, or a single one."""
    is_first = np.any(np.diff(positions, axis=0) != 0, axis=1)
    edges = np.concatenate([[0], 1 + np.flatnonzero(is_first), [len(positions)]])
    return Batches(edges, 1) if 2 < len(edges) <= len(positions) else None


def _sandwich(
    explored: Exploration, reverse: np.ndarray, is_exact: bool, groups: Batches | None, num_gradients: int
) -> Sandwich:
    forward, log_zeta = explored.outcome.draws.log_weight_target, float(explored.path.log_zeta)
    up, back = log_mean(forward), log_mean(reverse[None], groups)
    spent = num_gradients + int(explored.outcome.draws.num_gradients.sum()) + explored.outcome.warmup_gradients
    return Sandwich(
        up.value + log_zeta,
        log_zeta - back.value,
        up.standard_error,
        back.standard_error,
        is_exact,
        len(betas_of(explored.outcome.tuning)),
        np.ravel(forward) + log_zeta,
        reverse - log_zeta,
        spent,
    )


def log_mean(log_weight: np.ndarray, batches: Batches | None = None) -> Estimate:
    """The raw log of the mean weight, whose bias is what makes it a bound."""
    weight, value = relative(log_weight)
    return Estimate(value, *mean_error(weight, batches))


def validate(
    target_of_data: Callable[[Any], Target],
    simulate: Callable[[jax.Array], tuple[Any, Any]],
    *,
    seed: int = 0,
    base: NormalisedDensity | BaseFit | Callable[..., BaseFit] | None = None,
    **options: Any,
) -> Sandwich:
    """Bounds on log Z for data simulated from the model, where one exact draw of the posterior is known.

    `simulate(key)` draws an unconstrained position from the prior and then data given it, and returns both;
    `target_of_data(data)` is the model conditioned on data, so that the position is an exact draw of its posterior.
    Other options are those of `bidirectional`. This is the paper's device (section 7.4) to see how far
    a base and a schedule can be relied on for real data of the same kind.
    """
    precision = options.get("precision", "float64")
    with computing_in(precision):
        position, data = to_numpy(simulate(jax.random.fold_in(jax.random.key(seed), 0x51)))
    target = target_of_data(data)
    exact = jax.tree.map(lambda leaf: np.asarray(leaf)[None], position)
    return bidirectional(target, exact, base=base, seed=seed, **options)
