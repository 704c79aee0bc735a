"""Draws: what every method returns, exact ones of the base, and weighted ones that fits learn from."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = Any  # of JAX while a run goes on, of NumPy in what it leaves


class Draw(NamedTuple):
    r"""One step of one chain; stacked, the leading axes are (chain, draw).

    With $r$ the log ratio and $N(r) = \int \exp(\beta r - f(\beta))\,d\beta$ the mass of the
    law of beta, the weights are $w_1 = e^r/N$ for the target and $w_0 = 1/N$ for the base
    (eq. ct-norm-const-estimator).
    """

    position: Array  # ravelled, unconstrained
    inverse_temperature: Array
    log_ratio: Array  # r = log target - log zeta - log base, at `position`
    log_weight_target: Array
    log_weight_base: Array
    acceptance: Array  # mean probability of accepting the move
    is_divergent: Array  # the energy error left the range an integrator can have
    is_nonfinite: Array  # the move met a NaN (or +inf) and was rejected
    num_gradients: Array
    jump_acceptance: Array  # probability of accepting the jump from the base that followed; 0 without jumps
    stage_log_weights: Array = np.zeros((2, 0), np.float32)  # of replicas: up to the next, and down from it
    num_round_trips: Array = np.zeros((), np.int32)  # that replicas ended with this step


Draws = Draw  # the same fields, with leading axes (chain, draw)


def restored(stored: dict[str, Any]) -> Draws:
    """Draws from arrays by name, of which those that hold nothing need not be there."""
    draws = Draws(**stored)
    missing = {name: value for name, value in Draws._field_defaults.items() if name not in stored}
    shape = draws.log_ratio.shape
    return draws._replace(**{name: np.zeros((*shape, *value.shape), value.dtype) for name, value in missing.items()})


class BaseDraws(NamedTuple):
    """Fresh exact draws of the base, and its moments where it states them."""

    position: np.ndarray
    log_ratio: np.ndarray
    mean: np.ndarray | None
    variance: np.ndarray | None


class WeightedDraws(NamedTuple):
    """Ravelled positions, one a row; weights that sum to one; the way back to a PyTree; log Z where it is known."""

    position: np.ndarray
    weight: np.ndarray
    unravel: Callable[[Any], Any]
    log_evidence: float | None

    @property
    def num_effective(self) -> float:
        """Kish's effective number of draws."""
        return float(1 / np.sum(self.weight**2))
