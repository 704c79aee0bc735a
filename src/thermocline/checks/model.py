"""Is log Z the model's evidence, and is the method exact? What front end and method say of themselves."""

import numpy as np

from thermocline.checks.check import Check, Context, at_least


def check_has_evidence(context: Context) -> list[Check]:
    """Says why there is no evidence, where there is none; then only chains can tell whether a mode was missed."""
    if context.has_evidence:
        return []
    why = "This method stays at beta = 1 and estimates no evidence; use a tempered method for one."
    few = "Fewer than four untempered chains cannot show that a mode was missed: run more of them, or temper."
    num_chains = context.draws.log_ratio.shape[0]
    return [Check("evidence", np.nan, np.nan, "ok", why), at_least("untempered chains", num_chains, 4, 1, few)]


def check_model(context: Context) -> list[Check]:
    """One check for each caveat; draws of the posterior are not in doubt."""
    caveats = context.caveats if context.has_evidence else ()
    return [Check("log Z is the evidence", 0.0, 1.0, "suspect", caveat) for caveat in caveats]


def without_caveats(checks: tuple[Check, ...]) -> tuple[Check, ...]:
    """What speaks against the run itself."""
    return tuple(check for check in checks if check.name != "log Z is the evidence")


def check_method(context: Context) -> list[Check]:
    """One check for each reason why the answer is off by more than chance, however long the run."""
    return [Check("method is exact", 0.0, 1.0, "suspect", bias) for bias in context.biases]
