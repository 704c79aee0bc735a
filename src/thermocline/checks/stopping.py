"""When may a run end: once its error is small, and nothing that more draws can cure speaks against it."""

from thermocline.checks import base, run
from thermocline.checks.check import Context
from thermocline.engine.plan import Look
from thermocline.estimators.convergence import are_explored, tours

CURABLE = (
    run.check_round_trips,
    run.check_r_hat,
    run.check_effective_size,
    run.check_agreement,
    run.check_weights,
    run.check_error,
    base.check_base_moments,
    base.check_base_ratio,
    base.check_states,
    base.check_lower_bound,
)
LONG = 2048  # draws a chain, from which on what checks say is left to the verdict
FEWEST_TOURS = 5  # where the base is thin, of a run of a fair length
FAIR_LENGTH = 4000  # draws a chain


def is_sound(target_error: float, look: Look) -> bool:
    """Whether the checks of the run pass, and what lies beyond the base's reach rests on many tours.

    A short run that has met none of the longest tours has a small error and is low (docs/choosing.md), and the base's
    own draws know nothing of that. What holds less than the error does not matter.
    """
    length, context = look.draws.log_ratio.shape[1], context_of(look)
    curable = CURABLE if look.has_law else (run.check_round_trips,)  # others have independent pieces of their own
    if length < LONG and not all(check.passed for ask in curable for check in ask(context)):
        return False
    level, error = look.log_evidence.value - look.log_zeta, float(look.log_evidence.standard_error)
    if not look.has_law or are_explored(look.draws, level, error):
        return True
    return length >= FAIR_LENGTH and tours(look.draws, level)[1] >= FEWEST_TOURS


def context_of(look: Look) -> Context:
    """Parameters have no names yet."""
    columns = look.draws.position.shape[-1]
    return Context(
        draws=look.draws,
        parameters={str(column): look.draws.position[..., column] for column in range(columns)},
        has_evidence=True,
        log_evidence=look.log_evidence,
        log_zeta=look.log_zeta,
        log_support=look.log_support,
        log_prior=None,
        base=look.base,
        is_joint=look.has_law,
        states=look.states,
    )
