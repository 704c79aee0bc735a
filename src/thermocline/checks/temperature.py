"""Did temperature mix: journeys along the path, and how evenly it was occupied."""

import numpy as np

from thermocline.checks.check import Check, Context, at_least
from thermocline.estimators.convergence import round_trips
from thermocline.estimators.log_partition import occupancy
from thermocline.estimators.stages import has_stages


def check_round_trips(context: Context) -> list[Check]:
    """Independent journeys are what a tempered answer rests on."""
    if not context.has_evidence or not (context.is_joint or has_stages(context.draws)):
        return []
    trips = round_trips(context.draws).sum()
    return [
        at_least(
            "round trips",
            trips,
            20,
            5,
            "Chains travelled too seldom between base and target to know the error: "
            "draw more, or fit a base closer to the target.",
        )
    ]


def check_occupancy(context: Context) -> list[Check]:
    """The least visited sixteenth of the path, relative to an even share."""
    if context.log_prior is None:
        return []
    share = float(occupancy(context.draws, context.log_prior).min())
    return [
        at_least(
            "occupancy of beta",
            share,
            0.05,
            1e-3,
            "A part of the path was hardly visited: warm up longer, or use a law that learns its bias.",
        )
    ]


def check_has_evidence(context: Context) -> list[Check]:
    """Says why there is no evidence, where there is none; then only chains can tell whether a mode was missed."""
    if context.has_evidence:
        return []
    why = "This method stays at beta = 1 and estimates no evidence; use a tempered method for one."
    few = "Fewer than four untempered chains cannot show that a mode was missed: run more of them, or temper."
    num_chains = context.draws.log_ratio.shape[0]
    return [Check("evidence", np.nan, np.nan, "ok", why), at_least("untempered chains", num_chains, 4, 1, few)]
