"""Nothing lost: a run's folder of draws, and the small state that says how much of it counts."""

import json
import os
import struct
import zipfile
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.engine.drawn import Chunk
from thermocline.engine.plan import Round
from thermocline.records import Draws
from thermocline.support.errors import CheckpointError

STATE = "state.npz"


class Progress(NamedTuple):
    """Where a run stands: which phase and round, how far into it, and how many steps in all."""

    phase: int
    round_index: int
    offset: int
    step: int
    length: int
    is_last_warmup: bool

    @staticmethod
    def within(coming: Round, offset: int) -> "Progress":
        """So many steps into a round."""
        step = coming.first_step + offset
        return Progress(coming.phase, coming.number, offset, step, coming.length, coming.is_last_warmup)

    def round_of(self, is_active: np.ndarray) -> Round:
        """The round that this stands in."""
        first_step = self.step - self.offset
        return Round(self.phase, self.round_index, first_step, self.length, is_active, self.is_last_warmup)


class Checkpoint:
    """A folder with `state.npz`, replaced whole, and one file of draws a chunk and block, never rewritten.

    Arrays are stored by position in the run's own PyTree, so nothing is executed on load; a
    fingerprint of target, base, options and devices tells whether they belong to this run. With `streams` draws are
    not held in memory but read from their files, as far as they are asked for.
    """

    def __init__(
        self, folder: str | os.PathLike[str], fingerprint: dict[str, str], *, streams: bool = False
    ) -> None:
        self.folder = Path(folder)
        self.fingerprint = fingerprint
        self.streams = streams
        check_folder(folder)

    def exists(self) -> bool:
        return (self.folder / STATE).exists()

    def aside(self, name: str) -> "Checkpoint":
        """A folder within this one, for a part of the same run."""
        return Checkpoint(self.folder / name, self.fingerprint, streams=self.streams)

    def kept(self, first_step: int, block: int, chunk: Chunk) -> Chunk:
        """The chunk once its draws are in a file; it counts when `store` has counted it."""
        path = self.folder / f"draws_{first_step:012d}_{block:05d}.npz"
        fields = dict(zip(Draws._fields, chunk.read(*Draws._fields), strict=True))
        _write(path, {"is_active": chunk.is_active, **fields})
        return self._chunk(path) if self.streams else chunk

    def store(self, progress: Progress, tree: Any, num_draws: int) -> None:
        """Replace the state, which counts the draws in the files; a reader sees the old one or the new one."""
        arrays = {f"leaf_{i}": _to_storable(leaf) for i, leaf in enumerate(jax.tree.leaves(tree))}
        header = json.dumps({"progress": progress._asdict(), "num_draws": num_draws, "fingerprint": self.fingerprint})
        _write(self.folder / STATE, {"header": np.array(header), **arrays})

    def load(self, like: Any, num_blocks: int) -> tuple[Progress, Any, list[list[Chunk]]]:
        """The stored state in the shape of `like`, and the chunks of draws it counts, by block."""
        stored = _read(self.folder / STATE)
        try:
            header = json.loads(str(stored["header"]))
            progress, fingerprint = Progress(**header["progress"]), header["fingerprint"]
            num_draws = int(header["num_draws"])
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{self.folder / STATE} is not a thermocline checkpoint; remove the folder."
            ) from error
        differing = [name for name, value in self.fingerprint.items() if fingerprint.get(name) != value]
        if differing:
            raise CheckpointError(
                f"the checkpoint in {self.folder} belongs to another run: {', '.join(differing)} differ"
                f"{'s' if len(differing) == 1 else ''}. Resume with the same call, or choose an empty folder."
            )
        leaves, structure = jax.tree.flatten(like)
        restored = [_restore(stored.get(f"leaf_{i}"), leaf, self.folder) for i, leaf in enumerate(leaves)]
        return progress, jax.tree.unflatten(structure, restored), self._chunks(progress.step, num_draws, num_blocks)

    def _chunks(self, last_step: int, num_draws: int, num_blocks: int) -> list[list[Chunk]]:
        """Chunks that began before `last_step`; later ones were written by a run that was cut off."""
        chunks: list[list[Chunk]] = [[] for _ in range(num_blocks)]
        for path in sorted(self.folder.glob("draws_*.npz")):
            _, first_step, *block = path.stem.split("_")
            if int(first_step) < last_step:
                chunks[int(block[0])].append(self._chunk(path))
        found = sum(chunk.num_steps for each in chunks for chunk in each)
        if found != num_draws:
            raise CheckpointError(
                f"the checkpoint in {self.folder} counts {num_draws} draws a chain, but its files hold {found}: "
                "some are missing. Remove the folder and start again."
            )
        return chunks

    def _chunk(self, path: Path) -> Chunk:
        """A file of draws: read as a whole, or mapped each time that some of it is asked for."""
        if not self.streams:
            stored = _read(path)
            return Chunk.of(Draws(**{name: stored[name] for name in Draws._fields}), stored["is_active"])
        is_active, log_ratio = mapped(path, "is_active", "log_ratio")
        return Chunk(np.array(is_active), log_ratio.shape[2], partial(mapped, path))


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Make the folder, and see that files can be written there: better before a run than in the middle of one."""
    try:
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=path):
            pass
    except (OSError, TypeError) as error:
        raise CheckpointError(
            f"the checkpoint folder {folder} cannot be written ({error}); choose another folder."
        ) from error


def _write(path: Path, arrays: dict[str, Any]) -> None:
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        np.savez(file, **arrays)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _read(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise CheckpointError(
            f"{path} cannot be read ({error}); it is damaged or not ours. Remove the folder."
        ) from error


def _to_storable(leaf: Any) -> np.ndarray:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(leaf))
    return np.asarray(leaf)


def _restore(stored: np.ndarray | None, like: Any, folder: Path) -> Any:
    if stored is None or stored.shape != np.shape(like) or stored.dtype != np.asarray(like).dtype:
        raise CheckpointError(f"the state in {folder} does not have the shape of this run; choose an empty folder.")
    return jax.device_put(stored, like.sharding) if isinstance(like, jax.Array) else stored


def mapped(path: Path, *names: str) -> tuple[np.ndarray, ...]:
    """Arrays of an .npz file, which is not compressed, as maps of it: only what is looked at is read."""
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            return tuple(_map(path, file, archive.getinfo(f"{name}.npy").header_offset) for name in names)
    except (OSError, ValueError, KeyError, struct.error, zipfile.BadZipFile) as error:
        raise CheckpointError(
            f"{path} cannot be read ({error}); it is damaged or not ours. Remove the folder."
        ) from error


def _map(path: Path, file: Any, header_offset: int) -> np.ndarray:
    """The array whose entry in a zip file begins at an offset: a header of 30 bytes, a name, what else is there."""
    file.seek(header_offset + 26)
    file.seek(sum(struct.unpack("<HH", file.read(4))), os.SEEK_CUR)
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, is_fortran, dtype = read_header(file)
    if 0 in shape:
        return np.zeros(shape, dtype)
    return np.memmap(path, dtype, "r", file.tell(), shape, "F" if is_fortran else "C")
