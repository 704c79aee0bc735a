"""What the verdict on many targets together rests on: every target's checks, and what only their sum can show."""

import numpy as np

from thermocline.checks.check import P_LIMITS, Check, at_least, at_most, corrected, verdict_of
from thermocline.estimators.convergence import difference_p_value
from thermocline.records import Estimate

BIAS_LIMITS = 0.5, 2.0  # of the joint log evidence, in its own errors
WHERE = "summary() names the worst, and results[i].summary() says why."


def check_targets(each: list[tuple[Check, ...]]) -> list[Check]:
    """How many targets are not ok, whatever the reason that chance alone does not give to one among many."""
    verdicts = [verdict_of(tuple(check for check in checks if not is_chance(check))) for checks in each]
    p_values = [check.value for checks in each for check in checks if is_p_value(check)]
    beyond = f"A target disagrees with its base, or its chains with each other, beyond chance: {WHERE}"
    return [
        at_most("targets that failed", verdicts.count("failed"), 0, -1, f"Some targets cannot be used: {WHERE}"),
        at_most("targets that are suspect", verdicts.count("suspect"), 0, len(each), f"Look at some targets: {WHERE}"),
        at_least("smallest p of all targets, corrected", corrected(p_values), *P_LIMITS, beyond),
    ]


def is_p_value(check: Check) -> bool:
    return check.name.endswith("(p)")


def is_chance(check: Check) -> bool:
    """Whether a hundred sound targets will have some of these.

    P-values, which Bonferroni's correction looks after; and few degrees of freedom of one error, to which a target
    in a hundred is brought by a test of its chains at the level 0.01: there the sum has an error of its own.
    """
    return is_p_value(check) or (check.name == "degrees of freedom of the error" and check.status == "suspect")


def check_sum(joint: Estimate, first: Estimate, second: Estimate, bias: Estimate) -> list[Check]:
    """The joint log evidence: its error, what the halves of all chains say of it, and its bias."""
    dof, p_value = (joint.dof, difference_p_value(first, second)) if np.isfinite(joint.value) else (0.0, np.nan)
    significant = max(abs(bias.value) - 2 * bias.standard_error, 0.0)
    in_errors = significant / joint.standard_error if significant > 0 else 0.0
    few = "The error of the joint log Z rests on too few independent pieces: run more or longer chains."
    halves = "The first halves of all chains give another sum than the second: warm up longer."
    biased = "The estimator's bias, which adds up over targets, is not small against the joint error: draw more."
    return [
        at_least("degrees of freedom of the joint error", dof, 8, 3, few),
        at_least("halves agree on the joint log Z (p)", p_value, *P_LIMITS, halves),
        at_most("bias of the joint log Z, in its errors", in_errors, *BIAS_LIMITS, biased),
    ]
