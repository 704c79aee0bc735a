"""Did the moves behave: divergences and evaluations that were not numbers."""

import numpy as np

from thermocline.checks.check import Check, Context, at_most
from thermocline.estimators.chains import relative

LONG_STAY = 10  # moves
FEW_ARRIVED = 0.5  # share of climbs below which the density counts as one that they run off on
REFUSED = 0.1  # acceptance below which a move is as good as refused


def check_divergences(context: Context) -> list[Check]:
    """Share of moves whose energy error left the range an integrator can have."""
    share = float(context.draws.is_divergent.mean())
    advice = "Trajectories diverge where the density bends sharply: raise target_acceptance or reparametrise."
    return [at_most("divergent moves (share)", share, 0.01, 0.5, advice)]


def check_nonfinite(context: Context) -> list[Check]:
    """Share of moves rejected for a NaN or +inf."""
    share = float(context.draws.is_nonfinite.mean())
    advice = (
        "Moves met a NaN in the log density or its gradient, or overflowed, and were rejected: find where, and "
        "return -inf outside the support."
    )
    return [at_most("non-finite moves (share)", share, 0.01, 0.5, advice)]


def check_standstill(context: Context) -> list[Check]:
    """The share of the target's weight on draws of a chain that did not leave its place for more than ten moves.

    A corner too stiff for the step size is hardly ever entered, and not left once it is: its mass is then not known,
    and neither is the error. Divergences show it too, but only where the step is far too large.
    """
    weight = relative(context.draws.log_weight_target)[0]
    stuck = 0.0
    for positions, carried in zip(context.draws.position, weight, strict=True):
        stay = np.cumsum(np.append(True, np.any(np.diff(positions, axis=0) != 0, axis=1))) - 1
        stuck += np.bincount(stay, carried)[np.bincount(stay) > LONG_STAY].sum()
    advice = (
        "Chains stand still in some corner of the target, and so will seldom have found it: reparametrise (a centred "
        "hierarchy non-centred), or ask for smaller steps with tc.HMC(target_acceptance=0.99)."
    )
    return [at_most("weight at a standstill (share)", stuck / weight.size, 0.025, 0.5, advice)]


def check_runaways(context: Context) -> list[Check]:
    """Where ascents ran off, the density is unbounded: the share of the target's weight on draws refused a move.

    The way into such a neck leads through ever smaller scales. A step made for the rest of the target is refused at its
    mouth, long before a chain stands still, and the mass within is then not in the answer.
    """
    if context.share_arrived >= FEW_ARRIVED:
        return []
    weight = relative(context.draws.log_weight_target)[0]
    refused = float(weight[context.draws.acceptance < REFUSED].sum() / weight.sum())
    advice = (
        f"Of the ascents {1 - context.share_arrived:.0%} ran off without arriving anywhere, so the "
        "density is unbounded, as that of a centred hierarchy is, and moves are refused where it narrows: what lies "
        "beyond is not counted. Write the hierarchy non-centred, or ask for smaller steps with "
        "tc.HMC(target_acceptance=0.99)."
    )
    return [at_most("refused where ascents ran off (share)", refused, 0.02, 0.5, advice)]
