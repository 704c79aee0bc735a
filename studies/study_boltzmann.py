"""The paper's ten Boltzmann machines (section 7.2, appendix B) as targets with exact answers, and no base."""

import os
from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
import numpy as np

from experiments.boltzmann.authors import authors_machine
from experiments.boltzmann.machine import Relaxation, enumerate_machine, relax, smallest_shift
from experiments.common import REPOSITORY
from studies.study_problems import StudyProblem

CACHE = REPOSITORY / "build" / "boltzmann"


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


def authors_relaxation(index: int) -> Relaxation:
    """Of one of the paper's machines; its D is kept under build/, so that every process sees the same target."""
    machine = authors_machine(index).machine
    cached = CACHE / f"{index}.npz"
    if not cached.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        unfinished = cached.with_suffix(f".{os.getpid()}.npz")
        np.savez(unfinished, weights=machine.weights, shift=smallest_shift(machine.weights))
        unfinished.replace(cached)
    with np.load(cached) as solved:
        assert np.array_equal(solved["weights"], machine.weights), f"{cached} is of another machine; delete it"
        shift = solved["shift"]
    return relax(machine, shift)


def boltzmann(index: int) -> StudyProblem:
    return problem_of(f"boltzmann {index}", authors_relaxation(index))


BOLTZMANN: dict[str, Callable[[], StudyProblem]] = {f"boltzmann {i}": partial(boltzmann, i) for i in range(10)}
