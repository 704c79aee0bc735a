"""The draws of a run while it goes on: a chunk of steps of a block after another, in memory or in files."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from thermocline.engine.batch import Blocks
from thermocline.estimators.chains import log_ratio
from thermocline.estimators.convergence import round_trips
from thermocline.records import Draws
from thermocline.support import large

MOST_DRAWS_SHOWN = 2_000  # a chain; running figures thin longer runs


class Chunk(NamedTuple):
    """Some steps of a block: whose they are, how many, and the draws (target, chain, draw), read when asked for."""

    is_active: np.ndarray  # by target of the block
    num_steps: int
    read: Callable[..., tuple[np.ndarray, ...]]  # fields by name

    @staticmethod
    def of(draws: Draws, is_active: np.ndarray) -> "Chunk":
        """In memory."""
        return Chunk(is_active, draws.log_ratio.shape[2], lambda *names: tuple(getattr(draws, n) for n in names))


class Drawn:
    """All draws of the targets of a batch; those of a target are the chunks in which it was active, in order."""

    def __init__(self, blocks: Blocks, chunks: list[list[Chunk]] | None = None) -> None:
        self.blocks = blocks
        self.chunks: list[list[Chunk]] = [[] for _ in range(len(blocks))] if chunks is None else chunks

    @property
    def num_chains(self) -> int:
        return self.chunks[0][0].read("log_ratio")[0].shape[1]

    @property
    def num_chunked(self) -> int:
        """Steps that are kept, over all blocks: by it a checkpoint knows that no file is missing."""
        return sum(chunk.num_steps for chunks in self.chunks for chunk in chunks)

    @property
    def num_draws(self) -> np.ndarray:
        """A chain, by target."""
        number = np.zeros(self.blocks.num_targets, int)
        for rows, chunks in zip(self.blocks.all_rows(), self.chunks, strict=True):
            for chunk in chunks:
                number[rows] += chunk.is_active * chunk.num_steps
        return number

    def fields(self, block: int, *names: str) -> Iterator[tuple[np.ndarray, ...]]:
        """Some fields (chain, draw) of each target of a block, one target after another."""
        parts = [(chunk.is_active, chunk.read(*names)) for chunk in self.chunks[block]]
        rows = self.blocks.rows(block)
        for row in range(rows.stop - rows.start):
            yield _joined([fields for is_active, fields in parts if is_active[row]], row)

    def of_target(self, target: int) -> Draws:
        """The draws of one target, (chain, draw)."""
        block, row = self.blocks.place(target)
        parts = [chunk.read(*Draws._fields) for chunk in self.chunks[block] if chunk.is_active[row]]
        return Draws(*_joined(parts, row))

    def followed_by(self, later: "Drawn") -> "Drawn":
        """The draws of a run that went on."""
        both = zip(self.chunks, later.chunks, strict=True)
        return Drawn(self.blocks, [[*before, *after] for before, after in both])

    def without(self, name: str) -> "Drawn":
        """The same with nothing in one field, whose memory is free for others."""

        def emptied(chunk: Chunk) -> Chunk:
            draws = Draws(*chunk.read(*Draws._fields))
            return Chunk.of(draws._replace(**{name: getattr(draws, name)[..., :0].copy()}), chunk.is_active)

        return Drawn(self.blocks, [[emptied(chunk) for chunk in chunks] for chunks in self.chunks])


def _joined(parts: list[tuple[np.ndarray, ...]], row: int) -> tuple[np.ndarray, ...]:
    """The fields of one row over chunks, in C order: then sums round alike, whatever the draws were read from."""
    return tuple(large.joined([field[row] for field in leaves], axis=1) for leaves in zip(*parts, strict=True))


def by_chain(rows: Draws) -> Draws:
    """Draws (row, target, chain), as arrays of their own with leading axes (target, chain, draw)."""
    return Draws(*(np.moveaxis(np.array(leaf), 0, 2) for leaf in rows))


def no_draws(like: Draws, num_targets: int, num_kept: int) -> Draws:
    """Room for `num_kept` draws a chain of so many targets, NaN where there is none."""

    def room(leaf: np.ndarray) -> np.ndarray:
        shape = (num_targets, leaf.shape[1], num_kept, *leaf.shape[3:])
        return np.full(shape, np.nan if leaf.dtype.kind == "f" else 0, leaf.dtype)

    return Draws(*map(room, like))


def keep(kept: Draws, targets: slice, chunk: Draws, offset: int, round_length: int) -> None:
    """Put evenly spaced draws of a round into their room, whose size is fixed; the chunk began at `offset`."""
    num_kept = kept.log_ratio.shape[2]
    stride = -(-round_length // num_kept)
    places = np.arange(offset, offset + chunk.log_ratio.shape[2])
    chosen = places % stride == stride - 1
    for room, new in zip(kept, chunk, strict=True):
        if offset == 0:
            room[targets] = np.nan if room.dtype.kind == "f" else 0
        room[targets, :, places[chosen] // stride] = new[:, :, chosen]


def running_answer(drawn: Drawn, log_zeta: np.ndarray) -> str | None:
    """Log Z and round trips of a single target so far, or None while there are too few or no evidence."""
    length = int(drawn.num_draws.max())
    if length < 8 or len(log_zeta) > 1:
        return None
    stride, names = max(1, length // MOST_DRAWS_SHOWN), [name for name in Draws._fields if name != "position"]
    (fields,) = drawn.fields(0, *names)
    fields = {name: field[:, ::stride] for name, field in zip(names, fields, strict=True)}
    draws = Draws(position=np.zeros((*fields["log_ratio"].shape, 0)), **fields)  # of which there may be many
    if not np.isfinite(draws.log_weight_base).any():
        return None
    estimate = log_ratio(draws) + float(log_zeta[0])
    return f"log Z {estimate}, {round_trips(draws).sum()} round trips"
