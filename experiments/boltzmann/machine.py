"""Boltzmann machines and their Gaussian mixture relaxations (paper, appendix B), with exact moments of both."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import ortho_group

import thermocline as tc

EIGENVALUE_SCALE, EIGENVALUE_SLOPE, BIAS_SCALE = 6.0, 2.0, 0.1  # s_1, s_2 and the deviation of b in the paper
NULL_EIGENVALUE = 1e-4  # the programme's solution is singular; a modern solver leaves 1e-5 where 0 is meant


class Machine(NamedTuple):
    """The law of signed binary units s proportional to exp(sᵀWs/2 + sᵀb); W is symmetric."""

    weights: np.ndarray
    biases: np.ndarray


class Moments(NamedTuple):
    """Of a law of s: its log normalising constant log Z_B, E[s] and E[s sᵀ]."""

    log_partition: float
    mean: np.ndarray
    second: np.ndarray


class RelaxedMoments(NamedTuple):
    """Of a density of x: its log normalising constant log Z, E[x] and the covariance of x."""

    log_evidence: float
    mean: np.ndarray
    covariance: np.ndarray


def random_machine(num_units: int, seed: int) -> Machine:
    """Weights with a zero diagonal and eigenvalues crowded near plus and minus six, and small biases."""
    generator = np.random.default_rng(seed)
    rotation = ortho_group.rvs(num_units, random_state=generator)  # of Haar's law
    eigenvalues = EIGENVALUE_SCALE * np.tanh(EIGENVALUE_SLOPE * generator.normal(size=num_units))
    weights = (rotation * eigenvalues) @ rotation.T
    np.fill_diagonal(weights, 0.0)
    return Machine(weights, BIAS_SCALE * generator.normal(size=num_units))


def smallest_shift(weights: np.ndarray) -> np.ndarray:
    """The diagonal D of the paper's semidefinite programme: least largest eigenvalue of W + D, none negative."""
    import cvxpy

    shift, largest = cvxpy.Variable(len(weights)), cvxpy.Variable()
    matrix, identity = weights + cvxpy.diag(shift), np.eye(len(weights))
    cvxpy.Problem(cvxpy.Minimize(largest), [matrix >> 0, largest * identity - matrix >> 0]).solve(cvxpy.CLARABEL)
    assert shift.value is not None, "the semidefinite programme was not solved"
    return shift.value


def log_density(position: jax.Array, data: dict[str, jax.Array]) -> jax.Array:
    """-phi(x) of the paper: a Gaussian times one hyperbolic cosine a unit.

    The log of the cosine is |a| + log((1 + exp(-2|a|))/2): one exponential, which the gradient shares.
    """
    size = jnp.abs(data["root"] @ position + data["biases"])
    log_cosh = size + jnp.log1p(jnp.exp(-2 * size)) - jnp.log(2.0)
    return jnp.sum(log_cosh) - 0.5 * position @ position


class Relaxation(NamedTuple):
    """A density of x with Q Qᵀ = W + D, and the machine it relaxes."""

    machine: Machine
    root: np.ndarray  # Q
    shift: np.ndarray  # D

    @property
    def target(self) -> tc.Target:
        """The relaxation's density; Q and b are its data, so that machines of one size share compiled programs."""
        data = {"root": self.root, "biases": self.machine.biases}
        return tc.Target(log_density, np.zeros(self.root.shape[1]), data)

    def moments(self, of_units: Moments) -> RelaxedMoments:
        """Those of x that follow from moments of s, exact or approximate (the last three equations of appendix B)."""
        num_units, dimension = self.root.shape
        log_evidence = of_units.log_partition + 0.5 * self.shift.sum() + 0.5 * dimension * np.log(2 * np.pi)
        mean = self.root.T @ of_units.mean
        second = self.root.T @ of_units.second @ self.root + np.eye(dimension)
        return RelaxedMoments(float(log_evidence - num_units * np.log(2.0)), mean, second - np.outer(mean, mean))


