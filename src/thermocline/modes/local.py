"""The components of a base by the modes they belong to: what labels draws, wherever they come from."""

from typing import NamedTuple

import numpy as np

from thermocline.fits.student_mixture import StudentMixture
from thermocline.modes.find import Found
from thermocline.modes.peaks import Peak

REACH = 4.0  # deviations a root of the dimension, and as many more, within which a component explains a draw


class LocalModes(NamedTuple):
    """Modes, and the mixture whose components are each of one of them."""

    found: Found
    mixture: StudentMixture
    owner: np.ndarray  # mode of each component

    def labels(self, rows: np.ndarray) -> np.ndarray:
        """The mode that explains each ravelled position; -1 where none does."""
        flat = rows.reshape(-1, rows.shape[-1])
        component = np.argmax(self.mixture.log_densities(flat), axis=0)
        distance = np.sqrt(self.mixture.distances(flat)[component, np.arange(len(flat))])
        is_near = distance < reach(flat.shape[1])
        return np.where(is_near, self.owner[component], -1).reshape(rows.shape[:-1])


def reach(dimension: int) -> float:
    """Deviations within which a component explains a draw."""
    return REACH * (1 + np.sqrt(dimension))


def local_modes(found: Found, mixture: StudentMixture) -> LocalModes:
    """Every component goes to the mode nearest to its centre, in the mode's own deviations."""
    return LocalModes(found, mixture, np.array([nearest(mean, found.peaks) for mean in mixture.mean], int))


def nearest(row: np.ndarray, peaks: list[Peak]) -> int:
    return int(np.argmin([peak.distance(row) for peak in peaks]))
