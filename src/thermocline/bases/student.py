"""The multivariate t base: a Gaussian's shape with heavier tails."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.special import gammaln

from thermocline.support import linear
from thermocline.support.errors import ThermoclineError
from thermocline.support.pytree import pytree, static

FEWEST_DEGREES = 2.0  # at which the variance is infinite


@pytree
class StudentT:
    r"""A multivariate t on any PyTree: $x = m + Lz\sqrt{\nu/\chi^2_\nu}$ with $z$ standard normal.

    `scale_tril` acts on the ravelled position as a Gaussian's does: a lower triangular matrix $L$ or a vector. Tails
    fall as $|x|^{-\nu-D}$, so that weights for a target with lighter ones are bounded. Against a Gaussian target the
    log ratio is quadratic in $x$: it has a finite variance for $\nu > 4$, a finite skewness too for $\nu > 6$.
    """

    mean: Any
    scale_tril: Any
    degrees_of_freedom: float = static(default=7.0)
    whitening: Any = None  # the inverse of `scale_tril`, as a Gaussian may have it

    def __post_init__(self) -> None:
        degrees = self.degrees_of_freedom
        if not (isinstance(degrees, int | float | np.number) and degrees > FEWEST_DEGREES):
            raise ThermoclineError(
                f"degrees_of_freedom is {degrees}; "
                "a t base needs a number of more than 2, for a finite variance (by default 7)."
            )

    def log_density(self, position: Any) -> jax.Array:
        white = linear.whiten(self, ravel_pytree(position)[0] - ravel_pytree(self.mean)[0])
        degrees, total = self.degrees_of_freedom, self.degrees_of_freedom + white.size
        log_constant = gammaln(total / 2) - gammaln(degrees / 2) - 0.5 * white.size * jnp.log(degrees * jnp.pi)
        shape = -0.5 * total * jnp.log1p(white @ white / degrees)
        return log_constant + shape - linear.log_determinant(self.scale_tril)

    def sample(self, key: jax.Array) -> Any:
        """Of a whole number of degrees, with chi squared as a sum of squares, which compiles in half the time."""
        flat, unravel = ravel_pytree(self.mean)
        degrees, size = self.degrees_of_freedom, flat.size
        if degrees == round(degrees):
            normal = jax.random.normal(key, (size + round(degrees),), flat.dtype)
            chi_squared = jnp.sum(normal[size:] ** 2)
        else:
            key_normal, key_width = jax.random.split(key)
            normal = jax.random.normal(key_normal, (size,), flat.dtype)
            chi_squared = jax.random.chisquare(key_width, degrees, dtype=flat.dtype)
        return unravel(flat + jnp.sqrt(degrees / chi_squared) * linear.multiply(self.scale_tril, normal[:size]))

    def moments(self) -> tuple[jax.Array, jax.Array]:
        """Exact mean and variances of the ravelled position."""
        return ravel_pytree(self.mean)[0], jnp.diagonal(self.covariance())

    def covariance(self) -> jax.Array:
        """Exact covariance matrix of the ravelled position: the scale's, widened by nu/(nu - 2)."""
        squared = linear.covariance(self.scale_tril)
        matrix = jnp.diag(squared) if squared.ndim == 1 else squared
        return matrix * self.degrees_of_freedom / (self.degrees_of_freedom - 2)
