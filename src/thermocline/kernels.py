"""Pieces for a loop of your own: the steps of our methods as pure functions, the path, and estimators of what is drawn.

What is named here is public. `docs/kernels.md` shows all of it at work.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.bases import BaseFit
from thermocline.estimators.chains import expectation, log_ratio_of_means, quantile
from thermocline.estimators.convergence import effective_size, pareto_k, r_hat
from thermocline.methods import GibbsTempering, Method, check_method
from thermocline.methods.continuous import jump, record
from thermocline.methods.tuning import Tuning
from thermocline.movers import Keys, Move, Scale, leapfrog, metropolis
from thermocline.opinions.own_draws import Ground, ground_of, in_force, result_of
from thermocline.paths import AtTemperature, Path, Point
from thermocline.records import Draw, Draws, Estimate
from thermocline.results.result import Result
from thermocline.results.storage import Opaque
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import cast, computing_in, to_numpy
from thermocline.target import Target

__all__ = [
    "AtTemperature",
    "Draw",
    "Kernel",
    "Keys",
    "Move",
    "Path",
    "Point",
    "Scale",
    "effective_size",
    "expectation",
    "jump",
    "kernel",
    "leapfrog",
    "log_ratio_of_means",
    "metropolis",
    "pareto_k",
    "quantile",
    "r_hat",
    "record",
]

LOOP_ALONE = "The draws are those of a loop outside the library; its warm-up is not counted."


@dataclass(frozen=True, eq=False)
class Kernel:
    """One method on one path: `init` and `step` of one chain, for `jax.jit`, `jax.vmap` and `jax.lax.scan`.

    They work in whatever precision is in force. `adapted` is warm-up, a round at a time; `result` makes a Result of
    the draws, in double precision.
    """

    ground: Ground
    method: Method
    tuning: Tuning

    @property
    def path(self) -> Path:
        """From the base to the target; what a step of your own evaluates."""
        return in_force(self.ground.path)

    @property
    def log_zeta(self) -> float:
        """What log Z is relative to: r = log target - log zeta - log base."""
        return float(self.ground.path.log_zeta)

    @property
    def log_support(self) -> Estimate:
        """Log of the base's mass on the target's support: a part of log Z that chains alone do not know."""
        return self.ground.log_support(self.tuning)

    def starts(self, num_chains: int) -> Any:
        """Exact draws of the base on the target's support, (chain, ...), as the target takes its positions."""
        draws = self.ground.base_draws()
        inside = np.flatnonzero(np.isfinite(draws.log_ratio))
        rows = draws.position[inside[np.arange(num_chains) % len(inside)]]
        return jax.vmap(self.path.unravel)(in_force(rows))

    def init(self, key: jax.Array, position: Any) -> Any:
        """The state of a chain that starts at a position of the target."""
        method, tuning = in_force((self.method, self.tuning))
        return method.init(key, self.path, tuning, ravel_pytree(in_force(position))[0])

    def step(self, key: jax.Array, state: Any, shared: jax.Array | None = None) -> tuple[Any, Draw]:
        """One transition, and its record. With the same `shared` key for all, chains side by side take equally long."""
        method, tuning = in_force((self.method, self.tuning))
        own, other = jax.random.split(key)
        return method.step(Keys(own, other if shared is None else shared), self.path, tuning, state)

    @property
    def is_ramping(self) -> bool:
        """Whether the law still holds chains back on their first way up the path: then `adapted` has more to learn."""
        return bool(self.tuning.is_ramping)

    def adapted(self, draws: Draws, *, is_last: bool = False) -> "Kernel":
        """After a round of warm-up, with what its draws (chain, draw) teach; the last leaves the metric alone."""
        return replace(self, tuning=to_numpy(self.method.adapt(self.tuning, _checked(draws), is_last)))

    def result(self, draws: Draws, *, search: bool = True, progress: bool = True) -> Result:
        """What `tc.sample` would give, from draws (chain, draw) of `step` after the last `adapted`."""
        stacked, notes = _checked(draws), (LOOP_ALONE,)
        return result_of(self.ground, self.method, self.tuning, stacked, search=search, progress=progress, notes=notes)


def kernel(
    target: Target,
    *,
    base: Any = None,
    method: Method | None = None,
    after: Result | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Kernel:
    """A method's steps on the path from a base.

    Without a `base`, one is looked for as in `sample`. A law and a step size that the method states are used as they
    are; what it leaves open begins as warm-up would, and `adapted` learns it. `after` is a Result of the same target,
    whose base, method and warm-up are then used.
    """
    if after is not None:
        base, method = BaseFit(after.continuation.base, after.log_zeta), after.continuation.method
        if any(isinstance(part, Opaque) for part in (base.base, method, after.continuation.tuning)):
            raise ThermoclineError("the run of a loaded Result held functions, which no file holds; run it again here.")
    chosen = GibbsTempering() if method is None else method
    check_method(chosen)
    if after is None and chosen.pilot is not None:
        raise ThermoclineError(
            f"{type(chosen).__name__} is warmed up by a pilot of another method, so that its steps alone are no "
            "kernel; run tc.sample with it and give the Result as `after=`, or take tc.GibbsTempering."
        )
    ground = ground_of(target, base, seed, progress)
    with computing_in("float64"):
        chosen = to_numpy(cast(chosen, "float64"))
        metric = jax.tree.map(lambda leaf: leaf[0], ground.prepared.metric)
        tuning = chosen.initial_tuning(metric, ground.prepared.log_ratio[0])
    return Kernel(ground, chosen, to_numpy(tuning if after is None else after.continuation.tuning))


def _checked(draws: Draws) -> Draws:
    """In NumPy and double precision, with two leading axes."""
    shape = np.shape(draws.log_ratio)
    if len(shape) != 2:
        raise ThermoclineError(
            f"draws have leading axes {shape}; give (chain, draw): jax.vmap over chains of a jax.lax.scan over steps."
        )
    doubled = lambda leaf: leaf.astype(float) if np.issubdtype(leaf.dtype, np.floating) else leaf  # noqa: E731
    return jax.tree.map(doubled, to_numpy(draws))
