"""Tails and quantiles of the laws that errors and tests need, by scipy.special: scipy.stats is slow to import."""

from typing import Any

import numpy as np

from thermocline.support import special

NORMAL_FROM = 1e10  # degrees of freedom from which Student's law is the normal one


def normal_tail(value: Any) -> Any:
    """P(Z > value) for a standard normal Z."""
    return special.ndtr(-np.asarray(value))


def student_log_tail(value: Any, dof: Any) -> Any:
    """Log P(T > value) for Student's T; any number of degrees of freedom, infinity too."""
    finite = np.minimum(dof, NORMAL_FROM)
    with np.errstate(divide="ignore"):
        log_tail = np.log(special.stdtr(finite, -np.asarray(value)))
    return np.where(np.asarray(dof) < NORMAL_FROM, log_tail, special.log_ndtr(-np.asarray(value)))


def student_quantile(probability: Any, dof: Any) -> Any:
    """The value that Student's T stays below with this probability."""
    finite = np.minimum(dof, NORMAL_FROM)
    return np.where(np.asarray(dof) < NORMAL_FROM, special.stdtrit(finite, probability), special.ndtri(probability))


def fisher_tail(value: float, first_dof: float, second_dof: float) -> float:
    """P(F > value) for Fisher's F."""
    return float(special.fdtrc(first_dof, second_dof, value))
