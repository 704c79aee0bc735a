"""Arrays that are maps of files: joined without memory, in a file beside theirs that has no name."""

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from thermocline.support.errors import CheckpointError

LARGE = 2.5e8  # bytes, from which what comes from files is not brought into memory as a whole


def joined(parts: Sequence[np.ndarray], axis: int = 0) -> np.ndarray:
    """Arrays one after another along an axis, in C order: in memory, unless some come from files and they are large."""
    folder = next((found for found in map(folder_of, parts) if found is not None), None)
    if folder is None or sum(part.nbytes for part in parts) <= LARGE:
        return np.ascontiguousarray(np.concatenate(parts, axis))
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    whole, begin = _unnamed(folder, tuple(shape), parts[0].dtype), 0
    for part in parts:
        place: list[Any] = [slice(None)] * whole.ndim
        place[axis] = slice(begin, begin + part.shape[axis])
        whole[tuple(place)] = part
        begin += part.shape[axis]
    return whole


def folder_of(array: Any) -> Path | None:
    """Where the file lies that an array is a view of, if it is of one."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and array.filename is not None:
            return Path(array.filename).parent
        array = array.base
    return None


def _unnamed(folder: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.memmap:
    """Room on the disk that is free again when nobody looks at it any more; all of it is taken at once."""
    size = int(np.prod(shape)) * dtype.itemsize
    try:
        with TemporaryFile(dir=folder) as file:
            if hasattr(os, "posix_fallocate"):  # a map of room that is not there would end in a signal
                os.posix_fallocate(file.fileno(), 0, size)
            file.truncate(size)
            whole = np.memmap(file, dtype, "r+", shape=shape)
    except OSError as error:
        raise CheckpointError(
            f"the draws in {folder} cannot be joined there ({error}): that takes {size:,} bytes. "
            " What was kept before is whole: make room, and the same call goes on."
        ) from error
    vars(whole)["filename"] = str(folder / "unnamed")  # for those who join it with others
    return whole
