"""PyTrees as vectors and back, in NumPy: JAX's own way compiles a small program for every shape."""

from typing import Any

import jax
import numpy as np


def ravelled(tree: Any) -> np.ndarray:
    """The leaves as one vector, in JAX's order."""
    leaves = [np.ravel(leaf) for leaf in jax.tree.leaves(tree)]
    return leaves[0] if len(leaves) == 1 else np.concatenate(leaves)


def ravelled_rows(tree: Any) -> np.ndarray:
    """The leaves, whose leading axis counts rows, side by side."""
    leaves = [np.reshape(leaf, (np.shape(leaf)[0], -1)) for leaf in jax.tree.leaves(tree)]
    return leaves[0] if len(leaves) == 1 else np.concatenate(leaves, axis=1)


def unravelled(rows: np.ndarray, like: Any) -> Any:
    """PyTrees of the shape of `like` from vectors along the last axis; axes before it lead every leaf."""
    leaves, structure = jax.tree.flatten(like)
    ends = np.cumsum([np.size(leaf) for leaf in leaves])
    parts = np.split(np.asarray(rows), ends[:-1], axis=-1)
    lead = np.shape(rows)[:-1]
    shaped = [np.reshape(part, (*lead, *np.shape(leaf))) for part, leaf in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(structure, shaped)
