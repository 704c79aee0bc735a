"""The table of modes: each with its mass from the chains and by importance sampling, and how often it was visited."""

from dataclasses import replace
from typing import Any

import numpy as np

from thermocline.bases.mixture import Mixture
from thermocline.estimators.chains import expectation, relative
from thermocline.estimators.convergence import path_ends
from thermocline.evaluator import Evaluator
from thermocline.fits.student_mixture import StudentMixture
from thermocline.modes.local import LocalModes, reach
from thermocline.records import Draws, Estimate, Mode, ModeTable
from thermocline.support.flat import ravelled

NUM_IMPORTANCE = 8192  # draws of the local fits, for the masses
COVERED = 2.0  # nats of the target's density over that of the fits, up to which draws of these tell a mode's mass
LEAST_SHARE = 0.5  # of these draws, that is shared evenly among modes


def mode_masses(generator: np.random.Generator, evaluate: Evaluator, modes: LocalModes) -> ModeTable:
    """Masses from fresh draws of the local fits, of each mode enough: none may rest on the chains' visits."""
    mixture, number = modes.mixture, modes.found.num_modes
    pairs = list(zip(modes.found.peaks, modes.found.mode, strict=True))
    members = [[peak for peak, mode in pairs if mode == i] for i in range(number)]
    peaks = [max(group, key=lambda peak: peak.log_density) for group in members]
    even = evened(mixture, modes.owner, number)
    rows = even.sample_rows(generator, evaluate.sized(NUM_IMPORTANCE))
    log_weight = evaluate.values(rows) - even.log_density_of_rows(rows)
    label, largest = modes.labels(rows), log_weight.max()
    weight = np.exp(log_weight - (largest if np.isfinite(largest) else 0.0))
    by_mode = [_log_mean(weight * (label == i)) for i in range(number)]
    total, total_error = _log_mean(weight)
    location, heights = (np.array([getattr(peak, name) for peak in peaks]) for name in ("highest", "log_density"))
    excess = heights - total - largest - even.log_density_of_rows(location)  # of the target over what was drawn from
    laplace = [group[0].log_mass if len(group) == 1 else -np.inf for group in members]
    return ModeTable(
        fits=Mixture.of(mixture.students(evaluate.target.initial_position), mixture.log_weight),
        owner=modes.owner,
        location=location,
        log_density=heights,
        log_mass=np.array([value for value, _ in by_mode]) + largest,
        log_mass_error=np.array([error for _, error in by_mode]),
        log_laplace=np.where(excess < COVERED, -np.inf, laplace),
        log_total=float(total + largest),
        log_total_error=float(total_error),
        found_by=tuple(peak.found_by for peak in peaks),
        counts=tuple(np.bincount(modes.found.mode, modes.found.counts, number).astype(int).tolist()),
        search=modes.found.record,
    )


def evened(mixture: StudentMixture, owner: np.ndarray, num_modes: int) -> StudentMixture:
    """The mixture with a share of its weight spread evenly over modes."""
    by_mode = np.bincount(owner, np.exp(mixture.log_weight), num_modes)
    within = np.exp(mixture.log_weight) / by_mode[owner]
    weight = (1 - LEAST_SHARE) * np.exp(mixture.log_weight) + LEAST_SHARE * within / np.count_nonzero(by_mode)
    return mixture._replace(log_weight=np.log(weight / weight.sum()))


def _log_mean(values: np.ndarray) -> tuple[float, float]:
    """Log of the mean of independent values, and its standard error."""
    mean = values.mean()
    if not mean > 0:
        return -np.inf, np.inf
    return float(np.log(mean)), float(values.std(ddof=1) / np.sqrt(values.size) / mean)


def basins(table: ModeTable, positions: np.ndarray) -> np.ndarray:
    """The mode whose component explains each ravelled position; their number where none does."""
    flat = positions.reshape(-1, positions.shape[-1])
    component = np.argmax(table.fits.log_densities_of_rows(flat), axis=-1)
    if len(table.location) == 1:
        return np.zeros(positions.shape[:-1], int)
    distance, each = np.empty(len(flat)), table.fits.each()[: len(table.owner)]
    for k, base in enumerate(each):
        chosen = component == k
        mean = ravelled(base.mean)
        distance[chosen] = np.linalg.norm((flat[chosen] - mean) @ np.asarray(base.whitening).T, axis=1)
    limits = reach(flat.shape[1], np.array([float(base.degrees_of_freedom) for base in each]))
    label = np.where(distance < limits[component], table.owner[component], len(table.location))
    return label.reshape(positions.shape[:-1])


def mode_rows(
    known: ModeTable,
    draws: Draws,
    log_evidence: Estimate | None,
    basin: np.ndarray,
    described: list[tuple[dict[str, Any], ...]],
) -> tuple[Mode, ...]:
    """Every known mode with what the chains say of it, heaviest first; one that they have not been to, by its own fit.

    `basin` is the mode of each draw (chain, draw), and `described` each one's location, mean and deviation.
    """
    visits = visits_by_mode(draws, basin, len(described))
    entered, left = crossings(basin, len(described))
    modes = []
    for i, (location, mean, deviation) in enumerate(described):
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
                mean,
                deviation,
                i,
            )
        )
    order = sorted(modes, key=lambda mode: -_rank_mass(mode))
    return tuple(replace(mode, name=f"mode {i + 1}") for i, mode in enumerate(order))


def _rank_mass(mode: Mode) -> float:
    """The mass that a list of modes is in the order of."""
    return mode.mass.value if mode.mass.value > 0 else float(np.nan_to_num(mode.mass_by_importance.value))


def visits_by_mode(draws: Draws, basin: np.ndarray, num_modes: int) -> np.ndarray:
    """Effective number of stays in each basin: of weights m for the target they count as (sum m)^2 / sum m^2.

    A visit to the base ends a stay, and so does leaving.
    """
    weight = relative(draws.log_weight_target)[0]
    has_base = np.isfinite(draws.log_weight_base).any()
    ends = path_ends(draws) if has_base else np.zeros(basin.shape, int)
    sums = np.zeros((2, num_modes + 1))  # the last is of no mode
    for labels, at, carried in zip(basin, ends, weight, strict=True):
        stay = np.cumsum(np.append(False, (np.diff(labels) != 0) | (at[:-1] == -1)))
        mass, first = np.bincount(stay, carried), np.unique(stay, return_index=True)[1]
        sums += [np.bincount(labels[first], mass**power, num_modes + 1) for power in (1, 2)]
    number = sums[0] ** 2 / np.where(sums[1] > 0, sums[1], 1.0)
    return np.round(number[:num_modes]).astype(int)


def crossings(basin: np.ndarray, num_modes: int) -> tuple[np.ndarray, np.ndarray]:
    """How often chains moved into each basin, and out of it."""
    moved = np.diff(basin, axis=1) != 0
    entered = np.bincount(basin[:, 1:][moved], minlength=num_modes + 1)[:num_modes]
    left = np.bincount(basin[:, :-1][moved], minlength=num_modes + 1)[:num_modes]
    return entered, left
