"""The Boltzmann experiment: its parts against exact answers, and the whole in a form of seconds."""

import json

import numpy as np
import pytest

from experiments.boltzmann import run as boltzmann_run
from experiments.boltzmann.estimates import ends_of, prefix_estimates, repeats_of
from experiments.boltzmann.machine import (
    Machine,
    RelaxedMoments,
    enumerate_machine,
    exact_draws,
    exact_states,
    random_machine,
    relax,
    smallest_shift,
)
from experiments.boltzmann.mean_field import distinct, fixed_points, matched_base, mean_field_mixture, objective
from experiments.boltzmann.study import Form
from experiments.boltzmann.tables import Curve, comparison_table
from thermocline.records import Draws

TINY = Form(8, 1, 4, 2, (50,), 20, 300, ("Gibbs CT",), False)


@pytest.fixture(scope="module")
def relaxation():
    pytest.importorskip("cvxpy")
    machine = random_machine(9, 3)
    machine = Machine(machine.weights, 5 * machine.biases)
    return relax(machine, smallest_shift(machine.weights))


def test_exact_draws_have_the_exact_moments(relaxation):
    generator, number = np.random.default_rng(0), 40_000
    of_units = enumerate_machine(relaxation.machine)
    states = exact_states(relaxation.machine, number, generator)
    error = np.sqrt((1 - of_units.mean**2) / number)
    assert np.all(np.abs(states.mean(axis=0) - of_units.mean) < 4.5 * error)
    truth = relaxation.moments(of_units)
    centred = exact_draws(relaxation, number, generator) - truth.mean
    assert np.all(np.abs(centred.mean(axis=0)) < 4.5 * centred.std(axis=0) / np.sqrt(number))
    products = centred[:, :, None] * centred[:, None, :]
    error = products.std(axis=0) / np.sqrt(number)
    assert np.all(np.abs(products.mean(axis=0) - truth.covariance) < 4.5 * error)


def test_mean_field_fits_are_fixed_points_below_the_evidence(relaxation):
    machine = relaxation.machine
    start = np.random.default_rng(1).uniform(-1, 1, (30, 9))
    means = distinct(fixed_points(machine, start))
    assert 1 < len(means) < 30
    assert np.allclose(means, np.tanh(means @ machine.weights + machine.biases), atol=1e-8)
    assert np.all(objective(machine, means) < enumerate_machine(machine).log_partition)
    assert np.all(objective(machine, np.clip(means + 0.01, -1, 1)) < objective(machine, means))


def test_base_has_the_moments_of_the_mixture_of_gaussians(relaxation):
    """Component by component as appendix B maps it: mean Qᵀm, covariance Qᵀ diag(1 - m²) Q + I."""
    machine, root = relaxation.machine, relaxation.root
    mixture, number = mean_field_mixture(machine, 0)
    start = np.tanh(0.5 * np.random.default_rng(0).normal(size=(100, 9)))
    means = distinct(fixed_points(machine, start))
    assert number == len(means)
    share = np.exp(objective(machine, means) - mixture.log_partition)
    assert abs(share.sum() - 1) < 1e-12
    centres = means @ root
    mean = share @ centres
    within = sum(w * (root.T * (1 - m**2)) @ root for w, m in zip(share, means, strict=True)) + np.eye(root.shape[1])
    covariance = within + ((centres - mean).T * share) @ (centres - mean)
    fit = matched_base(relaxation, mixture)
    assert np.allclose(fit.base.mean, mean)
    assert np.allclose(fit.base.scale_tril @ fit.base.scale_tril.T, covariance)
    exact = relaxation.moments(enumerate_machine(machine))
    difference = mixture.log_partition - enumerate_machine(machine).log_partition
    assert abs(fit.log_zeta - exact.log_evidence - difference) < 1e-10


def test_prefix_estimates_are_weighted_moments_of_the_prefix():
    generator, shape = np.random.default_rng(2), (6, 50)
    fields = {name: np.zeros(shape) for name in Draws._fields}
    fields["position"] = generator.normal(size=(*shape, 3)) + 1
    fields["log_weight_target"], fields["log_weight_base"] = generator.normal(size=(2, *shape))
    repeats = repeats_of(Draws(**fields), 2)
    assert len(repeats) == 3
    for end, estimate in zip((7, 50), prefix_estimates(repeats[1], 2.5, (7, 50)), strict=True):
        part = {name: fields[name][2:4, :end] for name in fields}
        target, base = np.exp(part["log_weight_target"]), np.exp(part["log_weight_base"])
        position = part["position"].reshape(-1, 3)
        assert isinstance(estimate, RelaxedMoments)
        assert np.isclose(estimate.log_evidence, 2.5 + np.log(target.mean() / base.mean()))
        assert np.allclose(estimate.mean, np.average(position, axis=0, weights=target.ravel()))
        assert np.allclose(estimate.covariance, np.cov(position.T, aweights=target.ravel(), ddof=0))


def test_ends_rise_to_all_draws():
    assert ends_of(10) == [10]
    ends = ends_of(25_000)
    assert ends[0] == 10
    assert ends[-1] == 25_000
    assert np.all(np.diff(ends) > 0)


def test_whole_experiment_in_its_smallest_form(tmp_path, monkeypatch):
    """Errors fall as the draws grow thirtyfold, by √30 if chains mix; a second call measures nothing again."""
    pytest.importorskip("cvxpy")
    numbers = boltzmann_run.main(TINY, tmp_path / "out", tmp_path / "parts")
    machine = numbers["machines"][0]
    run = machine["runs"]["Gibbs CT"]
    rmse = np.array(run["rmse"])
    assert np.all(rmse[-1] < 0.6 * rmse[0])
    assert run["gradients"] == 10 * 300 * 20
    assert machine["runs"]["AIS 50"]["gradients"] == 10 * 10 * (49 * 10 + 1)
    for name in ("figure.png", "projection.png", "README.md", "result.json"):
        assert (tmp_path / "out" / name).stat().st_size > 0, name
    monkeypatch.setattr(boltzmann_run, "study", lambda *arguments: pytest.fail("measured again"))
    again = boltzmann_run.main(TINY, tmp_path / "again", tmp_path / "parts")
    assert json.dumps(again["machines"]) == json.dumps(numbers["machines"])


def test_chains_that_end_before_the_shortest_annealing_are_said_to_have_no_time_in_common():
    rmse = np.ones((2, 3, 3))
    chains = Curve(np.array([0.1, 0.2, 0.3]), rmse, True)
    curves = {"AIS": Curve(np.array([1.0]), rmse[:, :1], False), "Gibbs CT": chains, "joint CT": chains}
    table = comparison_table(curves).splitlines()
    assert "| Gibbs CT / AIS | none in common |  |  |  |" in table
    assert any(line.startswith("| joint CT / Gibbs CT | 0.3 | 1.00 ×") for line in table)
