"""The running answer that progress shows."""

from collections.abc import Callable

import numpy as np

from thermocline.engine.drawn import Drawn
from thermocline.estimators.convergence import round_trips
from thermocline.estimators.evidence import log_ratio
from thermocline.records import Draws

REFRESH_SECONDS = 0.5
Answer = Callable[[], str | None]  # computed only when it is shown
MOST_DRAWS_SHOWN = 2_000  # a chain; running figures thin longer runs


def running_answer(drawn: Drawn, log_zeta: np.ndarray) -> str | None:
    """Log Z and round trips of a single target so far, or None while there are too few or no evidence."""
    length = int(drawn.num_draws.max())
    if length < 8 or len(log_zeta) > 1:
        return None
    stride = max(1, length // MOST_DRAWS_SHOWN)
    draws = Draws(*(leaf[:, ::stride] for leaf in drawn.of_target(0)))
    if not np.isfinite(draws.log_weight_base).any():
        return None
    estimate = log_ratio(draws) + float(log_zeta[0])
    return f"log Z {estimate}, {round_trips(draws).sum()} round trips"
