"""What a run will hold in memory, whether that is there, and what to do where it is not."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from thermocline.engine.plan import Lengths
from thermocline.engine.prepare import NUM_BASE_DRAWS
from thermocline.support.errors import ThermoclineError
from thermocline.support.large import LARGE

COPIES = 3  # of all draws at the peak: in chunks, in one piece, and in the pool of both states
BASE_COPIES = 4  # of the base's draws: they, what the target and the base compute of them, and the pool
PROGRAMS = 3e8  # bytes that compiling takes
RECORDED = 11  # numbers kept of a draw besides its position
USED = 0.8  # share of what is free that a run may count on


class Needs(NamedTuple):
    """What decides how much a run of one target holds: its sizes, and bytes a number."""

    dimension: int
    num_chains: int
    itemsize: int

    @property
    def a_draw(self) -> float:
        """Bytes of one draw of every chain: parameters, and what is recorded with them."""
        return float(self.num_chains * (self.dimension + RECORDED) * self.itemsize)

    def peak(self, num_draws: int) -> float:
        """Bytes, for so many draws a chain in memory; their files' maps are no part of it."""
        of_base = NUM_BASE_DRAWS * self.dimension * self.itemsize
        return PROGRAMS + BASE_COPIES * of_base + COPIES * self.a_draw * num_draws

    def most_draws(self, free: float) -> int:
        """A chain, that so many bytes have room for."""
        return max(int((free - self.peak(0)) / (COPIES * self.a_draw)), 0)


def streams(needs: Needs, lengths: Lengths) -> bool:
    """Whether draws go to the files of a checkpoint and are read from there: from some size on."""
    return needs.a_draw * max(lengths.num_draws, lengths.most_draws if lengths.target_error else 0) > LARGE


def within_memory(needs: Needs, lengths: Lengths, *, is_stored: bool) -> Lengths:
    """The lengths of a run that fits; one whose draws are asked for and do not is refused, with what to do.

    A run that doubles its draws until its error is small ends before it would not fit any more. Draws that a
    checkpoint streams to its files take none.
    """
    room = USED * free_bytes()
    least = 0 if is_stored and streams(needs, lengths) else lengths.num_draws
    if needs.peak(least) > room:
        raise ThermoclineError(too_large(needs, least, room))
    if lengths.target_error is None or (is_stored and streams(needs, lengths)):
        return lengths
    doublings = int(np.log2(max(needs.most_draws(room) / lengths.num_draws, 1)))
    return lengths._replace(most_draws=min(lengths.most_draws, lengths.num_draws * 2**doublings))


def too_large(needs: Needs, num_draws: int, room: float) -> str:
    """A sentence on what is too much and what would do."""
    least = f"{needs.peak(num_draws) / 1e9:.1f} GB of memory for {needs.num_chains} chains"
    least += f" of {num_draws:,} draws" if num_draws else ""
    advice = []
    if num_draws and needs.most_draws(room) >= 4:
        advice.append(f"num_draws={needs.most_draws(room)} or less")
    if num_draws and needs.peak(0) < room:
        advice.append("checkpoint= with a folder, whose files then hold the draws")
    advice += ['precision="float32"'] if needs.itemsize > 4 else []
    advice += ["fewer chains (num_chains)"] if num_draws else []
    return (
        f"the run would take about {least} in {needs.dimension:,} dimensions, and {room / 1e9:.1f} GB are free for it; "
        f"give {', or '.join(advice) or 'it a machine with more'}."
    )


def free_bytes() -> float:
    """What this process may still take: what the machine has left, the container and the shell allow."""
    limits = [_of_machine(), _of_container()]
    return min(limit for limit in limits if limit is not None)


def _of_machine() -> float:
    try:
        line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
        return 1024.0 * int(line.split()[1])
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # nobody says
        return float("inf")


def _of_container() -> float | None:
    """Of a control group of Linux, as containers have one; pages of files that it could let go count as free."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit, used = (folder / name for name in ("memory.max", "memory.current"))
        kept = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return float(limit.read_text()) - int(used.read_text()) + int(kept.get("inactive_file", 0))
    except (OSError, ValueError):  # none, or no limit
        return None
