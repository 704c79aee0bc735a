"""What is known of the modes of a target, and how completely they were looked for."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from thermocline.records.estimate import Estimate


class SearchRecord(NamedTuple):
    """What a search did, and the share of the points looked at that may lead to a mode it does not know.

    With u the share of looks left unexplained, and a and b the upper bounds (97.5 %) on the chance that an ascent finds
    a new mode, from random ascents among the unexplained and among the explained since the last new mode, that share is
    at most u a + (1 - u) b. It is a share of the points that were looked at, never of the target's mass.
    """

    num_looks: int
    num_ascents: int
    num_lost: int  # ascents that ended at no optimum
    share_unexplained: float
    num_random_unexplained: int  # ascents since the last new mode
    num_random_explained: int
    log_volume_spread: float  # of the modes found, widest over narrowest, in nats
    cut_short_by: str = ""  # a limit of the caller's

    @property
    def blind_spot(self) -> float:
        """The bound u a + (1 - u) b."""
        share = self.share_unexplained
        return share * _none_of(self.num_random_unexplained) + (1 - share) * _none_of(self.num_random_explained)

    def __str__(self) -> str:
        cut = f" It was cut short by {self.cut_short_by}." if self.cut_short_by else ""
        return (
            f"{self.num_looks:,} points were looked at and {self.num_ascents:,} ascents made; of the points looked at, "
            f"at most {self.blind_spot:.1%} lead to a mode that is not listed (95 %).{cut}"
        )


def _none_of(number: int) -> float:
    """Upper bound, at 97.5 %, on a chance that has not come up in so many trials."""
    return 1 - 0.025 ** (1 / number) if number > 0 else 1.0


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
