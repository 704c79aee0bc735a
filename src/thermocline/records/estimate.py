"""A number with its standard error, and how an error is carried on."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from thermocline.support import special
from thermocline.support.tails import student_log_tail, student_quantile


@dataclass(frozen=True)
class Estimate:
    """A value, its standard error, and the degrees of freedom of its t law.

    Floats; arrays of them for the expectation of a function that returns an array.
    """

    value: Any
    standard_error: Any
    dof: Any

    def interval(self, probability: float = 0.95) -> tuple[Any, Any]:
        """The central confidence interval of the t law."""
        reach = student_quantile(0.5 + probability / 2, np.maximum(self.dof, 1)) * self.standard_error
        return _plain(self.value - reach), _plain(self.value + reach)

    def z_score(self, truth: Any) -> Any:
        """Distance to the truth in errors, mapped through the t law to a standard normal."""
        offset, error = np.asarray(self.value - truth), np.asarray(self.standard_error)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where((offset == 0) & (error == 0), 0.0, offset / error)
        log_tail = student_log_tail(np.abs(t), np.maximum(self.dof, 1))
        return _plain(np.sign(t) * -special.ndtri_exp(log_tail))

    def __add__(self, other: "Estimate | float") -> "Estimate":
        """The sum of independent estimates, or of one and a number."""
        if not isinstance(other, Estimate):
            return Estimate(self.value + other, self.standard_error, self.dof)
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return sum_of(Estimate(*(np.stack(np.broadcast_arrays(*pair)) for pair in pairs)))

    def __str__(self) -> str:
        if np.ndim(self.value):
            parts = zip(*map(np.ravel, np.broadcast_arrays(self.value, self.standard_error, self.dof)), strict=True)
            return f"[{', '.join(str(Estimate(*part)) for part in parts)}]"
        if not (np.isfinite(self.standard_error) and self.standard_error > 0):
            return f"{self.value:.4g} ± {self.standard_error:.2g}"
        if self.standard_error < 1e-12 * abs(self.value):  # rounding
            return f"{self.value:.8g} ± 0"
        if self.standard_error < 1e-6:
            return f"{self.value:.8g} ± {self.standard_error:.1e}"
        digits = int(np.clip(1 - np.floor(np.log10(self.standard_error)), 0, 8))
        return f"{self.value:.{digits}f} ± {self.standard_error:.{digits}f}"


def sum_of(estimates: Estimate) -> Estimate:
    """The sum of independent estimates, over a leading axis; degrees of freedom by Welch and Satterthwaite."""
    variances = np.square(estimates.standard_error)
    total, shares = variances.sum(axis=0), np.sum(variances**2 / np.maximum(estimates.dof, 1), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        dof = np.where(shares > 0, total**2 / shares, np.inf)
    return Estimate(_plain(np.sum(estimates.value, axis=0)), _plain(np.sqrt(total)), _plain(dof))


def _plain(value: Any) -> Any:
    """A float, or the array it is."""
    return value if np.ndim(value) else float(value)
