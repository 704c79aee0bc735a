r"""Laws of the inverse temperature: priors $\rho(\beta) = e^{-f(\beta)}$ on the path.

The joint density is $p(x, \beta) \propto \mathrm{base}(x)\,e^{\beta r(x) - f(\beta)}$, eq. x-beta-joint-density where
$f = 0$. A law needs three methods; everything Rao-Blackwellised follows from `log_mass`.
"""

from collections.abc import Callable
from dataclasses import field
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.paths import truncated_exponential
from thermocline.paths.path import tempered
from thermocline.paths.reweighting import Curve, grid_of_betas
from thermocline.records import Array
from thermocline.support.errors import ThermoclineError
from thermocline.support.interpolation import interpolate
from thermocline.support.linear import log_sum_exp
from thermocline.support.precision import to_numpy
from thermocline.support.pytree import pytree


class Law(Protocol):
    """A prior on beta, conditioned and normalised exactly."""

    def log_weight(self, inverse_temperature: jax.Array) -> jax.Array: ...  # -f(beta)

    def log_mass(self, log_ratio: jax.Array) -> jax.Array: ...  # log N(r), the integral of exp(beta r - f) over beta

    def sample(self, key: jax.Array, log_ratio: jax.Array) -> jax.Array: ...  # beta given x, that is given r(x)


def as_floats(values: Any, namespace: Any = jnp) -> Any:
    """Values as an array of the precision in force; a user may well write integers."""
    array = namespace.asarray(values)
    return array if namespace.issubdtype(array.dtype, namespace.inexact) else array.astype(float)


@pytree
class Continuous:
    r"""Beta on all of [0, 1]; `Continuous()` is the paper's, with $f = 0$.

    `bias` holds $f$ at the `knots` and is linear between them, so that $\beta \mid x$ is a
    *piecewise* truncated exponential: still exact to draw and to normalise. With
    $f(\beta) \approx \log z(\beta) - \beta\log\zeta$ the marginal of beta is nearly flat.
    """

    bias: Any = field(default_factory=lambda: np.zeros(2))
    knots: Any = None  # equally spaced when None

    @classmethod
    def from_prior(cls, log_prior: Callable[[float], float], *, num_knots: int = 257) -> "Continuous":
        """The law of a user's own prior: its log, interpolated linearly between equally spaced knots.

        The interpolated prior *is* the law; nothing downstream is approximate on its account.
        """
        knots = np.linspace(0, 1, num_knots)
        bias = -np.array([float(log_prior(knot)) for knot in knots])
        for knot, value in zip(knots, -bias, strict=True):
            if not np.isfinite(value):
                raise ThermoclineError(f"the log prior of beta is {value} at beta = {knot}; it must be finite there.")
        return cls(bias, knots)

    def segments(self, namespace: Any = jnp) -> tuple[Any, Any, Any, Any]:
        """Left ends, widths, f at the left ends, and rises of f, a segment each."""
        bias = as_floats(self.bias, namespace)
        even = namespace.linspace(0.0, 1.0, bias.size, dtype=bias.dtype)
        knots = even if self.knots is None else as_floats(self.knots, namespace)
        return knots[:-1], namespace.diff(knots), bias[:-1], namespace.diff(bias)

    def log_weight(self, inverse_temperature: jax.Array) -> jax.Array:
        left, width, bias, rise = self.segments()
        segment = jnp.clip(jnp.searchsorted(left, inverse_temperature, side="right") - 1, 0, left.size - 1)
        slope = rise / jnp.where(width > 0, width, 1.0)
        return -bias[segment] - slope[segment] * (inverse_temperature - left[segment])

    def _log_segment_masses(self, log_ratio: Any, namespace: Any = jnp) -> Any:
        left, width, bias, rise = self.segments(namespace)
        gain = width * log_ratio - rise
        return left * log_ratio - bias + namespace.log(width) + truncated_exponential.log_mass(gain, namespace)

    def log_mass(self, log_ratio: Any, namespace: Any = jnp) -> Any:
        """Beta = 0 has measure zero: -inf stays -inf. One formula for a JAX number and for NumPy arrays."""
        ratios = log_ratio if namespace is jnp else log_ratio[..., None]
        masses = log_sum_exp(self._log_segment_masses(ratios, namespace), namespace)
        return namespace.where(namespace.isneginf(log_ratio), log_ratio, masses)

    def sample(self, key: jax.Array, log_ratio: jax.Array) -> jax.Array:
        left, width, _, rise = self.segments()
        dtype = jnp.result_type(log_ratio)
        uniforms = jax.random.uniform(key, (2,), dtype, minval=jnp.finfo(dtype).tiny)  # beta = 0 has measure zero
        cumulative = jnp.cumsum(jax.nn.softmax(self._log_segment_masses(log_ratio)))
        below = cumulative < uniforms[0] * cumulative[-1]
        segment = jnp.minimum(jnp.sum(below), left.size - 1)
        gain = width[segment] * log_ratio - rise[segment]
        beta = left[segment] + width[segment] * truncated_exponential.quantile(gain, uniforms[1])
        return jnp.clip(beta, 0.0, 1.0)

    def refit(self, curve: Curve, window: "Window") -> "Continuous":
        """The law that spends equal time on equal lengths of the path, as far as it is known, within the window.

        Every segment between knots is to be visited equally often, so that beta's marginal is nearly
        proportional to its speed, Gelman and Meng's (1998) optimal prior. A marginal flat in beta would hardly
        visit the neighbourhood of a broad base.
        """
        num_knots, is_open = np.shape(self.bias)[-1], np.asarray(window.is_open)[..., None]
        knots = np.where(is_open, curve.knots(num_knots), window.knots(num_knots))
        log_width = np.log(np.maximum(np.diff(knots), 1e-30))
        before, after = (log_width[..., end] for end in (slice(1), slice(-1, None)))
        log_density = -0.5 * (
            np.concatenate([before, log_width], axis=-1) + np.concatenate([log_width, after], axis=-1)
        )
        log_density = np.where(is_open, log_density, -window.penalty(knots))
        bias = curve.log_partition_at(knots) - log_density
        return Continuous(bias - bias[..., :1], knots)


