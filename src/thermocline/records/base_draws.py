"""Exact draws of the base, and what is known of them."""

from typing import NamedTuple

import numpy as np


class BaseDraws(NamedTuple):
    """Fresh exact draws of the base, and its moments where it states them."""

    position: np.ndarray
    log_ratio: np.ndarray
    mean: np.ndarray | None
    variance: np.ndarray | None
