"""`fit_auto`: from a target alone to a base that covers its modes; the default of `sample`."""

from typing import Any

import numpy as np

from thermocline.auto.design import Designer
from thermocline.auto.many_modes import fit_many_modes
from thermocline.auto.pilots import ROOM, pilot
from thermocline.bases import BaseFit, sampled_rows
from thermocline.engine.folder import Guarded
from thermocline.engine.progress import Reporter, reporter_for, watched
from thermocline.evaluator import Evaluator, checked_evaluator
from thermocline.fits.advi import fit_advi
from thermocline.modes.find import Found, Search
from thermocline.modes.local import LocalModes, local_modes
from thermocline.modes.peaks import Peak, massive, peak_of
from thermocline.support.budget import Budget, BudgetSpentError
from thermocline.support.errors import ThermoclineError
from thermocline.support.flat import ravelled
from thermocline.support.precision import computing_in
from thermocline.target import Target, describe

MOST_PILOTS = 3
NUM_STARTS, NUM_PRIOR = 15, 4096  # draws of the prior from which ascents start, and of all that are looked at
STREAM = 0xF17  # of random numbers


def fit_auto(
    target: Target,
    *,
    seed: int = 0,
    target_error: float = 0.05,
    max_evaluations: float | None = None,
    max_seconds: float | None = None,
    precision: str = "float64",
    progress: bool = False,
) -> BaseFit:
    """A base that covers the modes of the target: a mixture of Student's t, found by looking, ascending and weighing.

    Where its own draws count for little, short tempered runs add what they find. With a limit on evaluations or
    seconds the search takes at most half of it, and its record says so where it was cut short.
    """
    with Guarded(), computing_in(precision), watched(reporter_for(progress)) as reporter:
        evaluate = checked_evaluator(target, precision, Budget.of(max_evaluations, max_seconds), seed)
        return find_base(evaluate, seed, target_error, reporter)


def find_base(evaluate: Evaluator, seed: int, target_error: float, reporter: Reporter) -> BaseFit:
    """Search, design, and pilots while the design is poor."""
    search = searched(evaluate, seed, evaluate.initial_position[None], reporter)
    designer = Designer(evaluate, np.random.default_rng([seed, STREAM, 1]), search, target_error)
    num_pilots = 0
    try:
        with evaluate.within(evaluate.budget.half()):
            if search.found().has_many:
                return fit_many_modes(evaluate, search, seed, target_error, reporter)
            reporter.phase("fitting the base", None)
            designer.first()
            designer.cover()
            reporter.figures(lambda: f"{designer.best.share:.0%} of its draws count")
            while num_pilots < MOST_PILOTS and not designer.suffices:
                num_pilots += 1
                if not pilot(seed, num_pilots, designer, reporter):
                    break
                designer.cover()
    except BudgetSpentError as limit:
        search.cut_short_by = str(limit)
    search.raised(designer.pool.position, designer.pool.log_target)
    design, found = designer.best, search.found()
    base = design.mixture.base(evaluate.target.initial_position, room=ROOM if num_pilots else 1)
    pilots = f"{num_pilots} short tempered run{'' if num_pilots == 1 else 's'} helped to fit the base"
    share = f"{design.share:.0%}" if design.share >= 0.01 else "less than 1%"
    counted = f"{pilots}; {share} of its own draws count."
    modes: LocalModes = local_modes(found, design.mixture)
    return BaseFit(base, design.log_evidence, evaluate.num_rows, modes=modes, notes=(told(found), counted))


def searched(
    evaluate: Evaluator, seed: int, starts: np.ndarray, reporter: Reporter, rows: np.ndarray | None = None
) -> Search:
    """The search for modes, which looks at given rows too; where nothing is found at all, from a variational fit."""
    reporter.phase("searching for modes", None)
    prior, given = evaluate.target.prior, evaluate.target.known_modes
    rows = starts[:0] if rows is None else rows
    if prior is not None:
        drawn = prior_rows(prior, seed)
        starts, rows = np.concatenate([starts, drawn[:NUM_STARTS]]), np.concatenate([drawn[NUM_STARTS:], rows])
    if given is not None:
        starts = np.concatenate([starts, np.stack([ravelled(position) for position in given])])
    search = Search(evaluate, np.random.default_rng([seed, STREAM]), reporter, rows)
    try:
        with evaluate.within(evaluate.budget.half()):
            search.first(starts[: evaluate.sized(len(starts))])
            if not search.peaks:
                search.note([variational_peak(evaluate, seed)])
            search.go_on()
    except BudgetSpentError as limit:
        search.cut_short_by = str(limit)
    if search.peaks and not massive(search.peaks):  # so high that nothing can be told from it
        highest = max(search.peaks, key=lambda peak: peak.log_density)
        where = describe(evaluate.unravel(highest.highest), longest=3)
        raise ThermoclineError(
            f"the log density rises without end ({highest.log_density:.4g} at {where}): the target is improper, or "
            "its sign is wrong. Give every parameter a proper prior, and return the log density, not its negative."
        )
    if not search.peaks:
        raise ThermoclineError(
            f"{search.cut_short_by} is too small: {evaluate.num_rows:,} evaluations did not lead to an optimum and its "
            f"curvature, which takes some {8 * evaluate.dimension + 256:,}."
        )
    return search


def prior_rows(prior: Any, seed: int) -> np.ndarray:
    """The draws of the prior that the search looks at."""
    return sampled_rows(prior, [seed, STREAM, 2], NUM_PRIOR)


def variational_peak(evaluate: Evaluator, seed: int) -> Peak:
    """ADVI's fit, for a density that ascents can make nothing of."""
    fit = fit_advi(evaluate.target, seed=seed, precision=evaluate.precision)
    mean, scale = ravelled(fit.base.mean), np.asarray(fit.base.scale_tril)
    if not (np.isfinite(mean).all() and np.isfinite(scale).all()):
        mean, scale = evaluate.initial_position, np.ones(evaluate.dimension)
    peak = peak_of(mean, float(evaluate.values(mean[None])[0]), np.diag(scale), "variational fit")
    return peak._replace(highest=mean.copy())  # it is no optimum


def told(found: Found) -> str:
    """What the search found, in a sentence."""
    ascents, cut = found.record.num_ascents, found.record.cut_short_by
    words = f"Found {found.num_modes} mode{'' if found.num_modes == 1 else 's'} before the run (ascents: {ascents:,})"
    return f"{words}{f'; the search was cut short by {cut}' if cut else ''}."
