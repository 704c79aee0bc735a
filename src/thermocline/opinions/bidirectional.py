"""Bidirectional Monte Carlo (Grosse et al. 2015): annealed runs up and back, and log Z between them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.api import base_for
from thermocline.api_many import sample_many
from thermocline.bases import BaseFit, NormalisedDensity
from thermocline.engine.batch import Paths
from thermocline.engine.explore import explore
from thermocline.engine.folder import Guarded
from thermocline.engine.plan import Lengths
from thermocline.engine.progress import reporter_for, watched
from thermocline.estimators.chains import systematic_resample
from thermocline.evaluator import checked_evaluator
from thermocline.methods import AnnealedImportance
from thermocline.methods.annealing import check_annealed
from thermocline.methods.tuning import betas_of
from thermocline.opinions.reverse import log_mean_back, log_mean_of_independent, reverse_runs
from thermocline.results.many import ManyResults
from thermocline.results.result import Result
from thermocline.results.runs import Runs, weights
from thermocline.results.weighing import stacked_estimates
from thermocline.support.errors import ThermoclineError
from thermocline.support.flat import ravelled_rows
from thermocline.support.precision import cast, computing_in, to_numpy
from thermocline.target import Target, check_target

NUM_CHAINS = 4  # that runs up of many targets are spread over


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


@dataclass(frozen=True, eq=False)
class ManySandwiches:
    """Log Z of every target from both sides, raw log means of weights as in `Sandwich`: bounds, since draws are exact.

    A sum of bounds bounds the sum; its gap says how far the joint log evidence can be off.
    """

    lower: np.ndarray
    upper: np.ndarray
    lower_error: np.ndarray
    upper_error: np.ndarray
    forward: ManyResults  # the runs up
    log_weights_reverse: np.ndarray  # (target, run), minus log zeta
    seconds_reverse: float  # of all targets, with compiling

    @property
    def gap(self) -> np.ndarray:
        """Upper less lower of every target, in nats."""
        return self.upper - self.lower

    def __repr__(self) -> str:
        sides = (self.lower, self.lower_error), (self.upper, self.upper_error)
        low, high = (f"{np.sum(side):.3f} ± {np.sqrt(np.sum(error**2)):.3f}" for side, error in sides)
        return (
            f"<ManySandwiches of {len(self.lower)} targets: joint log Z between {low} and {high}, stochastic bounds; "
            f"gap {self.gap.mean():.4f} a target, {self.gap.max():.4f} at most>"
        )


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
    check_target(target)
    positions = _positions(target, exact_draws, num_runs, seed)
    with Guarded(), computing_in(precision), watched(reporter_for(progress)) as reporter:
        target, chosen = cast((target, chosen), precision)
        fit = base_for(checked_evaluator(target, precision, seed=seed), base, seed, 0.05, reporter)
        num_chains = next(n for n in (8, 4, 2, 1) if num_runs % n == 0)
        lengths = Lengths(num_chains, num_warmup, num_runs // num_chains, num_runs // num_chains)
        path, up, _, _ = explore(seed, target, fit.base, fit.log_zeta, chosen, lengths, reporter)
        reporter.phase("reverse runs", None)
        tuning = jax.tree.map(lambda leaf: leaf[None], up.tuning)
        starts, mover = jnp.asarray(positions[None], precision), chosen.mover
        reverse, gradients = reverse_runs(seed, [seed], Paths.of_one(path), tuning, mover, starts)
    is_bound, log_zeta = not isinstance(exact_draws, Result), float(path.log_zeta)
    forward = up.draws.log_weight_target
    below, above = log_mean_of_independent(forward), log_mean_back(reverse, positions, is_bound)
    return Sandwich(
        below.value + log_zeta,
        log_zeta - above.value,
        below.standard_error,
        above.standard_error,
        is_bound,
        len(betas_of(up.tuning)),
        np.ravel(forward) + log_zeta,
        reverse[0] - log_zeta,
        gradients + int(up.draws.num_gradients.sum()) + up.warmup_gradients,
    )


def bidirectional_many(
    target: Target,
    data: Any,
    exact_draws: Any,
    *,
    base: NormalisedDensity | BaseFit | Callable[[Any], NormalisedDensity | BaseFit],
    method: AnnealedImportance,
    seed: int = 0,
    num_runs: int = 16,
    num_warmup: int = 0,
    progress: bool = True,
    precision: str = "float64",
    group_size: int | None = None,
) -> ManySandwiches:
    """Stochastic bounds on the log Z of `target` given each datum, from one exact draw of each.

    `exact_draws` is the target's PyTree with a leading axis over targets. For data simulated from the model it is
    what they were simulated from. `num_runs` go up from each base and as many back; other arguments are those of
    `sample_many`. `method` needs its `betas`, or `num_temperatures` and some warm-up for the pilot that places them.
    """
    if not (isinstance(num_runs, int | np.integer) and num_runs >= 16 and num_runs % NUM_CHAINS == 0):
        raise ThermoclineError(f"num_runs is {num_runs!r}; give a multiple of {NUM_CHAINS} of at least 16.")
    check_annealed(method)
    forward = sample_many(
        target,
        data,
        base=base,
        seed=seed,
        method=method,
        num_chains=NUM_CHAINS,
        num_warmup=num_warmup,
        num_draws=int(num_runs) // NUM_CHAINS,
        progress=progress,
        precision=precision,
        group_size=group_size,
    )
    began, runs = time.monotonic(), forward.runs
    assert isinstance(runs, Runs), "of this session"
    reverse, log_zeta = np.empty((len(forward), num_runs)), runs.by_target.log_zeta
    with computing_in(precision):
        positions, mover = _ravelled(target, cast(exact_draws, precision), len(forward)), cast(method.mover, precision)
        for targets, seeds, paths, tuning in runs.blocks():
            starts = positions[np.resize(targets, len(paths))][:, None]
            starts = np.broadcast_to(starts, (len(paths), num_runs, starts.shape[-1]))
            log_weights, _ = reverse_runs(seed, seeds, paths, tuning, mover, starts)
            reverse[targets] = log_weights[: len(targets)]
    of_each = [own for _, own, *_ in weights(runs, forward.index)], reverse[:, None]
    below, above = (stacked_estimates(list(map(log_mean_of_independent, side)), (len(forward),)) for side in of_each)
    return ManySandwiches(
        log_zeta + below.value,
        log_zeta - above.value,
        below.standard_error,
        above.standard_error,
        forward,
        reverse - log_zeta[:, None],
        time.monotonic() - began,
    )


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
    with computing_in(options.get("precision", "float64")):
        position, data = to_numpy(simulate(jax.random.fold_in(jax.random.key(seed), 0x51)))
    exact = jax.tree.map(lambda leaf: np.asarray(leaf)[None], position)
    return bidirectional(target_of_data(data), exact, base=base, seed=seed, **options)


def _positions(target: Target, draws: Any, num_runs: int, seed: int) -> np.ndarray:
    """Ravelled draws, one for each run, those of the same draw side by side; a Result's in the order of drawing."""
    if isinstance(draws, Result):
        index = np.sort(systematic_resample(draws.draws.log_weight_target.ravel(), num_runs, seed))
        return draws.draws.position.reshape(-1, draws.draws.position.shape[-1])[index]
    positions = _ravelled(target, draws, len(np.atleast_1d(jax.tree.leaves(draws)[0])))
    return positions[np.arange(num_runs) * min(len(positions), num_runs) // num_runs]


def _ravelled(target: Target, draws: Any, number: int) -> np.ndarray:
    """So many draws, a row each."""
    wanted = jax.tree.map(lambda leaf: (number, *np.shape(leaf)), target.initial_position)
    given = jax.tree.map(np.shape, draws)
    if given != wanted:
        raise ThermoclineError(
            f"exact_draws have shapes {given} where {wanted} are needed: the PyTree of `initial_position` with one "
            "more axis in front of every array, over draws, or over targets with one exact draw of each."
        )
    return ravelled_rows(draws)
