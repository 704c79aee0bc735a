"""The multivariate t base: a Gaussian's shape with heavier tails."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.support import linear, special
from thermocline.support.errors import ThermoclineError
from thermocline.support.pytree import pytree

FEWEST_DEGREES = 2.0  # at which the variance is infinite
NUM_TRIES = 8  # of a draw of chi squared, of which at most one in twenty is refused: all, once in 10^10 draws


@pytree
class StudentT:
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
        if degrees is None or (is_known and not np.all(np.asarray(degrees) > FEWEST_DEGREES)):
            raise ThermoclineError(
                f"degrees_of_freedom is {degrees}; "
                "a t base needs a number of more than 2, for a finite variance (by default 7)."
            )

    def prepared(self, namespace: Any = np) -> "StudentT":
        """The same, with all that its density needs besides the position at hand."""
        scale = namespace.asarray(self.scale_tril)
        whitening = linear.inverse(scale, namespace) if scale.ndim == 2 and self.whitening is None else self.whitening
        constant = self._log_constant(namespace)
        return StudentT(self.mean, self.scale_tril, self.degrees_of_freedom, whitening, constant)

    def log_density(self, position: Any) -> jax.Array:
        return self.log_density_of_rows(ravel_pytree(position)[0], jnp)

    def log_density_of_rows(self, rows: Any, namespace: Any = np) -> Any:
        """At ravelled positions along the last axis, in NumPy or JAX."""
        scale, centred = namespace.asarray(self.scale_tril), rows - linear.ravelled(self.mean, namespace)
        white, degrees = linear.whiten(scale, self.whitening, centred, namespace), self.degrees_of_freedom
        constant = self._log_constant(namespace) if self.log_constant is None else self.log_constant
        squares = namespace.sum(white**2, axis=-1)
        return constant - 0.5 * (degrees + scale.shape[-1]) * namespace.log1p(squares / degrees)

    def _log_constant(self, namespace: Any) -> Any:
        scale, degrees = namespace.asarray(self.scale_tril), self.degrees_of_freedom
        size, log_gamma = scale.shape[-1], _log_gamma(namespace)
        ratio = log_gamma(0.5 * (degrees + size)) - log_gamma(0.5 * degrees)
        return ratio - 0.5 * size * namespace.log(degrees * np.pi) - linear.log_determinant(scale, namespace)

    def sample(self, key: jax.Array) -> Any:
        flat, unravel = ravel_pytree(self.mean)
        key_normal, key_width = jax.random.split(key)
        degrees = jnp.asarray(self.degrees_of_freedom, flat.dtype)
        width = jnp.sqrt(degrees / chi_squared(key_width, degrees))
        noise = jax.random.normal(key_normal, flat.shape, flat.dtype)
        return unravel(flat + width * linear.multiply(jnp.asarray(self.scale_tril), noise))

    def sample_rows(self, generator: np.random.Generator, number: int) -> np.ndarray:
        """Exact draws, ravelled, one a row, in NumPy."""
        mean, degrees = linear.ravelled(self.mean, np), float(self.degrees_of_freedom)
        width = np.sqrt(degrees / generator.chisquare(degrees, (number, 1)))
        noise = generator.normal(size=(number, mean.size))
        return mean + width * linear.multiply(np.asarray(self.scale_tril), noise)

    def moments(self, namespace: Any = np) -> tuple[Any, Any]:
        """Exact mean and variances of the ravelled position."""
        return linear.ravelled(self.mean, namespace), namespace.diagonal(self.covariance(namespace))

    def covariance(self, namespace: Any = np) -> Any:
        """Exact covariance matrix of the ravelled position: the scale's, widened by nu/(nu - 2)."""
        squared = linear.covariance(namespace.asarray(self.scale_tril))
        matrix = namespace.diag(squared) if squared.ndim == 1 else squared
        return matrix * self.degrees_of_freedom / (self.degrees_of_freedom - 2)


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
    return 2 * shape * safe[jnp.argmax(accept)]


def _log_gamma(namespace: Any) -> Any:
    if namespace is not np:
        return jax.scipy.special.gammaln
    return special.gammaln
