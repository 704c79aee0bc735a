"""How completely modes were looked for."""

from typing import NamedTuple


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
