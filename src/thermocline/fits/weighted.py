"""Weighted draws of a target, from whatever holds them: what fits without a target learn from."""

from functools import partial
from typing import Any

import jax
import numpy as np

from thermocline.records import WeightedDraws
from thermocline.support.errors import ThermoclineError
from thermocline.support.flat import ravelled_rows, unravelled


def weighted_draws_of(source: Any, like: Any = None) -> WeightedDraws:
    """From a Result, or from a pair (positions, log weights).

    Positions are a PyTree whose leaves have a leading axis, or a matrix of ravelled ones if `like`, one
    position as the target takes it, is given. Log weights of None are equal; a draw of weight nothing is left out.
    """
    log_evidence = None
    if hasattr(source, "unconstrained"):  # a Result, which imports bases
        log_evidence = None if source.log_evidence is None else float(source.log_evidence.value)
        by_name = {name: values.reshape(-1, *values.shape[2:]) for name, values in source.unconstrained.items()}
        is_shown_alike = set(jax.tree.leaves(source.template)) == set(by_name)  # else positions are a dict by name
        positions = jax.tree.map(by_name.__getitem__, source.template) if is_shown_alike else by_name
        source = positions, np.ravel(source.draws.log_weight_target)
    if not isinstance(source, tuple | list) or len(source) != 2:
        raise ThermoclineError("give a Result, or a pair (positions, log_weights), with log_weights None if equal.")
    positions, log_weights = source
    flat = np.asarray(ravelled_rows(positions), float)
    log_weights = np.zeros(len(flat)) if log_weights is None else np.asarray(log_weights, float)
    if log_weights.shape != flat.shape[:1]:
        raise ThermoclineError(f"there are {len(flat)} positions but log weights of shape {log_weights.shape}.")
    used = np.isfinite(log_weights) & np.isfinite(flat).all(axis=1)
    if not used.any():
        raise ThermoclineError("no draw has a finite position and a finite log weight.")
    weight = np.exp(log_weights[used] - log_weights[used].max())
    one = jax.tree.map(lambda leaf: np.asarray(leaf, float)[0], positions) if like is None else like
    return WeightedDraws(flat[used], weight / weight.sum(), partial(unravelled, like=one), log_evidence)


def weighted_moments(positions: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of weighted rows, as of a population; the weights need not sum to one."""
    weights = weights / np.sum(weights)
    mean = weights @ positions
    centred = positions - mean
    return mean, (centred.T * weights) @ centred
