"""Nothing lost: a run's folder of draws, and the small state that says how much of it counts."""

import json
import os
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import jax
import numpy as np

from thermocline.engine.drawn import Chunk
from thermocline.engine.plan import Round
from thermocline.records import Draws
from thermocline.support import sealed
from thermocline.support.errors import CheckpointError, brief

STATE = "state.npz"
PROGRESS = "phase", "round_index", "offset", "length", "step", "is_last_warmup"  # as the state's header has them


class Checkpoint:
    """A folder with `state.npz`, replaced whole, and one file of draws a chunk and block, never rewritten.

    Arrays are stored by position in the run's own PyTree, so nothing is executed on load; a
    fingerprint of target, base, options and devices tells whether they belong to this run. With `streams` draws are
    not held in memory but read from their files, as far as they are asked for.
    """

    def __init__(
        self, folder: str | os.PathLike[str], fingerprint: dict[str, str], *, streams: bool = False, part: str = ""
    ) -> None:
        self.folder = Path(folder)
        self.fingerprint = fingerprint | {"part": part}  # each file belongs to one part of one run
        self.streams = streams
        check_folder(folder)

    def exists(self) -> bool:
        return (self.folder / STATE).exists()

    def aside(self, name: str) -> "Checkpoint":
        """A folder within this one, for a part of the same run."""
        return Checkpoint(self.folder / name, self.fingerprint, streams=self.streams, part=name)

    def kept(self, first_step: int, block: int, chunk: Chunk) -> Chunk:
        """The chunk once its draws are in a file; it counts when `store` has counted it."""
        path = self.folder / f"draws_{first_step:012d}_{block:05d}.npz"
        fields = dict(zip(Draws._fields, chunk.read(*Draws._fields), strict=True))
        _write(path, {"is_active": chunk.is_active, **fields}, str(self.fingerprint))
        return self._chunk(path) if self.streams else chunk

    def store(self, coming: Round, offset: int, state: Any, num_draws: int) -> None:
        """Replace the state, so many steps into a round, which counts the draws in the files.

        A reader sees the old one or the new one.
        """
        arrays = {f"leaf_{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}
        place = coming.phase, coming.number, offset, coming.length, coming.first_step + offset, coming.is_last_warmup
        progress = dict(zip(PROGRESS, place, strict=True))
        header = json.dumps({"progress": progress, "num_draws": num_draws, "fingerprint": self.fingerprint})
        _write(self.folder / STATE, {"header": np.array(header), **arrays})

    def load(self, like: Any, num_blocks: int) -> tuple[Round, int, Any, list[list[Chunk]]]:
        """The round that a run stands in, how far into it, its state in the shape of `like`, its draws by block."""
        stored = _read(self.folder / STATE)
        try:
            header = json.loads(str(stored["header"]))
            phase, number, offset, length, step, is_last = (header["progress"][name] for name in PROGRESS)
            fingerprint, num_draws = header["fingerprint"], int(header["num_draws"])
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{self.folder / STATE} is not a thermocline checkpoint; remove the folder."
            ) from error
        self._check_ours(fingerprint)
        leaves, structure = jax.tree.flatten(like)
        restored = [_restore(stored.get(f"leaf_{i}"), leaf, self.folder) for i, leaf in enumerate(leaves)]
        state = jax.tree.unflatten(structure, restored)
        coming = Round(phase, number, step - offset, length, np.asarray(state.is_active), is_last)
        return coming, offset, state, self._chunks(step, num_draws, num_blocks)

    def put(self, name: str, description: Any, arrays: dict[str, np.ndarray]) -> None:
        """Keep what a run found before its first step: JSON, and the arrays that it names."""
        header = json.dumps({"description": description, "fingerprint": self.fingerprint})
        _write(self.folder / f"{name}.npz", {"header": np.array(header), **arrays})

    def get(self, name: str) -> tuple[Any, dict[str, np.ndarray]] | None:
        """What was put there, or None."""
        path = self.folder / f"{name}.npz"
        if not path.exists():
            return None
        stored = _read(path)
        try:
            header = json.loads(str(stored.pop("header")))
            description, fingerprint = header["description"], dict(header["fingerprint"])
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{path} is not of a thermocline checkpoint; remove the folder.") from error
        self._check_ours(fingerprint)
        return description, stored

    def _check_ours(self, fingerprint: dict[str, str]) -> None:
        differing = [name for name, value in self.fingerprint.items() if fingerprint.get(name) != value]
        if differing:
            raise CheckpointError(
                f"the checkpoint in {self.folder} belongs to another run: {', '.join(differing)} differ"
                f"{'s' if len(differing) == 1 else ''}. Resume with the same call, or choose an empty folder."
            )

    def _chunks(self, last_step: int, num_draws: int, num_blocks: int) -> list[list[Chunk]]:
        """Chunks that began before `last_step`; later ones were written by a run that was cut off."""
        chunks: list[list[Chunk]] = [[] for _ in range(num_blocks)]
        for path in sorted(self.folder.glob("draws_*.npz")):
            _, first_step, *block = path.stem.split("_")
            if int(first_step) < last_step:
                stored = _read(path, str(self.fingerprint))  # the whole of it once, so that its seal is known
                chunks[int(block[0])].append(self._chunk(path) if self.streams else _chunk_of(stored))
        found = sum(chunk.num_steps for each in chunks for chunk in each)
        if found != num_draws:
            raise CheckpointError(
                f"the checkpoint in {self.folder} counts {num_draws} draws a chain, but its files hold {found}: "
                "some are missing. Remove the folder and start again."
            )
        return chunks

    def _chunk(self, path: Path) -> Chunk:
        """A file of draws, mapped each time that some of it is asked for."""
        is_active, log_ratio = mapped(path, "is_active", "log_ratio")
        return Chunk(np.array(is_active), log_ratio.shape[2], partial(mapped, path))


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Make the folder, and see that files can be written there: better before a run than in the middle of one."""
    try:
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=path):
            pass
    except (OSError, TypeError, ValueError) as error:
        named = folder if isinstance(folder, str | os.PathLike) else brief(folder)
        raise CheckpointError(
            f"the checkpoint folder {named} cannot be written ({error}); choose another folder."
        ) from error


def _chunk_of(stored: dict[str, np.ndarray]) -> Chunk:
    """In memory, from the arrays of a file."""
    return Chunk.of(Draws(**{name: stored[name] for name in Draws._fields}), stored["is_active"])


def _write(path: Path, arrays: dict[str, Any], run: str = "") -> None:
    """Replace a file whole, sealed with its name and the run that it belongs to."""
    temporary = path.with_suffix(".tmp")
    try:
        with temporary.open("wb") as file:
            np.savez(file, seal=sealed.of_parts(arrays, path.name + run), **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise CheckpointError(
            f"{path} cannot be written ({error}). What was kept before is whole: make room, and the same call goes on."
        ) from error


def _read(path: Path, run: str = "") -> dict[str, np.ndarray]:
    """The arrays of a file that `_write` wrote."""
    with _readable(path), np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
        seal = arrays.pop("seal", None)
        if seal is not None and not np.array_equal(seal, sealed.of_parts(arrays, path.name + run)):
            raise ValueError("its seal is broken: it was changed, or is another's")
    if seal is None:
        raise CheckpointError(
            f"{path} is not a thermocline checkpoint, or of another version: go on with the version that began it, or "
            "remove the folder."
        )
    return arrays


def mapped(path: Path, *names: str) -> tuple[np.ndarray, ...]:
    """Arrays of an .npz file, which is not compressed, as maps of it: only what is looked at is read."""
    with _readable(path), zipfile.ZipFile(path) as archive, path.open("rb") as file:
        return tuple(_map(path, file, archive.getinfo(f"{name}.npy").header_offset) for name in names)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """A sentence where a file cannot be read."""
    try:
        yield
    except Exception as error:  # whatever those say who take a damaged file apart
        raise CheckpointError(
            f"{path} cannot be read ({error}); it is damaged or not ours. Remove the folder."
        ) from error


def _restore(stored: np.ndarray | None, like: Any, folder: Path) -> Any:
    if stored is None or stored.shape != np.shape(like) or stored.dtype != np.asarray(like).dtype:
        raise CheckpointError(f"the state in {folder} does not have the shape of this run; choose an empty folder.")
    return jax.device_put(stored, like.sharding) if isinstance(like, jax.Array) else stored


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
