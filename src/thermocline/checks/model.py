"""Is log Z the model's evidence? What the front end could tell from the model itself."""

from thermocline.checks.check import Check, Context


def check_model(context: Context) -> list[Check]:
    """One check for each caveat; draws of the posterior are not in doubt."""
    if not context.has_evidence:
        return []
    return [Check("log Z is the evidence", 0.0, 1.0, "suspect", caveat) for caveat in context.caveats]


def without_caveats(checks: tuple[Check, ...]) -> tuple[Check, ...]:
    """What speaks against the run itself."""
    return tuple(check for check in checks if check.name != "log Z is the evidence")
