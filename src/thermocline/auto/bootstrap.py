"""The paper's iterative scheme (section 6): run, re-estimate mean, covariance and log Z, refit the Gaussian, repeat."""


import numpy as np

from thermocline.auto.black_box import searched
from thermocline.auto.design import Designer, pooled_moments
from thermocline.auto.pilots import LENGTHS, join_chains
from thermocline.bases import BaseFit, Gaussian
from thermocline.engine.explore import explore
from thermocline.engine.folder import Guarded
from thermocline.engine.progress import reporter_for, watched
from thermocline.evaluator import Evaluator, checked_evaluator
from thermocline.fits.moments import shrunk
from thermocline.fits.pool import Pool
from thermocline.methods import GibbsTempering
from thermocline.support.flat import unravelled
from thermocline.support.precision import cast, computing_in
from thermocline.target import Target

STREAM = 0xB007  # of random numbers


def fit_bootstrap(
    target: Target, *, seed: int = 0, num_rounds: int = 3, precision: str = "float64", progress: bool = False
) -> BaseFit:
    """A Gaussian with the target's moments, as a few short tempered runs learn them.

    The first base has the moments of the mixture that draws of all modes found have been fitted to. Moments are
    estimated from the draws of all runs together with those of the mixture, weighted for all: a mode that a run has
    lost still counts with its mass.
    """
    with Guarded(), computing_in(precision), watched(reporter_for(progress)) as reporter:
        evaluate = checked_evaluator(target, precision, seed=seed)
        search = searched(evaluate, seed, evaluate.initial_position[None], reporter)
        designer = Designer(evaluate, np.random.default_rng([seed, STREAM]), search)
        designer.first()
        pool = designer.pool
        fit = gaussian_of(evaluate, pool)
        for index in range(num_rounds):
            base = cast(fit.base, precision)
            start = seed, evaluate.target, base, fit.log_zeta
            explored = explore(*start, GibbsTempering(), LENGTHS, reporter, number=index + 1)
            pool = join_chains(pool, explored)
            evaluate.count(explored.outcome.num_gradients)
            fit = gaussian_of(evaluate, pool)
        notes = (f"{num_rounds} runs; {len(search.peaks)} modes were found before them.",)
        return fit._replace(num_gradients=evaluate.num_rows, notes=notes)


def gaussian_of(evaluate: Evaluator, pool: Pool) -> BaseFit:
    """The Gaussian with the pool's mean and covariance."""
    mean, covariance = pooled_moments(pool)
    like = evaluate.target.initial_position
    base = Gaussian.from_covariance(unravelled(mean, like), shrunk(covariance, pool.num_effective))
    return BaseFit(base, pool.log_evidence)
