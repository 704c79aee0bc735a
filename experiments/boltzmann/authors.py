"""The paper's own ten machines, where their files are at hand: read only, and never stored here."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.boltzmann.machine import Machine, enumerate_machine
from experiments.common import REPOSITORY


class Authors(NamedTuple):
    """A machine of theirs, with the exact moments of its relaxation and log ζ as they found them."""

    machine: Machine
    log_evidence: float
    mean: np.ndarray
    covariance: np.ndarray
    log_zeta: float


def machines_folder() -> Path:
    """Where the machines are; `THERMOCLINE_DATA` names another folder of data."""
    data = os.environ.get("THERMOCLINE_DATA", REPOSITORY.parent / "shared" / "data")
    return Path(data) / "paper" / "gaussian-bmr"


def authors_machine(index: int) -> Authors:
    folder = machines_folder()
    if not folder.is_dir():
        raise FileNotFoundError(f"the authors' machines are not in {folder}; set THERMOCLINE_DATA to their folder")
    with np.load(folder / f"params_and_moms_{index}.npz") as own, np.load(folder / f"var_moms_{index}.npz") as fit:
        machine = Machine(own["weights"], own["biases"])
        log_evidence, log_zeta = float(own["log_norm_const_x"]), float(fit["var_log_norm"])
        return Authors(machine, log_evidence, own["expc_x"], own["covar_x"], log_zeta)


def log_partition_of(theirs: Authors) -> tuple[float, float]:
    """Log Z_B by their numbers and by ours.

    Their tr D is not stored, but follows from tr E[x xᵀ] = D + tr(E[s sᵀ] W) + tr D. They dropped directions of W + D
    that were only nearly null, so the two agree to about 5e-4 and no better.
    """
    weights, mean = theirs.machine.weights, theirs.mean
    ours = enumerate_machine(theirs.machine)
    trace = np.trace(theirs.covariance) + mean @ mean - mean.size - np.sum(ours.second * weights)
    log_partition = theirs.log_evidence - 0.5 * (trace + mean.size * np.log(2 * np.pi)) + len(weights) * np.log(2)
    return float(log_partition), ours.log_partition
