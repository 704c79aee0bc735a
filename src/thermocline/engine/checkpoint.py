"""Nothing lost: a run's folder of draws, and the small state that says how much of it counts."""

import json
import os
import zipfile
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.records import Draws
from thermocline.support.errors import CheckpointError

STATE = "state.npz"


class Progress(NamedTuple):
    """Where a run stands: which phase and round, how far into it, and how many steps in all."""

    phase: int
    round_index: int
    offset: int
    step: int


class Checkpoint:
    """A folder with `state.npz`, replaced whole, and one file of draws a chunk, never rewritten.

    Arrays are stored by position in the run's own PyTree, so nothing is executed on load; a
    fingerprint of target, base, options and devices tells whether they belong to this run.
    """

    def __init__(self, folder: str | os.PathLike[str], fingerprint: dict[str, str]) -> None:
        self.folder = Path(folder)
        self.fingerprint = fingerprint
        check_folder(folder)

    def exists(self) -> bool:
        return (self.folder / STATE).exists()

    def aside(self, name: str) -> "Checkpoint":
        """A folder within this one, for a part of the same run."""
        return Checkpoint(self.folder / name, self.fingerprint)

    def store(self, progress: Progress, tree: Any, chunk: Draws | None, num_draws: int) -> None:
        """A chunk of draws, where there is one, then the state that counts it among `num_draws` a chain."""
        if chunk is not None:
            first_step = progress.step - chunk.log_ratio.shape[1]
            _write(self.folder / f"draws_{first_step:012d}.npz", chunk._asdict())
        self.save(progress, tree, num_draws)

    def save(self, progress: Progress, tree: Any, num_draws: int) -> None:
        """Replace the state; a reader sees the old one or the new one, never half of one."""
        arrays = {f"leaf_{i}": _to_storable(leaf) for i, leaf in enumerate(jax.tree.leaves(tree))}
        header = json.dumps({"progress": progress._asdict(), "num_draws": num_draws, "fingerprint": self.fingerprint})
        _write(self.folder / STATE, {"header": np.array(header), **arrays})

    def load(self, like: Any) -> tuple[Progress, Any, list[Draws]]:
        """The stored state in the shape of `like`, and the chunks of draws it counts."""
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
        return progress, jax.tree.unflatten(structure, restored), self._chunks(progress.step, num_draws)

    def _chunks(self, last_step: int, num_draws: int) -> list[Draws]:
        """Chunks that began before `last_step`; later ones were written by a run that was cut off."""
        chunks = []
        for path in sorted(self.folder.glob("draws_*.npz")):
            if int(path.stem.split("_")[1]) < last_step:
                stored = _read(path)
                chunks.append(Draws(**{name: stored[name] for name in Draws._fields}))
        found = sum(chunk.log_ratio.shape[1] for chunk in chunks)
        if found != num_draws:
            raise CheckpointError(
                f"the checkpoint in {self.folder} counts {num_draws} draws a chain, but its files hold {found}: "
                "some are missing. Remove the folder and start again."
            )
        return chunks


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