@pytree
class Ladder:
    """Beta on a finite set of rungs with prior weights: simulated tempering's law (eq. simulated-tempering-joint)."""

    betas: Any
    log_weights: Any

    def log_weight(self, inverse_temperature: jax.Array) -> jax.Array:
        """The weight of the nearest rung; a ladder has no values between its rungs."""
        return as_floats(self.log_weights)[jnp.argmin(jnp.abs(as_floats(self.betas) - inverse_temperature))]

    def _log_terms(self, log_ratio: Any, namespace: Any = jnp) -> Any:
        return tempered(as_floats(self.betas, namespace), log_ratio, namespace) + as_floats(self.log_weights, namespace)

    def log_mass(self, log_ratio: Any, namespace: Any = jnp) -> Any:
        ratios = log_ratio if namespace is jnp else log_ratio[..., None]
        return log_sum_exp(self._log_terms(ratios, namespace), namespace)

    def sample(self, key: jax.Array, log_ratio: jax.Array) -> jax.Array:
        cumulative = jnp.cumsum(jax.nn.softmax(self._log_terms(log_ratio)))
        uniform = jax.random.uniform(key, (), cumulative.dtype)
        rung = jnp.minimum(jnp.sum(cumulative <= uniform * cumulative[-1]), cumulative.size - 1)
        return as_floats(self.betas)[rung]

    def refit(self, curve: Curve, window: "Window") -> "Ladder":
        """The same rungs, weighted so that each within the window is visited equally often."""
        betas = np.asarray(self.betas)
        return type(self)(self.betas, -curve.log_partition_at(betas) - window.penalty(betas))


@pytree
class Neighbours(Ladder):
    """A ladder on which beta goes one rung up or down at a time, by Metropolis's rule, and is not drawn independently.

    What simulated tempering's first authors did; it knows less of the path than an independent draw, and is slower.
    """

    def update(self, key: jax.Array, log_ratio: jax.Array, inverse_temperature: jax.Array) -> jax.Array:
        """Beta after one proposal to a neighbouring rung; one beyond either end is refused."""
        betas, log_terms = as_floats(self.betas), self._log_terms(log_ratio)
        key_side, key_accept = jax.random.split(key)
        rung = jnp.argmin(jnp.abs(betas - inverse_temperature))
        proposed = rung + jnp.where(jax.random.bernoulli(key_side), 1, -1)
        inside = jnp.clip(proposed, 0, betas.size - 1)
        gain = jnp.where(inside == proposed, log_terms[inside] - log_terms[rung], -jnp.inf)
        accept = jnp.log(jax.random.uniform(key_accept, (), betas.dtype)) < gain
        return betas[jnp.where(accept, inside, rung)]


