"""What loops outside the library share: a path with fresh draws of its base, and a Result from the draws they made."""

from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.api import base_for
from thermocline.auto.mode_masses import table_of_modes
from thermocline.bases import BaseFit
from thermocline.engine.batch import Blocks, Paths
from thermocline.engine.explore import Exploration, streams_of, supported
from thermocline.engine.loop import Outcome, Timer
from thermocline.engine.plan import TARGET_ERROR
from thermocline.engine.prepare import Prepared, log_support, moments_of, prepare
from thermocline.engine.progress import reporter_for
from thermocline.evaluator import Evaluator, checked_evaluator
from thermocline.methods.tuning import Tuning
from thermocline.paths import Path
from thermocline.records import BaseDraws, Cost, Draws, Estimate, Phases
from thermocline.results.assemble import assemble
from thermocline.results.result import Result
from thermocline.support.precision import cast, computing_in, to_numpy
from thermocline.support.runner import in_process
from thermocline.target import Target

ALONE = Blocks(1, 1)  # a batch of one target


class Ground(NamedTuple):
    """A path, as NumPy in double precision, and what is known of its base: what any loop starts from."""

    path: Path
    fit: BaseFit
    prepared: Prepared  # fresh draws of the base, and what they say
    seed: int
    cost: Cost

    def base_draws(self) -> BaseDraws:
        assert self.prepared.positions is not None, "a single target's are kept"
        return BaseDraws(self.prepared.positions[0], self.prepared.log_ratio[0], *moments_of(self.path.base))

    def log_support(self, tuning: Tuning) -> Estimate:
        """Log of the base's mass on the target's support, as far as draws of these temperatures do not know it."""
        with computing_in("float64"):
            of_one = jax.tree.map(lambda leaf: np.asarray(leaf)[None], tuning)
            return log_support(supported(_streams(self.seed), self.prepared, of_one, ALONE)[0])


def ground_of(target: Target, base: Any, seed: int, progress: bool) -> Ground:
    """The path from the base that was given, or from one that is looked for."""
    with computing_in("float64"), closing(reporter_for(progress)) as reporter:
        timer, evaluate = Timer(), checked_evaluator(cast(target, "float64"))
        with timer.timing("base"):
            fit = base_for(evaluate, base, seed, TARGET_ERROR, reporter)
        alone = replace(evaluate.target, known_modes=None)
        log_zeta = np.asarray(fit.log_zeta if np.isfinite(fit.log_zeta) else np.nan, float)
        prepared = prepare(_streams(seed), Paths.of_one(Path(alone, fit.base, log_zeta)), ALONE, 1, in_process)
        cost = Cost(timer.seconds, Phases(base=int(fit.num_gradients)))
        return Ground(to_numpy(prepared.paths.path), fit, prepared, seed, cost)


def result_of(
    ground: Ground,
    method: Any,
    tuning: Tuning,
    draws: Draws,
    *,
    search: bool,
    progress: bool,
    notes: tuple[str, ...],
) -> Result:
    """The Result of draws that somebody else's loop made: as that of a run, but it cannot go on."""
    path, timer = ground.path, Timer()
    outcome = Outcome(draws, tuning, None, draws.log_ratio.shape[1], Phases(), 0)
    explored = Exploration(path, outcome, ground.base_draws(), ground.log_support(tuning))
    with computing_in("float64"), closing(reporter_for(progress)) as reporter:
        modes, evaluate = None, Evaluator(path.target)
        if search:
            reporter.phase("table of modes", None)
            with timer.timing("modes"):
                modes = table_of_modes(ground.seed, evaluate, ground.fit, explored, reporter)
        around = ground.cost + Cost(timer.seconds, Phases(modes=evaluate.num_rows))
        notes = (*ground.fit.notes, *notes)
        return assemble(explored, method, ground.seed, "float64", modes, notes=notes, around=around)


def in_force(tree: Any) -> Any:
    """Arrays of JAX, in the precision in force; copies, for JAX remembers an array as it first saw it."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf if isinstance(leaf, jax.Array) else np.array(leaf)), tree)


def _streams(seed: int) -> np.ndarray:
    return streams_of(np.array([seed], np.uint32))
