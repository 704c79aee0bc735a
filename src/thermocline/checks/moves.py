"""Did the moves behave: divergences and evaluations that were not numbers."""

from thermocline.checks.check import Check, Context, at_most


def check_divergences(context: Context) -> list[Check]:
    """Share of moves whose energy error left the range an integrator can have."""
    share = float(context.draws.is_divergent.mean())
    return [
        at_most(
            "divergent moves (share)",
            share,
            0.01,
            0.5,
            "Trajectories diverge where the density bends sharply: raise target_acceptance or reparametrise.",
        )
    ]


def check_nonfinite(context: Context) -> list[Check]:
    """Share of moves rejected for a NaN or +inf."""
    share = float(context.draws.is_nonfinite.mean())
    return [
        at_most(
            "non-finite moves (share)",
            share,
            0.01,
            0.5,
            "Moves met a NaN in the log density or its gradient, or overflowed, and were rejected: find where, and "
            "return -inf outside the support.",
        )
    ]
