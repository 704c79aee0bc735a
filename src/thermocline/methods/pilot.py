"""What methods that take in the whole path at once learn from a pilot: how many temperatures, and where."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.methods import tuning as tune
from thermocline.methods.gibbs import GibbsTempering
from thermocline.methods.method import Temperatures
from thermocline.methods.tuning import Tuning, leading_axes, spread
from thermocline.movers import HMC, Metric, Mover
from thermocline.paths import Path, TemperatureSchedule, checked_betas
from thermocline.paths.reweighting import Curve
from thermocline.records import Draws
from thermocline.support.interpolation import interpolate
from thermocline.support.pytree import field, pytree, static

STAGES_A_LENGTH = 4.0  # stages for each squared unit of thermodynamic length: log weights then vary by about a half
FEWEST, MOST = 16, 4096  # stages
BY_BETA = 0.05  # share of the temperatures that are spread evenly over beta, wherever the path is thought to be short


class Piloted:
    """What methods share that a pilot warms up; `schedule` says which temperatures follow from what it has learned."""

    mover: Mover

    has_evidence = True
    temperatures = Temperatures.SCHEDULE
    own_warmup = 0.0
    biases: tuple[str, ...] = ()

    @property
    def pilot(self) -> GibbsTempering:
        """Gibbs tempering with the same moves: it visits one beta at a time, and so learns a step size for each."""
        return GibbsTempering(self.mover)

    def schedule(self, tuning: Tuning) -> TemperatureSchedule:
        raise NotImplementedError

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


@pytree
class Annealing(Piloted):
    """Temperatures that are given, or so many at equal divergences, or as many as the length of the path asks for."""

    mover: Mover = field(default_factory=HMC)
    betas: Any = None
    num_temperatures: int | None = static(default=None)

    group = 0

    @property
    def is_sized(self) -> bool:
        return self.betas is not None or self.num_temperatures is not None

    def schedule(self, tuning: Tuning) -> TemperatureSchedule:
        if self.betas is not None:
            return TemperatureSchedule(spread(checked_betas(self.betas), leading_axes(tuning)), self.group)
        curve, number = curve_of(tuning), self.num_temperatures
        if number is None:
            number = rounded_up(STAGES_A_LENGTH * curve.travelled()[-1] ** 2, FEWEST, MOST)
        return TemperatureSchedule(equidistant_betas(curve, number), self.group)

    def initial_tuning(self, metric: Metric, base_log_ratio: np.ndarray) -> Tuning:
        """Where temperatures are given, without the law that a pilot would place them by."""
        law = None if self.betas is not None else self.pilot.law
        return self.tuned(tune.initial_tuning(self.mover, metric, law, base_log_ratio))


def curve_of(tuning: Tuning) -> Curve:
    """Log z(beta) and the thermodynamic speed, as the pilot learned them."""
    assert tuning.learning is not None, "a pilot learns its law"
    return tuning.learning.profile.curve()


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
