"""From what the user gives to a path that chains can start on."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.bases import Base, BaseFit, NormalisedDensity, fresh_draws
from thermocline.paths import Path
from thermocline.records import BaseDraws, Estimate
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import cast, to_numpy
from thermocline.target import Target, describe

NUM_BASE_DRAWS = 2048
NUM_SUPPORT_DRAWS = 2**16  # once some fall off the target's support
CERTAIN = Estimate(0.0, 0.0, np.inf)


def resolve_base(target: Target, base: Any, seed: int, precision: str) -> BaseFit:
    """The base as a fit; one that is a function of the target is run here. Log zeta is NaN where nobody knows it."""
    if callable(base) and not hasattr(base, "log_density"):
        base = base(target, seed=seed)
    fit = base if isinstance(base, BaseFit) else BaseFit(base, float("nan"))
    density: Any = fit.base
    if not hasattr(density, "log_density"):
        raise ThermoclineError(
            f"the base has no `log_density`: it is of type {type(density).__name__}; give tc.Gaussian(...), "
            "tc.Base(log_density, sample), or a fit such as tc.fit_laplace."
        )
    is_leaf = jax.tree_util.treedef_is_leaf(jax.tree.structure(density))
    if is_leaf and hasattr(density, "sample"):
        density = Base(density.log_density, density.sample)  # a class that JAX does not know
    return fit._replace(base=cast(prepared(density), precision))


def prepared(base: Any) -> Any:
    """A base with all that its density needs at hand, where it can be had; as it is, where not."""
    return base.prepared() if hasattr(base, "prepared") else base


def prepare(
    key: jax.Array, target: Target, base: NormalisedDensity, log_zeta: float
) -> tuple[Path, BaseDraws, Estimate]:
    """The path, fresh draws of its base, and the base's log mass on the target's support.

    Without a log zeta, that of importance sampling from the base is used: it need not be good.
    """
    is_known = bool(np.isfinite(log_zeta))
    path = Path(target, base, jnp.asarray(log_zeta if is_known else 0.0))
    positions, log_ratio = to_numpy(draw_base(key, path, NUM_BASE_DRAWS))
    check_log_ratio(path, positions, log_ratio)
    supported, log_support = np.isfinite(log_ratio), CERTAIN
    if not supported.all():
        more = to_numpy(draw_base(jax.random.fold_in(key, 1), path, NUM_SUPPORT_DRAWS))[1]
        log_support = log_share(np.isfinite(np.concatenate([log_ratio, more])))
    if not is_known:
        log_zeta = float(np.logaddexp.reduce(log_ratio[supported]) - np.log(log_ratio.size))
        path, log_ratio = Path(target, base, jnp.asarray(log_zeta)), log_ratio - log_zeta
    moments = getattr(base, "moments", None)
    mean, variance = (None, None) if moments is None else to_numpy(to_numpy(base).moments())
    return path, BaseDraws(positions, log_ratio, mean, variance), log_support


@partial(jax.jit, static_argnames="num_draws")
def draw_base(key: jax.Array, path: Path, num_draws: int) -> tuple[jax.Array, jax.Array]:
    """Exact draws of the base, ravelled, and r at each."""
    positions = fresh_draws(key, path.base, num_draws)
    return positions, jax.vmap(path.log_ratio)(positions)


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


def log_share(is_inside: np.ndarray) -> Estimate:
    """Log of the probability that a draw is inside, from independent draws."""
    share = float(np.mean(is_inside))
    return Estimate(float(np.log(share)), float(np.sqrt((1 - share) / (share * is_inside.size))), np.inf)


def starts(base_draws: BaseDraws, num_chains: int) -> np.ndarray:
    """Exact draws of the base on the target's support, one a chain."""
    supported = base_draws.position[np.isfinite(base_draws.log_ratio)]
    return supported[np.arange(num_chains) % len(supported)]
