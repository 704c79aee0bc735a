"""Checks: what can go wrong, each measured against a limit; together they make the verdict."""

from collections.abc import Callable

from thermocline.checks.base import check_base_law, check_base_moments, check_lower_bound, check_states
from thermocline.checks.check import Check, Context, Verdict, verdict_of
from thermocline.checks.mixing import check_agreement, check_effective_size, check_r_hat
from thermocline.checks.model import check_has_evidence, check_method, check_model
from thermocline.checks.modes import check_modes, check_tail_index, check_tours
from thermocline.checks.moves import check_divergences, check_nonfinite, check_runaways, check_standstill
from thermocline.checks.temperature import check_occupancy, check_round_trips, check_swaps
from thermocline.checks.weights import check_error, check_weights

CHECKS: dict[str, Callable[[Context], list[Check]]] = {
    "evidence": check_has_evidence,
    "model": check_model,
    "method": check_method,
    "tail index": check_tail_index,
    "round trips": check_round_trips,
    "occupancy": check_occupancy,
    "r-hat": check_r_hat,
    "effective size": check_effective_size,
    "agreement": check_agreement,
    "weights": check_weights,
    "error": check_error,
    "base moments": check_base_moments,
    "base law": check_base_law,
    "states": check_states,
    "lower bound": check_lower_bound,
    "modes": check_modes,
    "tours": check_tours,
    "divergences": check_divergences,
    "non-finite": check_nonfinite,
    "standstill": check_standstill,
    "runaways": check_runaways,
    "swaps": check_swaps,
}

OF_POSITIONS = {"base moments", "standstill"}  # need draws of the parameters, which many targets may do without


def run_checks(context: Context) -> tuple[Check, ...]:
    """Every check for which there is what it needs, in the order of the registry."""
    without = set() if context.draws.position.shape[-1] else OF_POSITIONS
    return tuple(check for name in CHECKS if name not in without for check in CHECKS[name](context))


__all__ = ["CHECKS", "Check", "Context", "Verdict", "run_checks", "verdict_of"]
