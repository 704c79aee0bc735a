"""Seals: hashes by which a file that was cut, changed or put in another's place is known before it is believed."""

import hashlib
import os
from pathlib import Path

import numpy as np

MARK = b"\nthermocline sha256 "
LENGTH = len(MARK) + 64


def of_parts(arrays: dict[str, np.ndarray], place: str) -> np.ndarray:
    """Hash of arrays by name, and of where they belong."""
    digest = hashlib.sha256(place.encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(digest.digest(), np.uint8)


def seal(path: Path) -> None:
    """Put the hash of a file at its end, where HDF5 does not look, and have the disk keep it."""
    digest = _of_bytes(path, path.stat().st_size)
    with path.open("ab") as file:
        file.write(MARK + digest)
        file.flush()
        os.fsync(file.fileno())


def is_whole(path: Path) -> bool | None:
    """Whether a file is as it was sealed; None where it has no seal."""
    size = path.stat().st_size - LENGTH
    with path.open("rb") as file:
        file.seek(max(size, 0))
        end = file.read()
    return end[len(MARK) :] == _of_bytes(path, size) if end.startswith(MARK) else None


def _of_bytes(path: Path, size: int) -> bytes:
    """Hash of the first `size` bytes, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while size > 0 and (part := file.read(min(size, 2**20))):
            digest.update(part)
            size -= len(part)
    return digest.hexdigest().encode()
