"""Do replicas meet: how often neighbours in temperature exchange their places."""

from thermocline.checks.check import Check, Context, at_most
from thermocline.estimators.stages import has_stages, swap_rejections


def check_swaps(context: Context) -> list[Check]:
    """The pair of neighbours that swaps least often."""
    if not has_stages(context.draws):
        return []
    return [
        at_most(
            "swaps rejected (worst pair)",
            float(swap_rejections(context.draws).max()),
            0.9,
            0.99,
            "Two neighbouring temperatures hardly ever exchange replicas: use more of them, or warm up longer.",
        )
    ]
