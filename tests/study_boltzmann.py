"""The paper's ten Boltzmann machines (section 7.2, appendix B) as targets with exact answers, and no base."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from experiments.boltzmann.machine import Machine, Relaxation, enumerate_machine, relax, smallest_shift
from tests.study_problems import StudyProblem

REPOSITORY = Path(__file__).resolve().parents[1]
CACHE = REPOSITORY / "build" / "boltzmann"


def machines_folder() -> Path:
    """The paper's ten Boltzmann machines; `THERMOCLINE_DATA` names another folder of data."""
    data = os.environ.get("THERMOCLINE_DATA", REPOSITORY.parent / "shared" / "data")
    return Path(data) / "paper" / "gaussian-bmr"


def problem_of(name: str, relaxation: Relaxation) -> StudyProblem:
    """The relaxation and its truth. E[tanh(q·x + b)] of a unit is its E[s]."""
    of_units = enumerate_machine(relaxation.machine)
    row, bias = relaxation.root[0], relaxation.machine.biases[0]
    return StudyProblem(
        name,
        relaxation.target,
        relaxation.moments(of_units).log_evidence,
        lambda x: jnp.tanh(row @ x + bias),
        float(of_units.mean[0]),
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
    return problem_of(f"boltzmann {index}", relax(Machine(weights, biases), shift))


BOLTZMANN: dict[str, Callable[[], StudyProblem]] = {f"boltzmann {i}": partial(boltzmann, i) for i in range(10)}
