"""Can the weights be averaged: effective sizes, tails, and whether the error is known at all."""

import numpy as np

from thermocline.checks.check import Check, Context, at_least, at_most
from thermocline.estimators.batches import mean_error
from thermocline.estimators.chains import relative
from thermocline.estimators.convergence import heavy_share, pareto_k

HEAVY, LIGHT_TAIL = 10.0, 0.05  # a tail of weights beyond ten times the mean that holds less hardly moves log Z


def check_weights(context: Context) -> list[Check]:
    """Effective number of weights (with autocorrelation) and Pareto k, at both ends of the path."""
    if not context.has_evidence:
        return []
    ends = {"target": context.draws.log_weight_target, "base": context.draws.log_weight_base}
    return [check for end, log_weight in ends.items() for check in _of_end(end, log_weight)]


def _of_end(end: str, log_weight: np.ndarray) -> list[Check]:
    error, _ = mean_error(relative(log_weight)[0])
    size = error**-2 if error > 0 else float(log_weight.size)
    tail = -np.inf if heavy_share(log_weight, HEAVY) < LIGHT_TAIL else pareto_k(log_weight)
    few = f"Few draws carry the weight of the {end}: draw more, or fit a base closer to the target."
    heavy = (
        f"The weights of the {end} have a heavy tail, so their mean may not settle: "
        "use a base with heavier tails or closer to the target."
    )
    return [
        at_least(f"effective weights ({end})", size, 100, 15, few),
        at_most(f"Pareto k ({end})", tail, 0.7, np.inf, heavy),
    ]


def check_error(context: Context) -> list[Check]:
    """Degrees of freedom behind the standard error of log Z; an error of zero (the base is the target) needs none."""
    if context.log_evidence is None:
        return []
    value, error, dof = context.log_evidence.value, context.log_evidence.standard_error, context.log_evidence.dof
    if not (np.isfinite(value) and np.isfinite(error)):
        dof = 0.0
    elif error == 0:
        dof = np.inf
    advice = "The error of log Z rests on too few independent pieces: run more or longer chains."
    return [at_least("degrees of freedom of the error", dof, 8, 3, advice)]
