"""The path from base to target, the laws of beta along it, and the control map u to beta."""

from thermocline.paths.control import Extended, ExtendedPoint, Logistic, Monotone, control_at
from thermocline.paths.laws import Continuous, Ladder, Law, Learned, Neighbours, as_stored, ladder_of
from thermocline.paths.path import AtTemperature, Path, Point, TemperatureSchedule, sigmoidal_betas, tempered
