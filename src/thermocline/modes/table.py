"""The table of modes: each with its mass from the chains and by importance sampling, and how often it was visited."""

from typing import Any

import numpy as np

from thermocline.bases.mixture import Mixture
from thermocline.estimators import expectation
from thermocline.estimators.convergence import path_ends
from thermocline.estimators.evidence import relative
from thermocline.evaluator import Evaluator
from thermocline.fits.importance import NUM_DRAWS, draw_importance
from thermocline.modes.local_fits import LocalFit, evened, mixture_of
from thermocline.modes.search import Found
from thermocline.records import Draws, Estimate, Mode, ModeTable

NUM_IMPORTANCE = 2 * NUM_DRAWS  # drawn from the local fits, for the masses


def mode_masses(
    generator: np.random.Generator, evaluate: Evaluator, fits: list[LocalFit], found: Found
) -> ModeTable:
    """Masses of the fits' basins from fresh draws of the fits, of each enough: none may rest on the chains' visits."""
    mixture, even = (mixture_of(some, evaluate.target.initial_position) for some in (fits, evened(fits)))
    sample = draw_importance(generator, evaluate, even, num_draws=NUM_IMPORTANCE)
    basin = basins(mixture, sample.position)
    largest = sample.log_weight.max()
    weight = np.exp(sample.log_weight - (largest if np.isfinite(largest) else 0.0))
    by_mode = [_log_mean(weight * (basin == i)) for i in range(len(fits))]
    total, total_error = _log_mean(weight)
    return ModeTable(
        mixture,
        np.array([fit.location for fit in fits]),
        np.array([fit.log_density for fit in fits]),
        np.array([value for value, _ in by_mode]) + largest,
        np.array([error for _, error in by_mode]),
        np.array([fit.log_laplace for fit in fits]),
        float(total + largest),
        float(total_error),
        tuple(fit.found_by for fit in fits),
        found.unseen,
        found.share_converged,
    )


def _log_mean(values: np.ndarray) -> tuple[float, float]:
    """Log of the mean of independent values, and its standard error."""
    mean = values.mean()
    if not mean > 0:
        return -np.inf, np.inf
    return float(np.log(mean)), float(values.std(ddof=1) / np.sqrt(values.size) / mean)


def basins(mixture: Mixture, positions: np.ndarray) -> np.ndarray:
    """The mode in whose basin each ravelled position lies."""
    return np.argmax(mixture.log_densities_of_rows(positions), axis=-1)


def mode_rows(
    known: ModeTable, draws: Draws, log_evidence: Estimate | None, locations: list[dict[str, Any]]
) -> tuple[Mode, ...]:
    """Every known mode with what the chains say of it, heaviest first."""
    basin = basins(known.fits, draws.position)
    visits = visits_by_mode(draws, basin, len(locations))
    entered, left = crossings(basin, len(locations))
    modes = []
    for i, location in enumerate(locations):
        mass = expectation((basin == i).astype(float), draws.log_weight_target)
        by_importance, by_laplace = Estimate(np.nan, np.nan, np.nan), np.nan
        if log_evidence is not None:
            share = np.exp(known.log_mass[i] - log_evidence.value)
            error = share * np.hypot(known.log_mass_error[i], log_evidence.standard_error) if share > 0 else np.nan
            by_importance = Estimate(float(share), float(error), log_evidence.dof)
            by_laplace = float(np.exp(np.minimum(known.log_laplace[i] - log_evidence.value, 0.0)))
        modes.append(
            Mode(
                "",
                location,
                float(known.log_density[i]),
                mass,
                by_importance,
                by_laplace,
                int(visits[i]),
                int(entered[i]),
                int(left[i]),
                known.found_by[i],
            )
        )
    order = sorted(modes, key=lambda mode: -max(mode.mass.value, np.nan_to_num(mode.mass_by_importance.value)))
    return tuple(Mode(f"mode {i + 1}", *_rest(mode)) for i, mode in enumerate(order))


def _rest(mode: Mode) -> tuple:
    """All fields but the name."""
    return tuple(vars(mode).values())[1:]


def visits_by_mode(draws: Draws, basin: np.ndarray, num_modes: int) -> np.ndarray:
    """Stays in each basin that carried weight for the target; a visit to the base ends a stay, and so does leaving."""
    weight = relative(draws.log_weight_target)[0]
    has_base = np.isfinite(draws.log_weight_base).any()
    ends = path_ends(draws) if has_base else np.zeros(basin.shape, int)
    total = np.zeros(num_modes, int)
    for labels, at, carried in zip(basin, ends, weight, strict=True):
        stay = np.cumsum(np.append(True, (np.diff(labels) != 0) | (at[:-1] == -1)))
        first = np.unique(stay[carried >= 0.5], return_index=True)[1]
        total += np.bincount(labels[carried >= 0.5][first], minlength=num_modes)
    return total


def crossings(basin: np.ndarray, num_modes: int) -> tuple[np.ndarray, np.ndarray]:
    """How often chains moved into each basin, and out of it."""
    moved = np.diff(basin, axis=1) != 0
    entered = np.bincount(basin[:, 1:][moved], minlength=num_modes)
    left = np.bincount(basin[:, :-1][moved], minlength=num_modes)
    return entered, left
