"""What a base is: a normalised density that can be sampled exactly."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from jax.core import Tracer
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial

from thermocline.support.errors import ThermoclineError, brief, reason
from thermocline.support.programs import jit_by
from thermocline.support.pytree import pytree
from thermocline.support.tables import Section, html_of
from thermocline.target import named_leaves

MOST_NOTES = 12  # sentences shown
NUM_CENTRES = 64  # at the least, of components as the metric has them


class NormalisedDensity(Protocol):
    """Anything with these two methods is a base."""

    def log_density(self, position: Any) -> jax.Array: ...
    def sample(self, key: jax.Array) -> Any: ...


@pytree
class Base:
    """A base from any pair of functions: a prior, an encoder, a flow.

    `log_density(position)` must be *normalised*: the evidence is relative to it.
    `sample(key)` draws one position exactly. Arrays that the functions use may be passed
    as leaves with `jax.tree_util.Partial`.
    """

    log_density: Callable[[Any], Any]
    sample: Callable[[jax.Array], Any]

    def __post_init__(self) -> None:
        for name in ("log_density", "sample"):
            function = getattr(self, name)
            if callable(function) and not isinstance(function, Partial):
                object.__setattr__(self, name, Partial(function))


class BaseFit(NamedTuple):
    """A base fitted to a target, with an approximation of its log evidence."""

    base: Any  # a NormalisedDensity
    log_zeta: float
    num_gradients: int = 0
    log_zeta_is: str = "estimate"  # or "lower bound", "upper bound"
    trace: np.ndarray | None = None  # of the objective, where there was one
    modes: Any = None  # what a search for modes found, where there was one
    notes: tuple[str, ...] = ()  # what the fit did, in sentences for the summary

    def __repr__(self) -> str:
        return f"<BaseFit: {base_name(self.base)}, log Z about {self.log_zeta:.6g} ({self.log_zeta_is})>"

    def _repr_html_(self) -> str:
        rows = [
            ("base", base_name(self.base)),
            ("log Z, about", f"{self.log_zeta:.6g} ({self.log_zeta_is})"),
            ("gradients", f"{self.num_gradients:,}"),
        ]
        return html_of(Section("Base", (), rows, self.notes[:MOST_NOTES]))


def base_name(base: Any) -> str:
    """A base in a few words: its own, where it has some, else its family and the number of its components."""
    if hasattr(base, "description"):
        return base.description
    return f"{type(base).__name__} of {base.num_components}" if hasattr(base, "num_components") else type(base).__name__


def check_base(base: NormalisedDensity, initial_position: Any) -> None:
    """A draw of the base must look like a position of the target, and have a density."""
    for method in ("log_density", "sample"):
        if not callable(getattr(base, method, None)):
            raise ThermoclineError(
                f"the base has no `{method}`; give tc.Gaussian(...) or tc.Base(log_density, sample)."
            )
    try:
        draw = jax.eval_shape(lambda: base.sample(jax.random.key(0)))
    except Exception as error:  # noqa: BLE001 - a user's own code says what it likes
        raise ThermoclineError(
            f"the base cannot be sampled: {reason(error)}. Are its mean and scale floats, and of the same size?"
        ) from None
    expected = {name: np.shape(leaf) for name, leaf in named_leaves(initial_position).items()}
    actual = {name: leaf.shape for name, leaf in named_leaves(draw).items()}
    if expected != actual or jax.tree.structure(draw) != jax.tree.structure(initial_position):
        raise ThermoclineError(
            f"the base draws positions of shape {actual} but the target lives on {expected}; "
            "a base must sample the same PyTree as `initial_position`."
        )
    try:
        value = jax.eval_shape(base.log_density, draw)
    except Exception as error:  # noqa: BLE001 - likewise
        raise ThermoclineError(f"the base's log_density cannot be called at its own draw: {reason(error)}.") from None
    if getattr(value, "shape", None) != () or not np.issubdtype(value.dtype, np.floating):
        raise ThermoclineError(f"the base's log_density returns {brief(value)} where one number is needed, as a float.")


def check_scales(base: Any) -> None:
    """What JAX computes with in silence, or NumPy without saying of what: scales that are none."""
    scale = getattr(base, "scale_tril", None)
    if not hasattr(base, "scale_tril") or isinstance(scale, Tracer):
        return
    degrees = getattr(base, "degrees_of_freedom", 1.0)
    if np.ndim(degrees) != 0 or np.asarray(degrees).dtype.kind not in "iuf":
        raise ThermoclineError(f"degrees_of_freedom of the base is {brief(degrees)}; give a number of more than 2.")
    array = np.asarray(scale)
    is_shaped = array.dtype.kind in "iuf" and (array.ndim == 1 or (array.ndim == 2 and len(set(array.shape)) == 1))
    diagonal = np.diagonal(array) if is_shaped and array.ndim == 2 else array
    if not (is_shaped and np.all(np.isfinite(array)) and np.all(diagonal)):
        raise ThermoclineError(
            f"scale_tril of the base is {brief(scale)}; give a vector of deviations, or a lower triangular matrix, of "
            "finite numbers without 0 on its diagonal, and of the position's size."
        )
    if array.ndim == 2 and np.any(np.triu(array, 1)):
        raise ThermoclineError(
            "scale_tril of the base has numbers above its diagonal; give the lower triangle L of a covariance L Lᵀ, "
            "or use tc.Gaussian.from_covariance."
        )


def fresh_draws(key: jax.Array, base: NormalisedDensity, num_draws: int) -> jax.Array:
    """Independent exact draws, ravelled, one a row."""
    return jax.vmap(lambda key: ravel_pytree(base.sample(key))[0])(jax.random.split(key, num_draws))


_fresh_draws = jit_by(lambda key, base, num_draws: jax.tree.structure(base), static_argnums=2)(fresh_draws)


def sampled_rows(base: Any, seed: Any, number: int) -> np.ndarray:
    """Independent exact draws in NumPy, ravelled, one a row; of a user's own pair of functions by JAX."""
    if hasattr(base, "sample_rows"):
        return base.sample_rows(np.random.default_rng(seed), number)
    return np.asarray(_fresh_draws(jax.random.key(np.random.default_rng(seed).integers(2**32)), base, number))


