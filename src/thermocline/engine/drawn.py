"""The draws of a run while it goes on: a chunk of steps of a block after another, in memory or in files."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from thermocline.engine.batch import Blocks
from thermocline.records import Draws


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

    def add(self, block: int, chunk: Chunk) -> None:
        self.chunks[block].append(chunk)

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
        each = [sum(chunk.is_active * chunk.num_steps for chunk in chunks) for chunks in self.chunks]
        sizes = [len(range(*self.blocks.rows(block).indices(self.blocks.num_targets))) for block in range(len(each))]
        return np.concatenate([np.broadcast_to(one, size) for one, size in zip(each, sizes, strict=True)]).astype(int)

    def fields(self, block: int, *names: str) -> Iterator[tuple[np.ndarray, ...]]:
        """Some fields (chain, draw) of each target of a block, one target after another."""
        parts = [(chunk.is_active, chunk.read(*names)) for chunk in self.chunks[block]]
        rows = self.blocks.rows(block)
        for row in range(rows.stop - rows.start):
            own = [fields for is_active, fields in parts if is_active[row]]
            whole = (np.concatenate([field[row] for field in leaves], axis=1) for leaves in zip(*own, strict=True))
            yield tuple(map(np.ascontiguousarray, whole))  # then sums round alike, whatever the draws were read from

    def of_target(self, target: int) -> Draws:
        """The draws of one target, (chain, draw)."""
        block, row = self.blocks.place(target)
        own = [chunk.read(*Draws._fields) for chunk in self.chunks[block] if chunk.is_active[row]]
        return Draws(*(np.concatenate([leaf[row] for leaf in leaves], axis=1) for leaves in zip(*own, strict=True)))

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


def by_chain(buffer: Draws, count: int) -> Draws:
    """The first `count` rows of a buffer (row, target, chain), as NumPy with leading axes (target, chain, draw)."""
    return Draws(*(np.moveaxis(np.array(np.asarray(leaf)[:count]), 0, 2) for leaf in buffer))


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
