"""Checks: what can go wrong, each measured against a limit; together they make the verdict."""

from collections.abc import Callable
from dataclasses import replace
from inspect import cleandoc

from thermocline.checks import base, model, run
from thermocline.checks.check import PAGE, Check, Context, Verdict, verdict_of

CHECKS: dict[str, Callable[[Context], list[Check]]] = {
    "evidence": model.check_has_evidence,
    "method": model.check_method,
    "tail index": model.check_tail_index,
    "round trips": run.check_round_trips,
    "occupancy": run.check_occupancy,
    "r-hat": run.check_r_hat,
    "effective size": run.check_effective_size,
    "agreement": run.check_agreement,
    "weights": run.check_weights,
    "error": run.check_error,
    "base moments": base.check_base_moments,
    "base ratio": base.check_base_ratio,
    "states": base.check_states,
    "lower bound": base.check_lower_bound,
    "modes": model.check_modes,
    "thin base": model.check_thin_base,
    "divergences": run.check_divergences,
    "non-finite": run.check_nonfinite,
    "stuck chains": run.check_stuck,
    "unbounded": run.check_unbounded,
    "swaps": run.check_swaps,
}

OF_POSITIONS = {"base moments", "stuck chains"}  # need draws of the parameters, which many targets may do without


def run_checks(context: Context) -> tuple[Check, ...]:
    """Every check for which there is what it needs, in the order of the registry."""
    without = set() if context.draws.position.shape[-1] else OF_POSITIONS
    return tuple(explained(name, check) for name in CHECKS if name not in without for check in CHECKS[name](context))


def explained(name: str, check: Check) -> Check:
    """With what it means, the first line of its function's documentation, and where more is said of it."""
    meaning = cleandoc(CHECKS[name].__doc__ or "").split("\n")[0]
    return replace(check, meaning=meaning, link=f"{PAGE}#{name.replace(' ', '-')}")


__all__ = ["CHECKS", "Check", "Context", "Verdict", "run_checks", "verdict_of"]
