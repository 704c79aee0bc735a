"""What is known of the modes of a target."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from thermocline.records.estimate import Estimate
from thermocline.records.search import SearchRecord


class TailIndex(NamedTuple):
    """The density falls as |x|^-power along this axis, and faster along the others; proper targets have powers > 1.

    The axis is zero where it is all directions that are too slow: then D - 1 has been taken off the power, for a cone
    has to be integrated, not a line.
    """

    power: float = np.inf
    axis: np.ndarray = np.zeros(0)


class ModeTable(NamedTuple):
    """What is known of the modes without the chains; a draw is of the mode whose component explains it.

    `log_mass` is the log of the target's integral over the basin, by importance sampling from all the fits.
    """

    fits: Any  # a mixture, of which every component is of one mode
    owner: np.ndarray  # that mode, by component
    location: np.ndarray
    log_density: np.ndarray
    log_mass: np.ndarray
    log_mass_error: np.ndarray
    log_laplace: np.ndarray  # what the curvature at the optimum alone says of the mass
    log_total: float
    log_total_error: float
    found_by: tuple[str, ...]
    counts: tuple[int, ...]  # ascents that ended at each
    search: SearchRecord
    tail_index: TailIndex = TailIndex()

    @property
    def arrived(self) -> float:
        """Share of ascents that ended at an optimum."""
        return 1 - self.search.num_lost / max(self.search.num_ascents, 1)


@dataclass(frozen=True)
class Mode:
    """One mode: where it is highest, and how much of the target it holds."""

    name: str
    location: dict[str, Any]  # in the user's coordinates
    log_density: float
    mass: Estimate  # from the chains
    mass_by_importance: Estimate  # from its own fit, whether chains have been there or not
    mass_by_laplace: float  # from the curvature at its highest point
    visits: int  # stays of chains that carried weight for the target
    entered: int  # moves of a chain into its basin, at any temperature
    left: int
    found_by: str
