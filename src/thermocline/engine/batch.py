"""What runs together: the paths of some targets, what was learned of each, and where their chains stand."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from thermocline.methods.tuning import Tuning
from thermocline.paths import Path
from thermocline.support.pytree import pytree, static


@pytree
class Paths:
    """The paths of targets that differ in their data: leaves have a leading axis over them.

    A base that they share has none. The path of a single target has none anywhere: then a program is a plain call
    of the function of one target, and not a `vmap` of one.
    """

    path: Path
    is_shared: bool = static(default=False)
    is_single: bool = static(default=False)

    @staticmethod
    def of_one(path: Path) -> "Paths":
        return Paths(path, is_single=True)

    def __len__(self) -> int:
        return 1 if self.is_single else len(self.path.log_zeta)

    def map(self, function: Callable[..., Any], *stacked: Any) -> Any:
        """`function(path, *one of each)` for every target; everything but the path has the leading axis."""
        if self.is_single:
            return jax.tree.map(lambda leaf: leaf[None], function(self.path, *(at(tree, 0) for tree in stacked)))
        axes: Any = self.like(0, None)
        return jax.vmap(function, in_axes=(axes.path, *[0] * len(stacked)))(self.path, *stacked)

    def take(self, index: Any) -> "Paths":
        """The paths of some targets."""
        if self.is_single:
            return self
        base = self.path.base if self.is_shared else at(self.path.base, index)
        return Paths(Path(at(self.path.target, index), base, at(self.path.log_zeta, index)), self.is_shared)

    def one(self, index: int) -> Path:
        """The path of one target."""
        return self.path if self.is_single else self.take(index).path

    def with_log_zeta(self, log_zeta: Any) -> "Paths":
        """Of every target, with its leading axis."""
        given = np.asarray(log_zeta[0]) if self.is_single else log_zeta
        return Paths(Path(self.path.target, self.path.base, given), self.is_shared, self.is_single)

    def like(self, stacked: Any, shared: Any) -> "Paths":
        """A prefix of this tree, for what has a leading axis and for what has none."""
        stacked = shared if self.is_single else stacked
        base = shared if self.is_shared else stacked
        return Paths(Path(stacked, base, stacked), self.is_shared, self.is_single)


@pytree
class Batch:
    """Targets and their chains: leading axes are (target, chain) in `starts` and `states`, (target,) in `tuning`.

    All that a block of steps is computed from, so that the same block gives the same bits wherever it runs.
    """

    paths: Paths
    tuning: Tuning
    streams: np.ndarray  # (target, 2): seed and number, which the keys of a target's steps are made from
    chains: np.ndarray  # numbers of the chains, likewise
    starts: np.ndarray  # positions from which chains begin
    states: Any = None  # where they stand; None before they have begun

    def __len__(self) -> int:
        return len(self.paths)

    def block(self, targets: slice) -> "Batch":
        """Some targets."""
        tuning, streams, starts, states = at((self.tuning, self.streams, self.starts, self.states), targets)
        return Batch(self.paths.take(targets), tuning, streams, self.chains, starts, states)


class Blocks(NamedTuple):
    """How the rows of a batch are cut into blocks: always at the same places, as width changes rounding."""

    num_targets: int
    size: int

    def __len__(self) -> int:
        return -(-self.num_targets // self.size)

    def rows(self, block: int) -> slice:
        return slice(block * self.size, min((block + 1) * self.size, self.num_targets))

    def all_rows(self) -> list[slice]:
        return [self.rows(block) for block in range(len(self))]

    def place(self, target: int) -> tuple[int, int]:
        """The block of a target, and its row there."""
        return divmod(target, self.size)

    def active(self, is_active: np.ndarray) -> list[int]:
        """Blocks of which some target takes steps; the others are skipped."""
        return [block for block in range(len(self)) if is_active[self.rows(block)].any()]


def at(tree: Any, index: Any) -> Any:
    """Some targets, or one, of a tree whose leaves have a leading axis over targets."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def stacked(trees: list[Any]) -> Any:
    """One tree with a leading axis over targets, in NumPy."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)


def alike(trees: list[Any]) -> list[tuple[np.ndarray, Any]]:
    """Trees by structure and shapes: the places of those that are alike, and they, stacked."""
    places: dict[Any, list[int]] = {}
    for place, tree in enumerate(trees):
        shape = jax.tree.structure(tree), tuple(np.shape(leaf) for leaf in jax.tree.leaves(tree))
        places.setdefault(shape, []).append(place)
    return [(np.array(some), stacked([trees[place] for place in some])) for some in places.values()]


def joined(trees: list[Any]) -> Any:
    """Trees of some targets each as one of all of them, in NumPy."""
    return jax.tree.map(lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves]), *trees)


def where_active(is_active: np.ndarray, new: Any, old: Any) -> Any:
    """The new leaves of active targets, the old ones of those that rest; in NumPy."""
    if is_active.all():
        return new

    def choose(new: Any, old: Any) -> np.ndarray:
        return np.where(is_active.reshape(-1, *[1] * (np.ndim(new) - 1)), new, old)

    return jax.tree.map(choose, new, old)
