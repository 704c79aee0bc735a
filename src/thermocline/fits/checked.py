"""What every fit begins with: an evaluator of a target that has been looked at."""

from thermocline.evaluator import Evaluator
from thermocline.support.precision import computing_in
from thermocline.target import Target, check_target


def checked_evaluator(target: Target, precision: str) -> Evaluator:
    """The target in `precision` on rows; an error with the reason if it has no density where it starts."""
    evaluate = Evaluator(target, precision)
    with computing_in(precision):
        check_target(evaluate.target)
    return evaluate