def log_densities(base: Any, rows: np.ndarray, like: Any) -> np.ndarray:
    """The base's log density at ravelled positions in NumPy; of a user's own pair of functions by JAX."""
    if hasattr(base, "log_density_of_rows"):
        return base.log_density_of_rows(rows)
    return np.asarray(_log_densities(base, like, rows))


@jit_by(lambda base, *others: jax.tree.structure(base))
def _log_densities(base: Any, like: Any, rows: jax.Array) -> jax.Array:
    unravel = ravel_pytree(like)[1]
    return jax.vmap(lambda row: base.log_density(unravel(row)))(rows)


def initial_scale(base: NormalisedDensity, draws: np.ndarray) -> np.ndarray:
    """The base's own scale where it states one (a mixture: that within its components), else its draws' spread."""
    pooled = getattr(base, "pooled_scale", None)
    stated = getattr(base, "scale_tril", None) if pooled is None else pooled()
    if stated is not None:
        return np.asarray(stated)
    spread = np.std(draws, axis=0)
    return np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)


def centres_of(base: NormalisedDensity, draws: np.ndarray) -> np.ndarray:
    """The components' means of a mixture, or the mean of any other base, repeated to `NUM_CENTRES` rows.

    The same number for all, so that what depends on it is compiled once.
    """
    stated = getattr(base, "centres", None)
    centres = np.mean(draws, axis=0, keepdims=True) if stated is None else stated()
    return np.concatenate([centres, np.repeat(centres[:1], max(NUM_CENTRES - len(centres), 0), axis=0)])