def log_masses(law: Law, log_ratio: np.ndarray) -> np.ndarray:
    """Log N at many log ratios, in NumPy; of a law of the user's own by JAX, padded so that sizes share programs."""
    inner = unwrapped(law)
    if isinstance(inner, Continuous | Ladder):
        with np.errstate(all="ignore"):  # at -inf
            return inner.log_mass(np.asarray(log_ratio, float), np)
    room = np.zeros(2 ** int(np.ceil(np.log2(max(len(log_ratio), 2)))))
    room[: len(log_ratio)] = log_ratio
    return np.asarray(_log_masses(law, room))[: len(log_ratio)]


@jax.jit
def _log_masses(law: Law, log_ratio: jax.Array) -> jax.Array:
    return jax.vmap(law.log_mass)(log_ratio)


class Window(NamedTuple):
    """The part of the path that chains are held in while they climb from the base; open once they are up."""

    centre: Array
    width: Array
    is_open: Array

    def penalty(self, betas: np.ndarray) -> np.ndarray:
        """Added to f: quadratic about the centre, then linear; nothing when open."""
        distance = np.abs(betas - np.asarray(self.centre)[..., None]) / np.asarray(self.width)[..., None]
        beyond = np.where(distance < 4, 0.5 * distance**2, 4 * distance - 8)
        return np.where(np.asarray(self.is_open)[..., None], 0.0, beyond)

    def knots(self, num_knots: int) -> np.ndarray:
        """Knots that resolve the window, and the ends of the path."""
        centre, width = (np.asarray(part)[..., None] for part in self[:2])
        inside = np.clip(centre + width * np.linspace(-4.0, 4.0, num_knots), 0.0, 1.0)
        inside[..., 0], inside[..., -1] = 0.0, 1.0
        return inside


@pytree
class Learned:
    """A law that is refitted after every warm-up round, by Rao-Blackwellised reweighting, and then frozen.

    Refitting is NumPy on the host, of one target's law or of many at once: curve, window and leaves then have a
    leading axis over targets.
    """

    law: Any

    def log_weight(self, inverse_temperature: jax.Array) -> jax.Array:
        return self.law.log_weight(inverse_temperature)

    def log_mass(self, log_ratio: jax.Array) -> jax.Array:
        return self.law.log_mass(log_ratio)

    def sample(self, key: jax.Array, log_ratio: jax.Array) -> jax.Array:
        return self.law.sample(key, log_ratio)

    def relearned(self, curve: Curve, window: Window) -> "Learned":
        return Learned(self.law.refit(curve, window))


def unwrapped(law: Law) -> Law:
    """The law itself, of one that warm-up learns."""
    return law.law if isinstance(law, Learned) else law


def ladder_of(law: Law) -> Ladder | None:
    """The ladder that a law is; None where beta is continuous, as it is for any law of the user's own."""
    inner = unwrapped(law)
    return inner if isinstance(inner, Ladder) else None


def has_atom_at_base(law: Law) -> bool:
    """Whether beta = 0 itself has mass: draws of the base off the target's support then count as well."""
    inner = unwrapped(law)
    if isinstance(inner, Continuous):
        return False
    if isinstance(inner, Ladder):
        return bool(np.any((np.asarray(inner.betas) == 0) & np.isfinite(inner.log_weights)))
    return bool(jnp.isfinite(law.log_mass(jnp.asarray(-jnp.inf))))


def as_stored(law: Law) -> Law:
    """One of our laws as it is; a user's own class as a table of -f, which a file can hold."""
    if isinstance(law, Learned | Continuous | Ladder):
        return to_numpy(law)
    return Continuous(-log_prior_on_grid(law), grid_of_betas())


def log_prior_on_grid(law: Law, *, is_stacked: bool = False) -> np.ndarray:
    """-f at every beta of the grid; `is_stacked` says that the law's leaves have a leading axis over targets."""
    inner, betas = unwrapped(law), grid_of_betas()
    if isinstance(inner, Continuous):
        bias = np.asarray(inner.bias)
        knots = np.linspace(0.0, 1.0, bias.shape[-1]) if inner.knots is None else np.asarray(inner.knots)
        return -interpolate(betas, knots, bias)
    if isinstance(inner, Ladder):
        nearest = np.argmin(np.abs(np.asarray(inner.betas)[..., None, :] - betas[:, None]), axis=-1)
        return np.take_along_axis(np.asarray(inner.log_weights), nearest, axis=-1)
    of_one = lambda law: jax.vmap(law.log_weight)(betas)  # noqa: E731
    return np.asarray((jax.vmap(of_one) if is_stacked else of_one)(law))
