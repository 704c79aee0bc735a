"""Bases with one centre, over any PyTree: the Gaussian, the one whose correlations have low rank, and Student's t."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.support import linear, special
from thermocline.support.errors import ThermoclineError, brief
from thermocline.support.pytree import pytree

LOG_TWO_PI = float(np.log(2 * np.pi))
FEWEST_DEGREES = 2.0  # at which the variance of a t is infinite
NUM_TRIES = 8  # of a draw of chi squared, of which at most one in twenty is refused: all, once in 10^10 draws


class OnRows:
    """What our bases have beside `log_density` and `sample`, of NumPy and on ravelled positions, one a row.

    `log_density_of_rows` is the density, by one formula for NumPy and JAX; `sample_rows` makes exact draws; `moments`
    are the exact mean and variances, and `covariance` is the exact matrix.
    """

    log_density_of_rows: Callable[..., Any]

    def log_density(self, position: Any) -> jax.Array:
        return self.log_density_of_rows(ravel_pytree(position)[0], jnp)


class Elliptical(OnRows):
    """What a Gaussian and a t share: a scale L, and a density that falls with the length of L⁻¹(x - mean)."""

    mean: Any
    scale_tril: Any
    whitening: Any
    log_constant: Any
    _fall: Callable[..., Any]  # of the log density from the centre, by the squared length of white coordinates
    _log_constant: Callable[..., Any]  # the log density at the centre

    def prepared(self, namespace: Any = np) -> Any:
        """The same, with all that its density needs besides the position at hand."""
        scale = namespace.asarray(self.scale_tril)
        whitening = linear.inverse(scale, namespace) if scale.ndim == 2 and self.whitening is None else self.whitening
        made: Any = self
        return replace(made, whitening=whitening, log_constant=self._log_constant(namespace))

    def log_density_of_rows(self, rows: Any, namespace: Any = np) -> Any:
        scale, centred = namespace.asarray(self.scale_tril), rows - linear.ravelled(self.mean, namespace)
        if scale.ndim == 1:
            white = centred / scale
        else:
            white = centred @ (linear.inverse(scale, namespace) if self.whitening is None else self.whitening).T
        constant = self._log_constant(namespace) if self.log_constant is None else self.log_constant
        return constant - self._fall(namespace.sum(white**2, axis=-1), scale.shape[-1], namespace)

    def _squared_scale(self) -> np.ndarray:
        """The covariance, as a vector where it is diagonal."""
        scale = np.asarray(self.scale_tril)
        return scale**2 if scale.ndim == 1 else scale @ scale.T

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        squared = self._squared_scale()
        return linear.ravelled(self.mean, np), squared if squared.ndim == 1 else np.diagonal(squared)

    def covariance(self) -> np.ndarray:
        squared = self._squared_scale()
        return np.diag(squared) if squared.ndim == 1 else squared


@pytree
class Gaussian(Elliptical):
    """A Gaussian on any PyTree.

    `scale_tril` acts on the ravelled position: a lower triangular matrix $L$ with covariance
    $LL^T$, or a vector of standard deviations for independent coordinates.
    """

    mean: Any
    scale_tril: Any
    whitening: Any = None  # the inverse of `scale_tril`, kept where many densities are asked for: a product is faster
    log_constant: Any = None  # of the density at the mean, kept likewise

    @classmethod
    def diagonal(cls, mean: Any, standard_deviation: Any) -> "Gaussian":
        """Independent coordinates; `standard_deviation` is a number or a PyTree like `mean`."""
        return cls(jax.tree.map(_as_floats, mean), _ravelled_like(mean, standard_deviation))

    @classmethod
    def from_covariance(cls, mean: Any, covariance: Any) -> "Gaussian":
        """The Gaussian with this mean and this covariance matrix of the ravelled position."""
        return cls(jax.tree.map(_as_floats, mean), np.linalg.cholesky(np.atleast_2d(covariance))).prepared()

    @staticmethod
    def low_rank(mean: Any, deviations: Any, factor: Any) -> "LowRankGaussian":
        """Covariance diag(deviations²) + factor factorᵀ; `deviations` is a number or a PyTree like `mean`."""
        floats = jax.tree.map(_as_floats, mean)
        return LowRankGaussian(floats, _ravelled_like(mean, deviations), np.asarray(factor, float))

    def _fall(self, squares: Any, size: int, namespace: Any) -> Any:
        return 0.5 * squares

    def _log_constant(self, namespace: Any) -> Any:
        scale = namespace.asarray(self.scale_tril)
        return -0.5 * scale.shape[-1] * LOG_TWO_PI - linear.log_determinant(scale, namespace)

    def sample(self, key: jax.Array) -> Any:
        flat, unravel = ravel_pytree(self.mean)
        noise = jax.random.normal(key, flat.shape, flat.dtype)
        return unravel(flat + linear.multiply(jnp.asarray(self.scale_tril), noise))

    def sample_rows(self, generator: np.random.Generator, number: int) -> np.ndarray:
        mean = linear.ravelled(self.mean, np)
        return mean + linear.multiply(np.asarray(self.scale_tril), generator.normal(size=(number, mean.size)))


@pytree
class StudentT(Elliptical):
    r"""A multivariate t on any PyTree: $x = m + Lz\sqrt{\nu/\chi^2_\nu}$ with $z$ standard normal.

    `scale_tril` acts on the ravelled position as a Gaussian's does: a lower triangular matrix $L$ or a vector. Tails
    fall as $|x|^{-\nu-D}$, so that weights for a target with lighter ones are bounded. Against a Gaussian target the
    log ratio is quadratic in $x$: it has a finite variance for $\nu > 4$, a finite skewness too for $\nu > 6$.
    """

    mean: Any
    scale_tril: Any
    degrees_of_freedom: Any = 7.0
    whitening: Any = None  # the inverse of `scale_tril`, as a Gaussian may have it
    log_constant: Any = None

    def __post_init__(self) -> None:
        degrees = self.degrees_of_freedom
        is_known = isinstance(degrees, int | float | np.number | np.ndarray)  # and not a tracer
        is_good = is_known and np.asarray(degrees).dtype.kind in "iuf" and np.all(np.asarray(degrees) > FEWEST_DEGREES)
        if degrees is None or isinstance(degrees, str | bytes | list | dict) or (is_known and not is_good):
            raise ThermoclineError(
                f"degrees_of_freedom is {brief(degrees)}; "
                "a t base needs a number of more than 2, for a finite variance (by default 7)."
            )

    def _fall(self, squares: Any, size: int, namespace: Any) -> Any:
        degrees = self.degrees_of_freedom
        return 0.5 * (degrees + size) * namespace.log1p(squares / degrees)

    def _log_constant(self, namespace: Any) -> Any:
        scale, degrees = namespace.asarray(self.scale_tril), self.degrees_of_freedom
        size, log_gamma = scale.shape[-1], special.gammaln if namespace is np else jax.scipy.special.gammaln
        ratio = log_gamma(0.5 * (degrees + size)) - log_gamma(0.5 * degrees)
        return ratio - 0.5 * size * namespace.log(degrees * np.pi) - linear.log_determinant(scale, namespace)

    def _squared_scale(self) -> np.ndarray:
        return super()._squared_scale() * self.degrees_of_freedom / (self.degrees_of_freedom - 2)

    def sample(self, key: jax.Array) -> Any:
        flat, unravel = ravel_pytree(self.mean)
        key_normal, key_width = jax.random.split(key)
        degrees = jnp.asarray(self.degrees_of_freedom, flat.dtype)
        width = jnp.sqrt(degrees / chi_squared(key_width, degrees))
        noise = jax.random.normal(key_normal, flat.shape, flat.dtype)
        return unravel(flat + width * linear.multiply(jnp.asarray(self.scale_tril), noise))

    def sample_rows(self, generator: np.random.Generator, number: int) -> np.ndarray:
        mean, degrees = linear.ravelled(self.mean, np), float(self.degrees_of_freedom)
        width = np.sqrt(degrees / generator.chisquare(degrees, (number, 1)))
        noise = generator.normal(size=(number, mean.size))
        return mean + width * linear.multiply(np.asarray(self.scale_tril), noise)


def chi_squared(key: jax.Array, degrees: jax.Array) -> jax.Array:
    """A draw with more than two degrees of freedom, by Marsaglia and Tsang's (2000) rejection from a cubed normal.

    A fixed number of tries stands for the loop, which would compile longer and keep all chains waiting.
    """
    shape = 0.5 * degrees - 1 / 3
    key_normal, key_accept = jax.random.split(key)
    normal = jax.random.normal(key_normal, (NUM_TRIES,), shape.dtype)
    log_uniform = jnp.log(jax.random.uniform(key_accept, (NUM_TRIES,), shape.dtype))
    cubed = (1 + normal / jnp.sqrt(9 * shape)) ** 3
    safe = jnp.where(cubed > 0, cubed, 1.0)
    accept = (cubed > 0) & (log_uniform < 0.5 * normal**2 + shape * (1 - safe + jnp.log(safe)))
    first = safe[-1]
    for number in reversed(range(NUM_TRIES - 1)):  # compiles faster than to look for the place of the first accepted
        first = jnp.where(accept[number], safe[number], first)
    return 2 * shape * first


@pytree
class LowRankGaussian(OnRows):
    r"""A Gaussian on any PyTree with covariance $\mathrm{diag}(d^2) + FF^\top$ of the ravelled position.

    `deviations` is the vector $d$ and `factor` the matrix $F$, of a row for each of $D$ coordinates and $R$
    columns. Density and draw cost $O(DR^2)$ and no matrix has more than $DR$ entries.
    """

    mean: Any
    deviations: Any
    factor: Any

    def log_density_of_rows(self, rows: Any, namespace: Any = np) -> Any:
        r"""Woodbury's identity as ridge regression, and the matrix determinant lemma, in NumPy or JAX.

        With $w = (x - m)/d$ and $W = F/d$ the squared distance is $\min_c |w - Wc|^2 + |c|^2$: a sum of squares,
        where the usual $|w|^2 - |C^{-1}W^\top w|^2$ would cancel for a factor much wider than the deviations.
        """
        deviations = namespace.asarray(self.deviations)
        white = (rows - linear.ravelled(self.mean, namespace)) / deviations
        factor = namespace.asarray(self.factor) / deviations[:, None]
        root = namespace.linalg.cholesky(namespace.eye(factor.shape[1], dtype=factor.dtype) + factor.T @ factor)
        half = linear.inverse(root, namespace)
        coefficients = (white @ factor) @ half.T @ half
        rest = white - coefficients @ factor.T
        log_determinant = linear.log_determinant(deviations, namespace) + linear.log_determinant(root, namespace)
        distance = namespace.sum(rest**2, axis=-1) + namespace.sum(coefficients**2, axis=-1)
        return -0.5 * (distance + white.shape[-1] * LOG_TWO_PI) - log_determinant

    def sample(self, key: jax.Array) -> Any:
        flat, unravel = ravel_pytree(self.mean)
        key_own, key_shared = jax.random.split(key)
        own = self.deviations * jax.random.normal(key_own, flat.shape, flat.dtype)
        shared = self.factor @ jax.random.normal(key_shared, self.factor.shape[-1:], flat.dtype)
        return unravel(flat + own + shared)

    def sample_rows(self, generator: np.random.Generator, number: int) -> np.ndarray:
        mean, factor = linear.ravelled(self.mean, np), np.asarray(self.factor)
        own = np.asarray(self.deviations) * generator.normal(size=(number, mean.size))
        return mean + own + generator.normal(size=(number, factor.shape[1])) @ factor.T

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        return linear.ravelled(self.mean, np), np.square(self.deviations) + np.sum(np.square(self.factor), axis=1)

    def covariance(self) -> np.ndarray:
        factor = np.asarray(self.factor)
        return np.diag(np.square(self.deviations)) + factor @ factor.T


def _ravelled_like(mean: Any, values: Any) -> np.ndarray:
    """A number, or a PyTree like `mean`, as a vector of the mean's size."""
    size = sum(np.size(leaf) for leaf in jax.tree.leaves(mean))
    try:
        return np.broadcast_to(linear.ravelled(values, np).astype(float), (size,))
    except (TypeError, ValueError) as error:
        raise ThermoclineError(
            f"the base's deviations are {brief(values)}; give a number, or a PyTree like the mean, of {size} numbers."
        ) from error


def _as_floats(leaf: Any) -> Any:
    """A leaf as it is, unless it holds integers."""
    return leaf if np.issubdtype(np.asarray(leaf).dtype, np.floating) else np.asarray(leaf, float)
