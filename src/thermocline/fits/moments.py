"""The Gaussian with given moments: the paper's proposal for a base that lets chains move between modes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.bases.base import BaseFit
from thermocline.bases.gaussian import Gaussian
from thermocline.bases.mixture import Mixture
from thermocline.fits.weighted import weighted_draws_of, weighted_moments
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import computing_in, to_numpy


def fit_moments(source: Any, *, like: Any = None, log_zeta: float | None = None) -> BaseFit:
    """The Gaussian with the mean and covariance of a base, exactly, or of weighted draws.

    `source` is one of our bases or a BaseFit of one, a Result, or a pair (positions, log_weights); `like` is one
    position as the target takes it, for a pair of ravelled positions. Correlations of few effective draws are shrunk
    towards none. log zeta is what is given, else the BaseFit's own or the Result's log evidence, else 0: a mere
    placeholder.
    """
    fitted = source if isinstance(source, BaseFit) else None
    source = source if fitted is None else fitted.base
    with computing_in("float64"):
        if hasattr(source, "covariance"):
            source = Mixture.of([source], [0.0])
        if isinstance(source, Mixture):
            mean, covariance = to_numpy(mixture_moments(source))
            unravel = ravel_pytree(source.component(0).mean)[1]
            known, story = None if fitted is None else fitted.log_zeta, "a base"
        else:
            draws = weighted_draws_of(source, like)
            mean, covariance = to_numpy(weighted_moments(jnp.asarray(draws.position), jnp.asarray(draws.weight)))
            covariance = shrunk(covariance, draws.num_effective)
            unravel, known = draws.unravel, draws.log_evidence
            story = f"{len(draws.weight)} weighted draws, {draws.num_effective:.0f} of them effective"
        base = Gaussian.from_covariance(to_numpy(unravel(jnp.asarray(mean))), covariance)
    log_zeta, is_known = (known, True) if log_zeta is None else (log_zeta, False)
    return BaseFit(
        base,
        float(0.0 if log_zeta is None else log_zeta),
        0 if fitted is None else fitted.num_gradients,
        fitted.log_zeta_is if fitted is not None and is_known else "estimate",
        story=(f"A Gaussian was given the mean and covariance of {story}.",),
    )


def mixture_moments(mixture: Mixture) -> tuple[jax.Array, jax.Array]:
    """Exact mean and covariance of the ravelled position: within components plus between them."""
    means, within = mixture.centres(), jax.vmap(lambda base: base.covariance())(mixture.components)
    weights = jnp.exp(jnp.asarray(mixture.log_weights))
    mean, between = weighted_moments(means, weights)
    return mean, jnp.einsum("k,kij->ij", weights / jnp.sum(weights), within) + between


def shrunk(covariance: np.ndarray, num_effective: float) -> np.ndarray:
    """A sample covariance, its correlations scaled down by oracle approximating shrinkage (Chen et al. 2010).

    The variances are made unbiased and otherwise left alone. Nothing is shrunk once draws are many for the dimension.
    """
    variances, dimension = np.diagonal(covariance), len(covariance)
    if num_effective < 2 or not np.all(variances > 0):
        raise ThermoclineError(
            f"the weights amount to {num_effective:.2f} draws, or a coordinate never varies: no covariance can be had; "
            "give more draws, or a base nearer to the target."
        )
    deviations = np.sqrt(variances)
    correlation = covariance / np.outer(deviations, deviations)
    squares = np.sum(correlation**2)
    surplus = (num_effective + 1 - 2 / dimension) * (squares - dimension)
    shrinkage = min(1.0, ((1 - 2 / dimension) * squares + dimension**2) / surplus) if surplus > 0 else 1.0
    correlation = (1 - shrinkage) * correlation + shrinkage * np.eye(dimension)
    return correlation * np.outer(deviations, deviations) * num_effective / (num_effective - 1)
