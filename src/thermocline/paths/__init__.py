"""The path from base to target, the laws of beta along it, and the control map u to beta."""

from thermocline.paths.control import Extended, ExtendedPoint, Logistic, Monotone, control_at
from thermocline.paths.laws import Continuous, Ladder, Law, Learned, Neighbours, as_stored, has_atom_at_base, ladder_of
from thermocline.paths.path import AtTemperature, Path, Point, tempered
from thermocline.paths.schedules import TemperatureSchedule, checked_betas, sigmoidal_betas

__all__ = [
    "AtTemperature",
    "Continuous",
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
    "as_stored",
    "checked_betas",
    "control_at",
    "has_atom_at_base",
    "ladder_of",
    "sigmoidal_betas",
    "tempered",
]
