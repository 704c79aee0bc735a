"""`fit_local_mixture`: a Gaussian for every mode that a search found (eq. variational-mixture-approx)."""

import numpy as np

from thermocline.bases import BaseFit
from thermocline.evaluator import Evaluator
from thermocline.fits.importance import adapt_by_importance
from thermocline.modes.local_fits import do_overlap, local_fits, mixture_of, objective
from thermocline.modes.search import find_modes, spread_starts
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import computing_in
from thermocline.target import Target, check_target

FITTING = 0x10CA  # its stream of random numbers


def fit_local_mixture(target: Target, *, seed: int = 0, importance: bool = True, precision: str = "float64") -> BaseFit:
    """The mixture of Laplace approximations of all modes that many starts have found (eq. variational-mixture-approx).

    By default log zeta and the weights are those of importance sampling from the fits. With `importance=False` they
    are the paper's: weights in proportion to exp of the fits' own variational objectives, and log zeta the log of
    their sum, a lower bound where the fits do not overlap. Such a base is multimodal and needs jumps.
    """
    with computing_in(precision):
        evaluate = Evaluator(target, precision)
        check_target(evaluate.target)
        found = find_modes(evaluate, spread_starts(evaluate, seed))
        fits = local_fits(found)
        if not fits:
            raise ThermoclineError(
                f"none of {found.num_starts} starts reached an optimum: the log density may be unbounded, as that of "
                "a centred hierarchy is; use tc.fit_advi or tc.fit_auto."
            )
        dropped = found.num_modes - len(fits)
        generator, like = np.random.default_rng([seed, FITTING]), evaluate.target.initial_position
        story = f"{found.num_starts} starts found {found.num_modes} modes; {dropped} of the lightest were dropped."
        if importance:
            mixture, pool = adapt_by_importance(generator, evaluate, mixture_of(fits, like))
            log_zeta, kind = pool.log_evidence, "estimate"
        else:
            bounds = [objective(generator, evaluate, fit) for fit in fits]
            fits = [fit._replace(log_mass=bound) for fit, bound in zip(fits, bounds, strict=True)]
            mixture = mixture_of(fits, like)
            log_zeta, kind = float(np.logaddexp.reduce(bounds)), "estimate" if do_overlap(fits) else "lower bound"
        return BaseFit(mixture, log_zeta, evaluate.num_rows, kind, modes=(found, fits), story=(story,))
