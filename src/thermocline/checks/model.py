"""What is known of the model: whether the method has its evidence and is exact, its tails, and its modes."""

import numpy as np

from thermocline.checks.check import P_LIMITS, Check, Context, at_least
from thermocline.estimators.convergence import APPRECIABLE, tours
from thermocline.records import Mode
from thermocline.support.tails import normal_tail
from thermocline.target import describe

VISIT_LIMITS = 10, 3
TOUR_LIMITS = 3, 1.5
LEAST_POWER = 1.02  # with which a density falls that can be integrated
KNOWN = 0.5  # relative error up to which a mass by importance sampling is one


def check_has_evidence(context: Context) -> list[Check]:
    """Does the method estimate log Z? Where it does not, only chains that disagree can show a missed mode."""
    if context.has_evidence:
        return []
    why = "This method draws from the target alone (beta = 1) and estimates no evidence; use a tempered method for one."
    few = "Fewer than four untempered chains cannot show that a mode was missed: run more of them, or temper."
    num_chains = context.draws.log_ratio.shape[0]
    return [Check("evidence", np.nan, np.nan, "ok", why), at_least("untempered chains", num_chains, 4, 1, few)]


def check_method(context: Context) -> list[Check]:
    """Would an endless run be right? Some methods are off by more than chance, however long they run."""
    return [Check("method is exact", 0.0, 1.0, "suspect", bias) for bias in context.biases]


def check_modes(context: Context) -> list[Check]:
    """Does log Z cover the modes that the search found, and was each that matters visited often enough?

    The masses of all known modes, which do not depend on visits, are held against the evidence of the chains.
    """
    checks, known = [], context.log_known_mass
    if context.modes and context.log_evidence and known and np.isfinite(known.value + known.standard_error):
        error = np.hypot(known.standard_error, context.log_evidence.standard_error)
        excess = (known.value - context.log_evidence.value) / error if error > 0 else 0.0
        lost = max(context.modes, key=lambda mode: np.nan_to_num(mode.mass_by_importance.value) - mode.mass.value)
        advice = (
            f"The known modes weigh more than the chains' log Z: {_named(lost)} has mass "
            f"{lost.mass_by_importance.value:.3g} by its own fit and {lost.mass.value:.3g} from the chains, which have "
            "lost it: give a base that covers it (tc.fit_auto)."
        )
        checks.append(at_least("log Z covers the known modes (p)", float(normal_tail(excess)), *P_LIMITS, advice))
    heavy = [mode for mode in context.modes if _mass(mode) >= APPRECIABLE]
    if heavy:
        rarest = min(heavy, key=lambda mode: mode.visits)
        advice = (
            f"{_named(rarest)} holds about {_mass(rarest):.0%} of the target, but chains came there only "
            f"{rarest.visits} times: draw more, or give a base that covers it (tc.fit_auto)."
        )
        checks.append(at_least(f"visits of {rarest.name}", rarest.visits, *VISIT_LIMITS, advice))
    return checks


def check_thin_base(context: Context) -> list[Check]:
    """Does what lies where the base is thin rest on more than one or two visits of a chain?"""
    if context.log_evidence is None or not context.is_joint:
        return []
    share, number = tours(context.draws, context.log_evidence.value - context.log_zeta)
    if share < APPRECIABLE:
        return []
    advice = (
        f"{share:.0%} of the target lies where the base is thin, and its weight there rests on few visits of chains: "
        "draw more, or give a base that covers it (tc.fit_auto)."
    )
    return [at_least("visits where the base is thin", number, *TOUR_LIMITS, advice)]


def check_tail_index(context: Context) -> list[Check]:
    """Does the density fall fast enough, far out, for its integral to exist?

    Faster than 1/|x| along every axis of the draws, and than |x|^-D all around.
    """
    if context.tail_index is None or not context.tail_index.axis.size:
        return []
    if context.tail_index.axis.any():
        name = list(context.parameters)[int(np.argmax(np.abs(context.tail_index.axis)))]
        where = f"Far out along {name} the density does not fall faster than 1/|{name}|"
    else:
        where = f"Far out the density does not fall faster than |x|^-{context.tail_index.axis.size}, its dimension"
    advice = f"{where}: the target seems improper, and then has no evidence and no posterior. Give it a proper prior."
    return [at_least("tail index of the density", context.tail_index.power, LEAST_POWER, LEAST_POWER, advice)]


def _mass(mode: Mode) -> float:
    """The mass from the chains or by importance sampling, whichever is larger; by Laplace where the latter is unknown.

    A fit whose draws miss its mode tells nothing of its mass, and a mode that chains have not been to may then be
    anything: its curvature is the only word on it.
    """
    other = mode.mass_by_importance
    is_known = np.isfinite(other.value) and other.standard_error <= KNOWN * other.value
    return max(mode.mass.value, other.value if is_known else np.nan_to_num(mode.mass_by_laplace))


def _named(mode: Mode) -> str:
    return f"{mode.name} ({describe(mode.location, longest=3)})"
