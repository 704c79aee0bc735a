"""The running answer that progress shows."""

import numpy as np

from thermocline.estimators.convergence import round_trips
from thermocline.estimators.evidence import log_ratio
from thermocline.records import Draws

REFRESH_SECONDS = 0.5
MOST_DRAWS_SHOWN = 2_000  # a chain; running figures thin longer runs


def running_answer(chunks: list[Draws], log_zeta: float) -> str | None:
    """Log Z and round trips from the draws so far, or None while there are too few or no evidence."""
    length = sum(chunk.log_ratio.shape[1] for chunk in chunks)
    if length < 8:
        return None
    stride = max(1, length // MOST_DRAWS_SHOWN)
    draws = Draws(*(np.concatenate(parts, axis=1)[:, ::stride] for parts in zip(*chunks, strict=True)))
    if not np.isfinite(draws.log_weight_base).any():
        return None
    estimate = log_ratio(draws) + log_zeta
    return f"log Z {estimate}, {round_trips(draws).sum()} round trips"
