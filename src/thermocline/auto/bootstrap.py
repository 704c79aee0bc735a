"""The paper's iterative scheme (section 6): run, re-estimate mean, covariance and log Z, refit the Gaussian, repeat."""

from contextlib import closing

from thermocline.auto.black_box import after_pilot, first_knowledge, gaussian_of
from thermocline.bases import BaseFit
from thermocline.engine.progress import reporter_for
from thermocline.evaluator import Evaluator
from thermocline.fits.moments import fit_moments
from thermocline.modes.local_fits import evened, mixture_of
from thermocline.support.precision import computing_in
from thermocline.target import Target, check_target


def fit_bootstrap(
    target: Target, *, seed: int = 0, num_rounds: int = 3, precision: str = "float64", progress: bool = False
) -> BaseFit:
    """A Gaussian with the target's moments, as a few short tempered runs learn them.

    The first base has the moments of the fits to all modes that starts have found. Moments are estimated from the
    draws of a run together with fresh draws of those fits, weighted for both: a mode that a run has lost still
    counts with its mass.
    """
    with computing_in(precision), closing(reporter_for(progress)) as reporter:
        evaluate = Evaluator(target, precision)
        check_target(evaluate.target)
        known, like = first_knowledge(evaluate, seed), evaluate.target.initial_position
        fits = mixture_of(evened(known.fits), like)
        fit = BaseFit(fit_moments(fits).base, known.pool.log_evidence)
        for round_index in range(num_rounds):
            known = after_pilot(known, evaluate, fit, seed + round_index + 1, reporter)
            fit = BaseFit(gaussian_of(known.pool, like), known.pool.log_evidence)
        spent, modes = known.num_gradients + evaluate.num_rows, (known.found, known.fits)
        return fit._replace(num_gradients=spent, modes=modes, story=known.story)
