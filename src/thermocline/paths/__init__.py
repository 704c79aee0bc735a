"""The path from base to target, the laws of beta along it, and the control map u to beta."""

from thermocline.paths.control import ControlMap, Extended, ExtendedPoint, Logistic, Monotone, control_at
from thermocline.paths.laws import Continuous, Ladder, Law, Learned, Neighbours, TemperatureSchedule, sigmoidal_betas
from thermocline.paths.path import AtTemperature, Path, Point, tempered

LAWS: dict[str, type] = {"continuous": Continuous, "ladder": Ladder}

__all__ = [
    "LAWS",
    "AtTemperature",
    "Continuous",
    "ControlMap",
    "Extended",
    "ExtendedPoint",
    "Ladder",
    "Law",
    "Learned",
    "Logistic",
    "Monotone",
    "Neighbours",
    "Path",
    "Point",
    "TemperatureSchedule",
    "control_at",
    "sigmoidal_betas",
    "tempered",
]
