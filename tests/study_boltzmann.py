"""The paper's ten Boltzmann machines (section 7.2, appendix B) as targets with exact answers, and no base."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

import thermocline as tc
from benchmarks.boltzmann import log_density as relaxation_log_density
from tests.study_problems import StudyProblem

REPOSITORY = Path(__file__).resolve().parents[1]
CACHE = REPOSITORY / "build" / "boltzmann"
NULL_EIGENVALUE = 1e-4  # the programme's solution is singular; a modern solver leaves 1e-5 where 0 is meant


def machines_folder() -> Path:
    """The paper's ten Boltzmann machines; `THERMOCLINE_DATA` names another folder of data."""
    data = os.environ.get("THERMOCLINE_DATA", REPOSITORY.parent / "shared" / "data")
    return Path(data) / "paper" / "gaussian-bmr"


class Moments(NamedTuple):
    """Of a Boltzmann machine: log Z_B, E[s] and E[s sᵀ]."""

    log_partition: float
    mean: np.ndarray
    second: np.ndarray


def all_states(num_units: int) -> np.ndarray:
    return 1.0 - 2.0 * ((np.arange(2**num_units)[:, None] >> np.arange(num_units)) & 1)


def enumerate_machine(weights: np.ndarray, biases: np.ndarray) -> Moments:
    """Exact moments of sᵀWs/2 + sᵀb over all states.

    With the units in three parts the energy is a sum of three tables, one a pair of parts, so the sum over
    all states of a third part is a matrix product: 2³⁰ states are one product of 1024 x 1024 matrices.
    """
    parts = np.array_split(np.arange(len(biases)), 3)
    states = [all_states(len(part)) for part in parts]
    pairs = ((0, 1), (1, 2), (2, 0))
    logs = []
    for i, j in pairs:
        own = 0.5 * np.sum(states[i] @ weights[np.ix_(parts[i], parts[i])] * states[i], axis=1)
        coupling = states[i] @ weights[np.ix_(parts[i], parts[j])] @ states[j].T
        logs.append(coupling + (own + states[i] @ biases[parts[i]])[:, None])
    tables = [np.exp(log - log.max()) for log in logs]
    mean, second = np.zeros_like(biases), np.zeros_like(weights)
    total = np.sum(tables[0] * (tables[1] @ tables[2]).T)
    for k, (i, j) in enumerate(pairs):
        joint = tables[k] * (tables[(k + 1) % 3] @ tables[(k + 2) % 3]).T / total
        first = joint.sum(axis=1)
        mean[parts[i]] = first @ states[i]
        second[np.ix_(parts[i], parts[i])] = (states[i].T * first) @ states[i]
        second[np.ix_(parts[i], parts[j])] = states[i].T @ joint @ states[j]
        second[np.ix_(parts[j], parts[i])] = second[np.ix_(parts[i], parts[j])].T
    return Moments(float(np.log(total) + sum(log.max() for log in logs)), mean, second)


def smallest_shift(weights: np.ndarray) -> np.ndarray:
    """The diagonal D of the paper's semidefinite programme: least largest eigenvalue of W + D, none negative."""
    import cvxpy

    shift, largest = cvxpy.Variable(len(weights)), cvxpy.Variable()
    matrix, identity = weights + cvxpy.diag(shift), np.eye(len(weights))
    cvxpy.Problem(cvxpy.Minimize(largest), [matrix >> 0, largest * identity - matrix >> 0]).solve(cvxpy.CLARABEL)
    assert shift.value is not None, "the semidefinite programme was not solved"
    return shift.value


def relaxation(name: str, weights: np.ndarray, biases: np.ndarray, shift: np.ndarray) -> StudyProblem:
    """The relaxation with Q Qᵀ = W + D, null directions dropped (appendix B).

    W is taken as Q Qᵀ - D, so that the truth is that of the Q in use. E[tanh(q·x + b)] of a unit is its E[s].
    """
    eigenvalues, vectors = np.linalg.eigh(weights + np.diag(shift))
    kept = eigenvalues > NULL_EIGENVALUE
    root = vectors[:, kept] * np.sqrt(eigenvalues[kept])
    num_units, dimension = root.shape
    moments = enumerate_machine(root @ root.T - np.diag(shift), biases)
    log_evidence = moments.log_partition + 0.5 * shift.sum() + 0.5 * dimension * np.log(2 * np.pi)
    target = tc.Target(relaxation_log_density, np.zeros(dimension), {"root": root, "biases": biases})
    row, bias = root[0], biases[0]
    return StudyProblem(
        name,
        target,
        float(log_evidence - num_units * np.log(2.0)),
        lambda x: jnp.tanh(row @ x + bias),
        float(moments.mean[0]),
    )


def boltzmann(index: int) -> StudyProblem:
    """One of the paper's machines; its D is kept under build/, so that every process sees the same target."""
    with np.load(machines_folder() / f"params_and_moms_{index}.npz") as stored:
        weights, biases = stored["weights"], stored["biases"]
    cached = CACHE / f"{index}.npz"
    if not cached.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        np.savez(cached.with_suffix(f".{os.getpid()}.npz"), weights=weights, shift=smallest_shift(weights))
        cached.with_suffix(f".{os.getpid()}.npz").replace(cached)
    with np.load(cached) as solved:
        assert np.array_equal(solved["weights"], weights), f"{cached} is of another machine; delete it"
        shift = solved["shift"]
    return relaxation(f"boltzmann {index}", weights, biases, shift)


BOLTZMANN: dict[str, Callable[[], StudyProblem]] = {f"boltzmann {i}": partial(boltzmann, i) for i in range(10)}