def relax(machine: Machine, shift: np.ndarray) -> Relaxation:
    """The relaxation with the null directions of W + D dropped.

    What is dropped is only nearly null; so D is made to fit Q again, and W is taken as Q Qᵀ - D, of zero diagonal.
    """
    eigenvalues, vectors = np.linalg.eigh(machine.weights + np.diag(shift))
    kept = eigenvalues > NULL_EIGENVALUE
    root = vectors[:, kept] * np.sqrt(eigenvalues[kept])
    product = root @ root.T
    shift = np.diagonal(product).copy()
    return Relaxation(Machine(product - np.diag(shift), machine.biases), root, shift)


def all_states(num_units: int) -> np.ndarray:
    return 1.0 - 2.0 * ((np.arange(2**num_units)[:, None] >> np.arange(num_units)) & 1)


class Parts(NamedTuple):
    """The units in three parts; the log weight of a state is a sum of three tables, one a pair of parts."""

    units: list[np.ndarray]
    states: list[np.ndarray]
    log_tables: list[np.ndarray]  # of parts (0, 1), (1, 2) and (2, 0), a row for each state of the first


PAIRS = ((0, 1), (1, 2), (2, 0))


def parts_of(machine: Machine) -> Parts:
    """Three parts as even as can be: for 30 units tables of 1024 x 1024."""
    weights, biases = machine
    units = np.array_split(np.arange(len(biases)), 3)
    states = [all_states(len(part)) for part in units]
    log_tables = []
    for i, j in PAIRS:
        own = 0.5 * np.sum(states[i] @ weights[np.ix_(units[i], units[i])] * states[i], axis=1)
        coupling = states[i] @ weights[np.ix_(units[i], units[j])] @ states[j].T
        log_tables.append(coupling + (own + states[i] @ biases[units[i]])[:, None])
    return Parts(units, states, log_tables)


def enumerate_machine(machine: Machine) -> Moments:
    """Exact moments over all states: a sum over the states of the third part is a product of two tables."""
    units, states, log_tables = parts_of(machine)
    tables = [np.exp(log - log.max()) for log in log_tables]
    mean, second = np.zeros_like(machine.biases), np.zeros_like(machine.weights)
    total = np.sum(tables[0] * (tables[1] @ tables[2]).T)
    for k, (i, j) in enumerate(PAIRS):
        joint = tables[k] * (tables[(k + 1) % 3] @ tables[(k + 2) % 3]).T / total
        first = joint.sum(axis=1)
        mean[units[i]] = first @ states[i]
        second[np.ix_(units[i], units[i])] = (states[i].T * first) @ states[i]
        second[np.ix_(units[i], units[j])] = states[i].T @ joint @ states[j]
        second[np.ix_(units[j], units[i])] = second[np.ix_(units[i], units[j])].T
    return Moments(float(np.log(total) + sum(log.max() for log in log_tables)), mean, second)


def exact_states(machine: Machine, number: int, generator: np.random.Generator) -> np.ndarray:
    """Independent draws of s: the first two parts from the table of their joint law, the third given them."""
    _, states, log_tables = parts_of(machine)
    tables = [np.exp(log - log.max()) for log in log_tables]
    joint = tables[0] * (tables[1] @ tables[2]).T
    row, column = np.divmod(generator.choice(joint.size, number, p=(joint / joint.sum()).ravel()), joint.shape[1])
    cumulative = np.cumsum(tables[1][column] * tables[2].T[row], axis=1)
    last = np.sum(cumulative < generator.uniform(size=(number, 1)) * cumulative[:, -1:], axis=1)
    return np.concatenate([states[0][row], states[1][column], states[2][last]], axis=1)


def exact_draws(relaxation: Relaxation, number: int, generator: np.random.Generator) -> np.ndarray:
    """Independent draws of x: a unit Gaussian about Qᵀs."""
    states = exact_states(relaxation.machine, number, generator)
    return states @ relaxation.root + generator.normal(size=(number, relaxation.root.shape[1]))
