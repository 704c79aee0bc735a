"""Do the draws know the base: the paper's test with its known moments (section 5), and more.

Necessary, not sufficient: a chain can know the base and have missed a mode of the target.
"""

import numpy as np

from thermocline.checks.check import P_LIMITS, Check, Context, at_least, corrected
from thermocline.estimators.chains import expectation
from thermocline.estimators.two_state_answers import agreement
from thermocline.support.tails import normal_tail, student_log_tail

LAW_POINTS = (0.1, 0.3, 0.5, 0.7, 0.9)
QUARTILES = (0.25, 0.5, 0.75)
DECIMALS = {"float64": 6, "float32": 3}  # of r; where base and target are equal, all beyond them is rounding
MOST_COORDINATES = 1000


def check_base_moments(context: Context) -> list[Check]:
    """Do the draws, weighted for the base, have the base's own mean and quartiles?

    Of every coordinate, or 1000 evenly spaced ones, with Bonferroni's correction: the mean where the base states it,
    and quartiles of fresh draws, for the error of a variance is not to be trusted where tails may be heavy.
    """
    if not (context.has_evidence and context.is_joint):
        return []
    supported = np.isfinite(context.base.log_ratio) | (context.log_support.value == 0)
    mean, log_weight, p_values = context.base.mean, context.draws.log_weight_base, []
    number = context.base.position.shape[1]
    for i in range(0, number, -(-number // MOST_COORDINATES) or 1):
        values = context.draws.position[..., i]
        if mean is not None and context.log_support.value == 0:
            p_values.append(_p_value(values - mean[i], log_weight, 0.0, 0.0))
        p_values += _law_p_values(values, log_weight, context.base.position[supported, i], QUARTILES)
    advice = "The draws do not reproduce the base's own moments: chains have not explored the path; draw more."
    return [at_least("base moments (p)", corrected(p_values), *P_LIMITS, advice)]


def check_base_ratio(context: Context) -> list[Check]:
    """Do the draws, weighted for the base, see the density of target over base as fresh draws of the base do?

    At five quantiles of the log ratio.
    """
    if not (context.has_evidence and context.is_joint):
        return []
    supported = np.isfinite(context.base.log_ratio) | (context.log_support.value == 0)
    both = context.draws.log_ratio, context.base.log_ratio[supported]
    decimals = DECIMALS[both[0].dtype.name]
    values, fresh = (np.round(r.astype(float), decimals) for r in both)
    p_values = _law_p_values(values, context.draws.log_weight_base, fresh, LAW_POINTS)
    advice = "The draws, weighted for the base, see another ratio of target to base than fresh draws do: draw more."
    return [at_least("log ratio under the base (p)", corrected(p_values), *P_LIMITS, advice)]


def check_states(context: Context) -> list[Check]:
    """Do the base's own draws and the chains give the same log Z?

    Asked where the weights of the former have a variance.
    """
    if context.states is None:
        return []
    both = agreement(context.states)
    if not both.is_trusted:
        return []
    p_value = 2 * normal_tail(abs(both.difference.z_score(0.0)))
    advice = (
        "Draws of the base and chains give different log Z: the base misses a region that chains have found, or chains "
        "have not settled. Draw more, or fit a base that covers the target."
    )
    return [at_least("base and chains agree on log Z (p)", p_value, *P_LIMITS, advice)]


def check_lower_bound(context: Context) -> list[Check]:
    """Is log Z above the bound that fresh draws of the base give?

    E_base[r] + log zeta <= log Z, up to the bound's own error.
    """
    if context.log_evidence is None or not np.isfinite(context.base.log_ratio).all():
        return []
    log_ratio, evidence = context.base.log_ratio, context.log_evidence
    error = np.hypot(log_ratio.std() / np.sqrt(log_ratio.size), evidence.standard_error)
    excess = (log_ratio.mean() + context.log_zeta - evidence.value) / error if error > 0 else 0.0
    advice = "log Z lies below a bound that fresh base draws give: the chains have lost a part of the target."
    return [at_least("evidence above its lower bound (p)", float(normal_tail(excess)), *P_LIMITS, advice)]


def _law_p_values(
    values: np.ndarray, log_weight: np.ndarray, fresh: np.ndarray, probabilities: tuple[float, ...]
) -> list[float]:
    """Weighted shares below quantiles of fresh draws, against the shares of the fresh draws themselves."""
    p_values = []
    for point in np.quantile(fresh, probabilities, method="lower"):
        share = float(np.mean(fresh <= point))
        error = np.sqrt(share * (1 - share) / fresh.size)
        p_values.append(_p_value((values <= point).astype(float), log_weight, share, error))
    return p_values


def _p_value(values: np.ndarray, log_weight: np.ndarray, known: float, known_error: float) -> float:
    """Two-sided p-value of a weighted mean against a known one."""
    estimate = expectation(values.astype(float), log_weight.astype(float))  # of ones it is one, in any precision
    error = np.hypot(estimate.standard_error, known_error)
    if error == 0 or np.isclose(estimate.value, known, rtol=1e-9, atol=0):
        return 1.0
    return float(2 * np.exp(student_log_tail(abs(estimate.value - known) / error, max(estimate.dof, 1))))
