"""Positions with weights for a target: what fits without a target learn from."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


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
