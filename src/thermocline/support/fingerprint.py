"""Short hashes that tell whether two runs are about the same thing."""

import hashlib
import re
from typing import Any, NamedTuple

import jax
import numpy as np

ADDRESS = re.compile(r"0x[0-9a-f]+")


def of_arrays(tree: Any) -> str:
    """Hash of the structure and the values of a PyTree."""
    digest = hashlib.sha256(ADDRESS.sub("", str(jax.tree.structure(tree))).encode())
    for leaf in jax.tree.leaves(tree):
        array = np.asarray(leaf)
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def of_function(function: Any, *arguments: Any) -> str:
    """Hash of what a function computes: its JAX program and the constants closed over."""
    closed = jax.make_jaxpr(function)(*arguments)
    digest = hashlib.sha256(ADDRESS.sub("", str(closed.jaxpr)).encode())
    return hashlib.sha256((digest.hexdigest() + of_arrays(closed.consts)).encode()).hexdigest()[:16]


class Fingerprint(NamedTuple):
    """Short hashes and names of all that decides the draws."""

    target: str
    data: str
    base: str
    log_zeta: str
    method: str
    seed: str
    number_of_chains: str
    precision: str
    number_of_devices: str
    version: str

    def marks(self) -> dict[str, str]:
        """By names for people."""
        return {name.replace("_", " "): mark for name, mark in self._asdict().items()}
