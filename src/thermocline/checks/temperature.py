"""Did temperature mix: journeys along the path, how evenly it was occupied, and whether replicas meet."""

from thermocline.checks.check import Check, Context, at_least, at_most
from thermocline.estimators.convergence import occupancy, round_trips
from thermocline.estimators.stages import has_stages, swap_rejections


def check_round_trips(context: Context) -> list[Check]:
    """Independent journeys are what a tempered answer rests on."""
    if not context.has_evidence or not (context.is_joint or has_stages(context.draws)):
        return []
    advice = (
        "Chains travelled too seldom between base and target to know the error: "
        "draw more, or fit a base closer to the target."
    )
    return [at_least("round trips", round_trips(context.draws).sum(), 20, 5, advice)]


def check_occupancy(context: Context) -> list[Check]:
    """The least visited sixteenth of the path, relative to an even share."""
    if context.log_prior is None or not context.is_joint:
        return []
    share = float(occupancy(context.draws, context.log_prior).min())
    advice = "A part of the path was hardly visited: warm up longer, or use a law that learns its bias."
    return [at_least("occupancy of beta", share, 0.05, 1e-3, advice)]


def check_swaps(context: Context) -> list[Check]:
    """The pair of neighbours in temperature that swaps least often."""
    if not has_stages(context.draws):
        return []
    worst = float(swap_rejections(context.draws).max())
    advice = "Two neighbouring temperatures hardly ever exchange replicas: use more of them, or warm up longer."
    return [at_most("swaps rejected (worst pair)", worst, 0.9, 0.99, advice)]
