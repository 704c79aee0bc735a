"""Did the chains agree: R-hat, effective sizes, and halves against each other."""

import numpy as np

from thermocline.checks.check import P_LIMITS, Check, Context, at_least, at_most
from thermocline.estimators.batches import Batches, batches_for, disagreement_p_value
from thermocline.estimators.chains import influence_on_log_ratio, log_ratio
from thermocline.estimators.convergence import difference_p_value, effective_size, pseudo_values, r_hat
from thermocline.records import Draws

R_HAT_LIMITS = 1.1, 1.3  # of many short chains: with m half-chains R-hat is near sqrt(1 + m/ESS) at best
SIZE_LIMITS = 100, 25


def _quantities(context: Context) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """(values, log weights) to be followed, by name."""
    draws = context.draws
    equal = np.zeros_like(draws.log_ratio)
    followed = {name: (values, draws.log_weight_target) for name, values in context.parameters.items()}
    finite = np.where(np.isfinite(draws.log_ratio), draws.log_ratio, np.nan)
    followed["log ratio"] = np.where(np.isnan(finite), np.nanmin(finite), finite), equal
    if context.has_evidence:
        followed["beta"] = draws.inverse_temperature, equal
    return followed


def check_r_hat(context: Context) -> list[Check]:
    """The worst R-hat of any parameter (weighted for the target), of r and of beta."""
    values = {name: r_hat(pseudo_values(*pair)) for name, pair in _quantities(context).items()}
    worst = max(values, key=lambda name: np.nan_to_num(values[name], nan=np.inf))
    advice = f"Chains disagree about {worst}: draw more, or suspect a mode that some chains have not found."
    return [at_most(f"R-hat ({worst})", values[worst], *R_HAT_LIMITS, advice)]


def check_effective_size(context: Context) -> list[Check]:
    """The smallest effective number of draws, likewise."""
    values = {name: effective_size(*pair, context.batches) for name, pair in _quantities(context).items()}
    worst = min(values, key=lambda name: np.nan_to_num(values[name], nan=0.0))
    advice = f"Too few independent draws of {worst}: draw more, or lengthen the trajectories."
    return [at_least(f"effective size ({worst})", values[worst], *SIZE_LIMITS, advice)]


def check_agreement(context: Context) -> list[Check]:
    """Log Z from different chains, and from the two halves of every chain."""
    if not context.has_evidence:
        return []
    draws, checks = context.draws, []
    if draws.log_ratio.shape[0] >= 4:
        p_value = _between_chains_p_value(influence_on_log_ratio(draws), context.batches)
        advice = "Chains give different log Z: they have not explored the same modes."
        checks.append(at_least("chains agree on log Z (p)", p_value, *P_LIMITS, advice))
    half = draws.log_ratio.shape[1] // 2
    parts = slice(half), slice(half, None)
    first, second = (log_ratio(Draws(*(leaf[:, part] for leaf in draws))) for part in parts)
    exact = max(first.standard_error, second.standard_error) < 1e-9  # base and target equal: only rounding differs
    p_value = 1.0 if exact else difference_p_value(first, second)
    advice = "The first half of the draws gives another log Z than the second: warm up longer."
    return [*checks, at_least("halves agree on log Z (p)", p_value, *P_LIMITS, advice)]


def _between_chains_p_value(influence: np.ndarray, batches: Batches | None) -> float:
    """Whether whole chains differ by more than the batches within them, halves at least."""
    num_chains, num_draws = influence.shape
    pieces = max(len((batches or batches_for(influence)).edges) - 1, 2)
    batches = Batches(np.linspace(0, num_draws, pieces + 1).astype(int), num_chains)
    return disagreement_p_value(batches.sums(influence) * (pieces / num_draws), num_chains)
