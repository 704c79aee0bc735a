"""Did the run go well: journeys along the path, chains that agree, weights that can be averaged, moves that behave."""

import numpy as np

from thermocline.checks.check import P_LIMITS, Check, Context, at_least, at_most
from thermocline.estimators import convergence, two_state_answers
from thermocline.estimators.batches import Batches, batches_for, disagreement_p_value, mean_error
from thermocline.estimators.chains import influence_on_log_ratio, log_ratio, relative
from thermocline.estimators.stages import has_stages, swap_rejections
from thermocline.records import Draws

R_HAT_LIMITS = 1.1, 1.3  # of many short chains: with m half-chains R-hat is near sqrt(1 + m/ESS) at best
SIZE_LIMITS = 100, 25
HEAVY, LIGHT_TAIL = 10.0, 0.05  # a tail of weights beyond ten times the mean that holds less hardly moves log Z
LONG_STAY = 10  # moves
FEW_ARRIVED = 0.5  # share of ascents below which the density counts as one that they run off on
REFUSED = 0.1  # acceptance below which a move is as good as refused
FARTHEST = 1e100  # below the highest log ratio, from which on squares would overflow


def check_round_trips(context: Context) -> list[Check]:
    """How many independent journeys between base and target does the answer rest on?"""
    if not context.has_evidence or not (context.is_joint or has_stages(context.draws)):
        return []
    advice = (
        "Chains travelled too seldom between base and target to know the error: "
        "draw more, or fit a base closer to the target."
    )
    return [at_least("returns to the base", convergence.returns(context.draws), 20, 5, advice)]


def check_occupancy(context: Context) -> list[Check]:
    """Was all of the path between base and target visited? Its least visited sixteenth, over an even share."""
    if context.log_prior is None or not context.is_joint:
        return []
    share = float(convergence.occupancy(context.draws, context.log_prior).min())
    advice = "A part of the path was hardly visited: warm up longer, or use a law that learns its bias."
    return [at_least("least visited part of the path", share, 0.05, 1e-3, advice)]


def check_swaps(context: Context) -> list[Check]:
    """Do neighbouring temperatures exchange often? The pair that does so least."""
    if not has_stages(context.draws):
        return []
    worst = float(swap_rejections(context.draws).max())
    advice = "Two neighbouring temperatures hardly ever exchange replicas: use more of them, or warm up longer."
    return [at_most("swaps rejected (worst pair)", worst, 0.9, 0.99, advice)]


def _quantities(context: Context) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """(values, log weights) to be followed, by name."""
    draws = context.draws
    equal = np.zeros_like(draws.log_ratio)
    followed = {name: (values, draws.log_weight_target) for name, values in context.parameters.items()}
    finite = np.where(np.isfinite(draws.log_ratio), draws.log_ratio, np.nan).astype(float)
    lowest = max(np.nanmin(finite), np.nanmax(finite) - FARTHEST)
    followed["log ratio"] = np.fmax(finite, lowest), equal
    if context.has_evidence:
        followed["beta"] = draws.inverse_temperature, equal
    return followed


def check_r_hat(context: Context) -> list[Check]:
    """Do the chains agree? R-hat is 1 where they do; the worst of any parameter, of the log ratio and of beta."""
    values = {name: convergence.r_hat(convergence.pseudo_values(*pair)) for name, pair in _quantities(context).items()}
    worst = max(values, key=lambda name: np.nan_to_num(values[name], nan=np.inf))
    advice = f"Chains disagree about {worst}: draw more, or suspect a mode that some chains have not found."
    return [at_most(f"R-hat ({worst})", values[worst], *R_HAT_LIMITS, advice)]


def check_effective_size(context: Context) -> list[Check]:
    """How many independent draws are these worth, of the quantity for which they are worth fewest?

    Of a parameter those of the base count too.
    """
    values = {name: convergence.effective_size(*pair, context.batches) for name, pair in _quantities(context).items()}
    if context.states is not None:
        for (name, chains), base in zip(context.parameters.items(), context.base.position.T, strict=False):
            pair, weights = (base[None], chains), context.states.log_weight_target
            values[name] = two_state_answers.effective_size(context.states, pair, weights)
    worst = min(values, key=lambda name: np.nan_to_num(values[name], nan=0.0))
    advice = f"Too few independent draws of {worst}: draw more, or lengthen the trajectories."
    return [at_least(f"effective size ({worst})", values[worst], *SIZE_LIMITS, advice)]


def check_agreement(context: Context) -> list[Check]:
    """Do different chains, and the two halves of all chains, give one log Z?"""
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
    p_value = 1.0 if exact else convergence.difference_p_value(first, second)
    advice = "The first half of the draws gives another log Z than the second: warm up longer."
    return [*checks, at_least("halves agree on log Z (p)", p_value, *P_LIMITS, advice)]


