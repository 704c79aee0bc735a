"""What methods that take in the whole path at once learn from a pilot: how many temperatures, and where."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.methods.continuous import GibbsTempering
from thermocline.methods.method import Temperatures
from thermocline.methods.tuning import Tuning, leading_axes, spread
from thermocline.movers import Metric, Mover
from thermocline.paths.path import Path, TemperatureSchedule, checked_betas
from thermocline.paths.reweighting import Curve, interpolate
from thermocline.records import Draws

BY_BETA = 0.05  # share of the temperatures that are spread evenly over beta, wherever the path is thought to be short


class Piloted:
    """What methods share that a pilot warms up; `schedule` says which temperatures follow from what it has learned."""

    mover: Mover
    schedule: Callable[[Tuning], TemperatureSchedule]

    has_evidence = True
    temperatures = Temperatures.SCHEDULE
    own_warmup = 0.0
    biases: tuple[str, ...] = ()

    @property
    def pilot(self) -> GibbsTempering:
        """Gibbs tempering with the same moves: it visits one beta at a time, and so learns a step size for each."""
        return GibbsTempering(self.mover)

    def tuned(self, tuning: Tuning) -> Tuning:
        if tuning.schedule is not None:
            return tuning
        return tuning._replace(law=None, learning=None, schedule=self.schedule(tuning))

    def initial_tuning(self, metric: Metric, base_log_ratio: np.ndarray) -> Tuning:
        return self.tuned(self.pilot.initial_tuning(metric, base_log_ratio))

    def init(self, key: jax.Array, path: Path, tuning: Tuning, position: jax.Array) -> Any:
        return jnp.zeros((), position.dtype)  # nothing is carried from run to run

    def adapt(self, tuning: Tuning, draws: Draws, is_last: bool) -> Tuning:
        return tuning


def curve_of(tuning: Tuning) -> Curve:
    """Log z(beta) and the thermodynamic speed, as the pilot learned them."""
    return tuning.learning.profile.curve()


def placed(tuning: Tuning, betas: Any, number: int | None, wanted: Callable[[Curve], int]) -> np.ndarray:
    """Temperatures that are given, or so many at equal divergences, or as many as the pilot's curve makes one want."""
    if betas is not None:
        return spread(checked_betas(betas), leading_axes(tuning))
    curve = curve_of(tuning)
    return equidistant_betas(curve, wanted(curve) if number is None else number)


def equidistant_betas(curve: Curve, number: int) -> np.ndarray:
    r"""`number` inverse temperatures from 0 to 1, neighbours equally far apart.

    The KL divergence between neighbours is $\tfrac12\mathrm{Var}(r)\,\delta\beta^2$ to leading order, so that equal
    divergences are equal thermodynamic lengths.
    """
    travelled = curve.travelled()
    total = np.maximum(travelled[..., -1:], 1e-6)
    coordinate = (1 - BY_BETA) * travelled / total + BY_BETA * curve.betas
    return evenly(coordinate, curve.betas, number)


def evenly(coordinate: np.ndarray, betas: np.ndarray, number: int | None = None) -> np.ndarray:
    """So many betas at equal steps of a coordinate along the path, the first and the last exactly 0 and 1."""
    places = np.linspace(0.0, 1.0, number or betas.shape[-1]) * coordinate[..., -1:]
    found = interpolate(places, coordinate, betas)
    found[..., 0], found[..., -1] = 0.0, 1.0
    return found


def rounded_up(wanted: float, fewest: int, most: int) -> int:
    """The next of a few sizes (8, 12, 16, 24, 32, 48, ...), so that runs alike share compiled programs."""
    sizes = np.ravel(np.outer(2 ** np.arange(2, 14), [2, 3]))
    return int(np.clip(sizes[np.searchsorted(sizes, min(wanted, sizes[-1]))], fewest, most))
