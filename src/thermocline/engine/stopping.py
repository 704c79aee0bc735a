"""How long a call runs: the numbers and the error that a user asks for, checked, and the rule that ends a run."""

from functools import partial
from numbers import Real

import numpy as np

from thermocline.engine.explore import Lengths
from thermocline.estimators import log_evidence
from thermocline.estimators.convergence import APPRECIABLE, round_trips, tours
from thermocline.estimators.stages import has_stages
from thermocline.methods import Method, Temperatures
from thermocline.records import Draws, Estimate
from thermocline.support.errors import ThermoclineError

TARGET_ERROR = 0.05  # of log Z, where neither an error nor a number of draws is asked for
MOST_DRAWS = 2**14  # a chain, for such a run
FEWEST_ROUND_TRIPS = 40  # before a stopping rule may end a run
MANY_TOURS, FEWEST_TOURS = 100, 5  # likewise, where the base is thin; the latter for a run of a fair length
FAIR_LENGTH = 4000  # draws a chain


def lengths_of(
    method: Method, num_chains: int, num_warmup: int, num_draws: int | None, target_error: float | None
) -> Lengths:
    """Draws a chain, or a rule that ends the run; a method without evidence has no error to stop by."""
    if target_error is not None and not method.has_evidence:
        raise ThermoclineError("target_error is of the log evidence, which this method cannot give; set num_draws.")
    if method.has_evidence and num_draws is None and target_error is None:
        target_error = TARGET_ERROR
    first = method.first_draws if num_draws is None else num_draws
    needs_trips = method.temperatures is Temperatures.LAW
    rule = None if target_error is None else partial(is_accurate, target_error, needs_trips)
    return Lengths(num_chains, num_warmup, first, MOST_DRAWS, rule)


def check_options(seed: int, lengths: Lengths, target_error: float | None, chunk_size: int | None) -> None:
    """Raise with the reason where an option is none."""
    if not (isinstance(seed, int | np.integer) and 0 <= seed < 2**32):
        raise ThermoclineError(f"seed is {seed!r}; give an integer from 0 to 2**32 - 1.")
    for name, least in (("num_chains", 1), ("num_warmup", 0), ("num_draws", 4)):
        value = getattr(lengths, name)
        if not isinstance(value, int | np.integer) or value < least:
            raise ThermoclineError(f"{name} is {value!r}; give an integer of at least {least}.")
    if target_error is not None and not (isinstance(target_error, Real) and target_error > 0):
        raise ThermoclineError(f"target_error is {target_error!r}; give a positive standard error of log Z, or None.")
    if chunk_size is not None and not (isinstance(chunk_size, int | np.integer) and chunk_size >= 1):
        raise ThermoclineError(f"chunk_size is {chunk_size!r}; give a positive number of steps, or None.")


def is_accurate(target_error: float, needs_trips: bool, log_zeta: float, log_support: Estimate, draws: Draws) -> bool:
    """The stopping rule: an error below the wanted one, resting on enough round trips and stays to be known.

    Where the base is thin the longest stays hold most of the weight. A short run that has met none of them has a small
    error and is low (docs/choosing.md).
    """
    if (needs_trips or has_stages(draws)) and round_trips(draws).sum() < FEWEST_ROUND_TRIPS:
        return False
    estimate = log_evidence(draws, log_zeta, log_support)
    if estimate.standard_error > target_error:
        return False
    share, number = tours(draws, estimate.value - log_zeta) if needs_trips else (0.0, 0.0)
    is_fair = draws.log_ratio.shape[1] >= FAIR_LENGTH and number >= FEWEST_TOURS
    return share < APPRECIABLE or number >= MANY_TOURS or is_fair
