"""The components of a base by the modes they belong to: what labels draws, wherever they come from."""

from typing import NamedTuple

import numpy as np

from thermocline.fits.student_mixture import StudentMixture
from thermocline.modes.find import Found
from thermocline.modes.peaks import Peak

REACH, HEAVIER = 4.0, 3.0  # beyond the root of the dimension, in deviations; and more for a t of few degrees


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
        is_near = (distance < reach(flat.shape[1], self.mixture.degrees)[component]) | (self.found.num_modes == 1)
        return np.where(is_near, self.owner[component], -1).reshape(rows.shape[:-1])


def reach(dimension: int, degrees: np.ndarray) -> np.ndarray:
    """Deviations within which a component explains a draw: nearly all of its own lie there."""
    return (np.sqrt(dimension) + REACH) * (1 + HEAVIER / degrees)


def local_modes(found: Found, mixture: StudentMixture) -> LocalModes:
    """Every component goes to the mode of the optimum nearest to its centre, in that one's own deviations."""
    return LocalModes(found, mixture, found.mode[[nearest(mean, found.peaks) for mean in mixture.mean]])


def nearest(row: np.ndarray, peaks: list[Peak]) -> int:
    return int(np.argmin([peak.distance(row) for peak in peaks]))
