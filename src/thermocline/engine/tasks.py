"""What a worker of dask.distributed does: a task, with what many tasks share unpacked once."""

import pickle
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import computing_in


class Held:
    """Arrays that tasks share on a worker: they travel as bytes, and are unpacked for the first task."""

    def __init__(self, code: bytes, packed: bytes) -> None:
        self.code, self.packed, self.tree = code, packed, None

    def unpacked(self) -> Any:
        if self.tree is None:
            self.tree = jax.device_put(jax.tree.unflatten(structure_of(self.code), pickle.loads(self.packed)))
        return self.tree

    def __reduce__(self) -> Any:
        return Held, (self.code, self.packed)


def compute(
    code: bytes, places: list[int], held: list[Held], rest: bytes, precision: str, asked_by: dict[str, str]
) -> Any:
    """A task, on the worker: the function of its item, with NumPy for JAX's arrays."""
    check_versions({"a worker": versions()}, asked_by)
    with computing_in(precision):
        leaves = pickle.loads(rest)
        for place, tree in zip(places, held, strict=True):
            leaves[place] = tree.unpacked()
        function, item = jax.tree.unflatten(structure_of(code), leaves)
        return jax.tree.map(plain, function(item))


@lru_cache(maxsize=1024)
def structure_of(code: bytes) -> Any:
    """The registry of a worker: what was unpickled anew would not be what JAX has compiled."""
    try:
        return jax.tree.structure(pickle.loads(code))
    except (ImportError, AttributeError) as error:
        raise ThermoclineError(
            f"a worker cannot read the target ({error}): install what it needs there too, or send your own module "
            "along by cloudpickle.register_pickle_by_value(module)."
        ) from error


def plain(leaf: Any) -> Any:
    return np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf


def precision() -> str:
    """That is in force, in this thread."""
    return "float64" if jax.config.jax_enable_x64 else "float32"  # pyright: ignore[reportAttributeAccessIssue]


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Of what decides the bits and what can be unpickled."""
    return own_versions()()


def own_versions() -> Callable[[], dict[str, str]]:
    """By value, so that a worker of any version can say its own."""

    def own() -> dict[str, str]:
        from importlib.metadata import PackageNotFoundError, version
        from platform import python_version

        found = {"Python": python_version().rpartition(".")[0]}
        for package in ("thermocline", "jax"):
            try:
                found[package] = version(package)
            except PackageNotFoundError:
                found[package] = "missing"
        return found

    return own


def check_versions(there: dict[str, dict[str, str]], here: dict[str, str]) -> None:
    for worker, found in there.items():
        for package in here:
            if found[package] != here[package]:
                raise ThermoclineError(
                    f"{worker} has {package} {found[package]}, and this process {here[package]}: draws would depend "
                    "on who computes them. Install the same version there."
                )
