"""After a run: every mode that starts or chains have found, with its mass by importance sampling."""

import numpy as np

from thermocline.bases import BaseFit
from thermocline.engine.explore import Exploration, resampled
from thermocline.evaluator import Evaluator
from thermocline.fits.importance import adapt_by_importance, em_update
from thermocline.modes.local_fits import (
    MOST_COMPONENTS,
    LocalFit,
    evened,
    fit_of_mode,
    is_new,
    local_fits,
    mixture_of,
    moments,
    refitted,
)
from thermocline.modes.search import GROUP, Found, find_modes, spread_starts
from thermocline.modes.table import mode_masses
from thermocline.modes.tail_index import tail_index
from thermocline.records import ModeTable

SEARCHED = 0x5EA2  # stream of the search for a given base
MASSES = 0xCE45  # keeps these draws apart from those that the fits have learned from


def table_of_modes(seed: int, evaluate: Evaluator, fit: BaseFit, went: Exploration) -> ModeTable:
    """What is known of the modes after a run.

    A base that came without a search for modes gets one here, from starts spread widely and from its own draws:
    that a base was given does not mean that it covers the target.
    """
    found, fits = searched(seed, evaluate, went) if fit.modes is None else fit.modes
    draws = resampled(went, seed, GROUP)
    later = find_modes(evaluate, draws, found)
    heaviest = local_fits(later)
    fits = [*fits, *(new for new in heaviest if new.found_by == "draws" and is_new(new, fits))]
    if not fits:
        mean, covariance = moments(draws, np.full(len(draws), 1 / len(draws)))
        covariance = covariance + 1e-9 * np.trace(covariance) / len(mean) * np.eye(len(mean))
        fits = [LocalFit(mean, covariance, 0.0, mean, np.nan, "draws", np.nan)]
    return counted(seed, evaluate, fits, later, draws)


def table_of_modes_again(seed: int, evaluate: Evaluator, known: ModeTable, went: Exploration) -> ModeTable:
    """The table of a run that went on: the modes that were known, and those that its chains have found since."""
    draws = resampled(went, seed, GROUP)
    found = find_modes(evaluate, np.concatenate([known.location, draws[len(known.location) :]]))
    means, scales = np.asarray(known.fits.centres()), np.asarray(known.fits.components.scale_tril)
    weights = np.asarray(known.fits.log_weights)  # finite also where no draw of the fits was on the support
    columns = weights, known.location, known.log_density, known.found_by, known.log_laplace
    fits = [
        LocalFit(mean, scale @ scale.T, *rest)
        for mean, scale, *rest in zip(means, scales, *columns, strict=False)  # room for more has no columns
    ]
    distances = np.sum((found.optima.position - known.location[:, None]) ** 2, axis=2)
    old = found.mode[distances.argmin(axis=1)] if found.num_modes else []
    new = [fit_of_mode(found, mode)._replace(found_by="draws") for mode in np.setdiff1d(found.mode, old)]
    again = counted(seed, evaluate, evened([*fits, *(fit for fit in new if is_new(fit, fits))]), found, draws)
    return again._replace(unseen=known.unseen, arrived=known.arrived)


def counted(seed: int, evaluate: Evaluator, fits: list[LocalFit], found: Found, draws: np.ndarray) -> ModeTable:
    """The heaviest of these modes, refitted to the chains' draws and weighed with draws of their own."""
    fits = sorted(fits, key=lambda fit: -fit.log_mass)[:MOST_COMPONENTS]
    mixture = mixture_of(fits, evaluate.target.initial_position)
    if len(fits) < MOST_COMPONENTS:
        mixture = em_update(mixture, draws, np.zeros(len(draws)))
    generator = np.random.default_rng([seed, MASSES])
    known = mode_masses(generator, evaluate, refitted(fits, mixture, 0.0), found)
    return known._replace(fall=tail_index(evaluate, draws))


def searched(seed: int, evaluate: Evaluator, went: Exploration) -> tuple[Found, list[LocalFit]]:
    """Modes and local fits for a run whose base was given."""
    starts = spread_starts(evaluate, seed)
    draws = went.base_draws.position[: len(starts) // 2]
    starts[len(starts) - len(draws) :] = draws
    found = find_modes(evaluate, starts)
    fits = local_fits(found)
    if fits:
        mixture = mixture_of(fits, evaluate.target.initial_position)
        mixture, pool = adapt_by_importance(np.random.default_rng([seed, SEARCHED]), evaluate, mixture)
        fits = refitted(fits, mixture, pool.log_evidence)
    return found, fits
