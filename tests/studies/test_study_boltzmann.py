"""Boltzmann machines counted state by state, their relaxations by importance sampling, and the authors' numbers."""

import numpy as np
import pytest
from scipy.special import logsumexp

from experiments.boltzmann.authors import authors_machine, log_partition_of, machines_folder
from experiments.boltzmann.machine import (
    Machine,
    all_states,
    enumerate_machine,
    exact_states,
    random_machine,
    relax,
    smallest_shift,
)
from studies import study_boltzmann as boltzmann
from studies.study_problems import random_directions
from tests.studies.test_study_problems import NUM_DRAWS, check_by_importance, evaluate

pytestmark = pytest.mark.usefixtures("double")


def brute_force(weights, biases):
    """Every state, and its log weight."""
    states = all_states(len(biases))
    return states, 0.5 * np.einsum("si,ij,sj->s", states, weights, states) + states @ biases


@pytest.mark.parametrize("num_units", [7, 12])
def test_enumeration_equals_brute_force(num_units):
    """Uneven parts too, and biases large enough to matter."""
    weights, biases = random_machine(num_units, 4)
    biases = 5 * biases
    moments = enumerate_machine(Machine(weights, biases))
    states, log_weights = brute_force(weights, biases)
    probability = np.exp(log_weights - logsumexp(log_weights))
    assert abs(moments.log_partition - logsumexp(log_weights)) < 1e-10
    assert np.max(np.abs(moments.mean - probability @ states)) < 1e-10
    assert np.max(np.abs(moments.second - (states.T * probability) @ states)) < 1e-10


def small_relaxation():
    pytest.importorskip("cvxpy")
    weights, biases = random_machine(6, 5)
    machine, shift = Machine(weights, 5 * biases), smallest_shift(weights)
    return boltzmann.problem_of("small", relax(machine, shift)), weights, shift


def test_small_relaxation_by_importance_from_its_wider_components():
    problem, weights, shift = small_relaxation()
    root, biases = problem.target.data["root"], problem.target.data["biases"]
    assert root.shape[1] < 6, "the programme's solution is singular"
    assert np.allclose(root @ root.T, weights + np.diag(shift), atol=1e-4)
    states, energies = brute_force(weights, biases)
    generator = np.random.default_rng(6)
    probability = np.exp(energies - logsumexp(energies))
    chosen = generator.choice(len(states), NUM_DRAWS, p=probability)
    draws = states[chosen] @ root + 1.2 * generator.normal(size=(NUM_DRAWS, root.shape[1]))
    squares = np.sum(draws**2, axis=1)[:, None] - 2 * draws @ (states @ root).T + np.sum((states @ root) ** 2, axis=1)
    log_parts = np.log(probability) - squares / (2 * 1.2**2) - root.shape[1] * np.log(1.2 * np.sqrt(2 * np.pi))
    check_by_importance(problem, draws, logsumexp(log_parts, axis=1))


def test_shift_is_the_optimum_of_the_programme():
    """No step in 2000 random directions lowers the largest eigenvalue, and a multiple of the identity is worse."""
    _, weights, shift = small_relaxation()
    eigenvalues = np.linalg.eigvalsh(weights + np.diag(shift))
    assert eigenvalues[0] > -1e-5
    generator = np.random.default_rng(7)
    steps = shift + 0.02 * random_directions(generator, 2000, 6)
    others = np.linalg.eigvalsh(weights + steps[:, :, None] * np.eye(6))
    others = others[:, -1] - np.minimum(others[:, 0], 0)  # lifted until feasible
    assert np.all(others > eigenvalues[-1] - 1e-4)
    assert eigenvalues[-1] < np.ptp(np.linalg.eigvalsh(weights))


needs_machines = pytest.mark.skipif(not machines_folder().is_dir(), reason="the paper's machines are absent")


@needs_machines
@pytest.mark.parametrize("index", range(10))
def test_log_partition_is_the_authors(index):
    theirs, ours = log_partition_of(authors_machine(index))
    assert abs(theirs - ours) < 5e-4


@needs_machines
def test_relaxation_by_exact_draws(monkeypatch, tmp_path):
    """E[q/p] = 1/Z over draws of the relaxation, for a normalised q inside it; and E[tanh] is E[s]."""
    pytest.importorskip("cvxpy")
    monkeypatch.setattr(boltzmann, "CACHE", tmp_path)
    problem, again = boltzmann.boltzmann(4), boltzmann.boltzmann(4)
    assert problem.log_evidence == again.log_evidence, "the second comes from the cache"
    root, generator, number = problem.target.data["root"], np.random.default_rng(8), 20_000
    states = exact_states(authors_machine(4).machine, number, generator)
    draws = states @ root + generator.normal(size=(number, root.shape[1]))
    log_density, values = evaluate(problem, draws)
    assert abs(values.mean() - problem.mean) < 4 * values.std() / np.sqrt(number)

    kept, counts = np.unique(states[: number // 2], axis=0, return_counts=True)  # and tested on the other half
    centres, rest = kept @ root, draws[number // 2 :]
    squares = np.sum(rest**2, axis=1)[:, None] - 2 * rest @ centres.T + np.sum(centres**2, axis=1)
    log_q = logsumexp(np.log(counts / counts.sum()) - squares / (2 * 0.8), axis=1)
    log_q -= 0.5 * root.shape[1] * np.log(2 * np.pi * 0.8)
    log_ratio = log_q - log_density[number // 2 :]
    ratio = np.exp(log_ratio - log_ratio.max())
    error = ratio.std() / ratio.mean() / np.sqrt(ratio.size)
    estimate = -(np.log(ratio.mean()) + log_ratio.max())
    assert error < 0.02
    assert abs(estimate - problem.log_evidence) < 4 * error
