"""Is the method exact? Some are known to be biased, and say so themselves."""

from thermocline.checks.check import Check, Context


def check_method(context: Context) -> list[Check]:
    """One check for each reason why the answer is off by more than chance, however long the run."""
    return [Check("method is exact", 0.0, 1.0, "suspect", bias) for bias in context.biases]
