"""Pilots: short tempered runs, where draws of a mixture do not suffice; what they find joins the pool."""

from typing import Any

import numpy as np

from thermocline.auto.design import FEW_ROUNDS, FIRST_DEGREES, Designer
from thermocline.bases.base import log_densities
from thermocline.engine.explore import Exploration, Lengths, explore, resampled
from thermocline.engine.progress import Part, Reporter
from thermocline.estimators.convergence import are_explored
from thermocline.fits.pool import Pool
from thermocline.fits.student_mixture import StudentMixture, cluster, clustered, em_fit_student
from thermocline.methods import GibbsTempering
from thermocline.paths.laws import log_masses
from thermocline.records import WeightedDraws
from thermocline.support.precision import cast, to_numpy

WARMUP = 300
LENGTHS = Lengths(num_chains=16, num_warmup=WARMUP, num_draws=300, most_draws=300)
CORRELATED = 0.1  # independent draws for which one of a chain counts
NUM_ASCENTS = 32  # from draws of the chains
NUM_CLUSTERS = 15  # components laid along a shape
ROOM = 16  # for components, of the bases of all pilots and of the run after them
WORTH_A_PILOT = 1.5  # times the effective share before
NUM_RESAMPLED = 4096


def pilot(seed: int, number: int, designer: Designer, reporter: Reporter) -> bool:
    """One pilot from the best design; where its chains do not get about, a mixture is laid along all that is known.

    Whether many more draws count then than do of what was the best, so that another may be worth it.
    """
    evaluate, design = designer.evaluate, designer.best
    evaluate.budget.check(LENGTHS.num_chains * (WARMUP + LENGTHS.num_draws), evaluate.rate)
    base = cast(design.mixture.base(evaluate.target.initial_position, room=ROOM), evaluate.precision)
    start = seed, evaluate.target, base, design.log_evidence
    options: dict[str, Any] = {"runner": evaluate.runner, "number": number}
    explored = explore(*start, GibbsTempering(), LENGTHS, Part(f"pilot {number}", reporter), **options)
    reporter.phase("fitting the base", None)
    designer.pool = join_chains(designer.pool, explored)
    evaluate.count(explored.outcome.num_gradients)
    rows = resampled(explored, seed, NUM_ASCENTS)
    designer.search.admit(designer.search.ascended(rows), "chains")
    designer.review()
    share, draws = designer.best.share, explored.outcome.draws
    if are_explored(draws, designer.pool.log_evidence - float(explored.path.log_zeta), designer.target_error):
        return False
    designer.rounds(shaped(designer.pool, seed), FEW_ROUNDS)
    return designer.best.share >= WORTH_A_PILOT * share


def join_chains(pool: Pool, explored: Exploration) -> Pool:
    """Draws of chains have the density base(x) N(r(x)) / C, and 1/C is the mean of 1/N over them."""
    draws, path, law = explored.outcome.draws, explored.path, explored.outcome.tuning.law
    assert law is not None, "pilots have a law of beta"
    base, like, log_zeta = to_numpy(path.base), path.target.initial_position, float(path.log_zeta)
    usable = np.isfinite(draws.log_ratio)
    log_weight = draws.log_weight_base[usable]
    log_constant = np.log(log_weight.size) - np.logaddexp.reduce(log_weight)

    def log_density(rows: np.ndarray, log_target: np.ndarray) -> np.ndarray:
        log_base = log_densities(base, rows, like)
        with np.errstate(invalid="ignore"):  # where both are nothing
            log_density = log_base + log_masses(law, log_target - log_zeta - log_base) - log_constant
        return np.where(np.isnan(log_density), -np.inf, log_density)

    rows = draws.position[usable]
    log_target = draws.log_ratio[usable] + log_zeta + log_densities(base, rows, like)
    return pool.joined_by(rows, log_target, CORRELATED * len(rows), log_density)


def shaped(pool: Pool, seed: int) -> StudentMixture:
    """Components laid along the pool, whatever its shape: arms, rings and necks are no modes."""
    generator = np.random.default_rng([seed, 0x5BA9])
    chosen = generator.choice(len(pool.log_target), NUM_RESAMPLED, p=pool.weight)
    rows = pool.position[chosen]
    draws = WeightedDraws(rows, np.full(len(rows), 1 / len(rows)), lambda row: row, None)
    first = clustered(draws, cluster(draws, NUM_CLUSTERS, seed, 0), FIRST_DEGREES)
    return em_fit_student(first, pool.position, pool.weight)