def _between_chains_p_value(influence: np.ndarray, batches: Batches | None) -> float:
    """Whether whole chains differ by more than the batches within them, halves at least."""
    num_chains, num_draws = influence.shape
    pieces = max(len((batches or batches_for(influence)).edges) - 1, 2)
    batches = Batches(np.linspace(0, num_draws, pieces + 1).astype(int), num_chains)
    return disagreement_p_value(batches.sums(influence) * (pieces / num_draws), num_chains)


def check_weights(context: Context) -> list[Check]:
    """Do enough draws carry weight, and is the mean of the weights known? Not where Pareto k is above 0.7.

    The effective number is after autocorrelation; at both ends of the path. Where the base's own draws count, they
    are the base's end, and chains need not know it.
    """
    if not context.has_evidence:
        return []
    checks = []
    for end in ("target", "base") if context.states is None else ("target",):
        log_weight = getattr(context.draws, f"log_weight_{end}")
        error, _ = mean_error(relative(log_weight)[0])
        size = min(error**-2 if error > 0 else np.inf, float(log_weight.size))
        few = f"Few draws carry the weight of the {end}: draw more, or fit a base closer to the target."
        checks.append(at_least(f"effective weights ({end})", size, 100, 15, few))
        tail = -np.inf if convergence.heavy_share(log_weight, HEAVY) < LIGHT_TAIL else convergence.pareto_k(log_weight)
        heavy = (
            f"The weights of the {end} have a heavy tail, so their mean may not settle: "
            "use a base with heavier tails or closer to the target."
        )
        checks.append(at_most(f"Pareto k ({end})", tail, 0.7, np.inf, heavy))
    return checks


def check_error(context: Context) -> list[Check]:
    """Is the error of log Z known? It is where it rests on enough independent pieces.

    An error of zero (the base is the target) needs none.
    """
    if context.log_evidence is None:
        return []
    error, dof = context.log_evidence.standard_error, context.log_evidence.dof
    is_known = np.isfinite(context.log_evidence.value + error)
    dof = 0.0 if not is_known else np.inf if error == 0 else dof
    advice = "The error of log Z rests on too few independent pieces: run more or longer chains."
    return [at_least("degrees of freedom of the error", dof, 8, 3, advice)]


def check_divergences(context: Context) -> list[Check]:
    """How often does a move fail because the density bends too sharply for its steps?"""
    share = float(context.draws.is_divergent.mean())
    if np.isnan(share):
        return []
    advice = "Trajectories diverge where the density bends sharply: raise target_acceptance or reparametrise."
    return [at_most("divergent moves (share)", share, 0.01, 0.5, advice)]


def check_nonfinite(context: Context) -> list[Check]:
    """How often does a move meet a NaN, or overflow, and is rejected?"""
    share = float(context.draws.is_nonfinite.mean())
    if np.isnan(share):
        return []
    advice = (
        "Moves met a NaN in the log density or its gradient, or overflowed, and were rejected: find where, and "
        "return -inf outside the support."
    )
    return [at_most("non-finite moves (share)", share, 0.01, 0.5, advice)]


def check_stuck(context: Context) -> list[Check]:
    """How much of the answer rests on chains that did not leave their place for more than ten moves?

    A corner too stiff for the step size is hardly ever entered, and not left once it is: its mass is then not known,
    and neither is the error. Divergences show it too, but only where the step is far too large.
    """
    weight = relative(context.draws.log_weight_target)[0]
    stuck = 0.0
    for positions, carried in zip(context.draws.position, weight, strict=True):
        stay = np.cumsum(np.append(True, np.any(np.diff(positions, axis=0) != 0, axis=1))) - 1
        stuck += np.bincount(stay, carried)[np.bincount(stay) > LONG_STAY].sum()
    advice = (
        "Chains are stuck in some corner of the target, and so will seldom have found it: reparametrise (a centred "
        "hierarchy non-centred). Smaller steps may silence this check without curing the answer."
    )
    return [at_most("weight on stuck chains (share)", stuck / weight.size, 0.025, 0.5, advice)]


def check_unbounded(context: Context) -> list[Check]:
    """How much of the answer rests on draws that were refused a move, where the density is unbounded?

    The way into such a neck leads through ever smaller scales. A step made for the rest of the target is refused at its
    mouth, long before a chain stands still, and the mass within is then not in the answer. Where the density is zero
    somewhere, ascents end at edges instead, beyond which moves are refused as they should be.
    """
    if context.share_arrived >= FEW_ARRIVED or np.isneginf(context.base.log_ratio).any():
        return []
    weight = relative(context.draws.log_weight_target)[0]
    refused = float(weight[context.draws.acceptance < REFUSED].sum() / weight.sum())
    advice = (
        f"Of the ascents {1 - context.share_arrived:.0%} ran off without arriving anywhere, so the "
        "density is unbounded, as that of a centred hierarchy is, and moves are refused where it narrows: what lies "
        "beyond is not counted. Write the hierarchy non-centred. Smaller steps may silence this check without curing "
        "the answer."
    )
    return [at_most("moves refused where unbounded (share)", refused, 0.02, 0.5, advice)]
