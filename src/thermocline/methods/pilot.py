"""What methods that take in the whole path at once learn from a pilot: how many temperatures, and where."""

from typing import Any

import numpy as np

from thermocline.methods.gibbs import GibbsTempering
from thermocline.methods.tuning import Tuning, leading_axes, spread
from thermocline.movers import Mover
from thermocline.paths import TemperatureSchedule, checked_betas
from thermocline.paths.reweighting import Curve
from thermocline.support.interpolation import interpolate

STAGES_A_LENGTH = 4.0  # stages for each squared unit of thermodynamic length: log weights then vary by about a half
FEWEST, MOST = 16, 4096  # stages
BY_BETA = 0.05  # share of the temperatures that are spread evenly over beta, wherever the path is thought to be short


def pilot_with(mover: Mover) -> GibbsTempering:
    """Gibbs tempering with the same moves: it visits one beta at a time, and so learns a step size for each."""
    return GibbsTempering(mover)


def curve_of(tuning: Tuning) -> Curve:
    """Log z(beta) and the thermodynamic speed, as the pilot learned them."""
    assert tuning.learning is not None, "a pilot learns its law"
    return tuning.learning.profile.curve()


def annealing_schedule(
    tuning: Tuning, betas: Any, num_temperatures: int | None, *, group: int = 0
) -> TemperatureSchedule:
    """Given temperatures, or so many at equal divergences, or as many as the length of the path asks for."""
    if betas is not None:
        return TemperatureSchedule(spread(checked_betas(betas), leading_axes(tuning)), group)
    curve = curve_of(tuning)
    if num_temperatures is None:
        num_temperatures = rounded_up(STAGES_A_LENGTH * thermodynamic_length(curve) ** 2, FEWEST, MOST)
    return TemperatureSchedule(equidistant_betas(curve, num_temperatures), group)


def thermodynamic_length(curve: Curve) -> float:
    """The integral of the standard deviation of r over beta."""
    return float(curve.travelled()[-1])


def equidistant_betas(curve: Curve, number: int) -> np.ndarray:
    r"""`number` inverse temperatures from 0 to 1, neighbours equally far apart.

    The KL divergence between neighbours is $\tfrac12\mathrm{Var}(r)\,\delta\beta^2$ to leading order, so that equal
    divergences are equal thermodynamic lengths.
    """
    travelled = curve.travelled()
    total = np.maximum(travelled[..., -1:], 1e-6)
    coordinate = (1 - BY_BETA) * travelled / total + BY_BETA * curve.betas
    return between_ends(np.linspace(0.0, 1.0, number) * coordinate[..., -1:], coordinate, curve.betas)


def between_ends(places: np.ndarray, coordinate: np.ndarray, betas: np.ndarray) -> np.ndarray:
    """The betas at some places of a coordinate along the path, the first and the last exactly 0 and 1."""
    found = interpolate(places, coordinate, betas)
    found[..., 0], found[..., -1] = 0.0, 1.0
    return found


def rounded_up(wanted: float, fewest: int, most: int) -> int:
    """The next of a few sizes (8, 12, 16, 24, 32, 48, ...), so that runs alike share compiled programs."""
    sizes = np.ravel(np.outer(2 ** np.arange(2, 14), [2, 3]))
    return int(np.clip(sizes[np.searchsorted(sizes, min(wanted, sizes[-1]))], fewest, most))
