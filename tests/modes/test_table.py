"""The table of modes: masses two ways against exact ones, and visits counted by hand."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

import thermocline as tc
from studies.study_problems import gaussian_mixture
from tests.problems import mixture
from thermocline.auto.mode_masses import table_of_modes, table_of_modes_again
from thermocline.engine.explore import Exploration
from thermocline.engine.loop import Outcome
from thermocline.engine.progress import Silent
from thermocline.evaluator import Evaluator
from thermocline.fits.student_mixture import StudentMixture
from thermocline.modes.find import Found
from thermocline.modes.local import LocalModes, local_modes
from thermocline.modes.peaks import peak_of
from thermocline.modes.table import basins, crossings, mode_masses, mode_rows, visits_by_mode
from thermocline.records import BaseDraws, Draws, Estimate, Mode, ModeTable, SearchRecord

WEIGHTS = np.array([0.55, 0.3, 0.15])
MEANS = np.array([[6.0, 0.0, 1.0], [-5.0, 4.0, 0.0], [0.0, -7.0, -2.0]])
COVARIANCES = np.stack(
    [
        np.array([[1.0, 0.5, 0.0], [0.5, 0.8, 0.1], [0.0, 0.1, 0.6]]),
        np.diag([0.3, 0.2, 0.5]),
        np.array([[0.4, 0.0, -0.2], [0.0, 1.2, 0.0], [-0.2, 0.0, 0.7]]),
    ]
)
CONSTANT = -4.2
HEIGHTS = np.log(WEIGHTS) + CONSTANT - 0.5 * np.linalg.slogdet(2 * np.pi * COVARIANCES)[1]
THREE = gaussian_mixture("three", WEIGHTS, MEANS, COVARIANCES, CONSTANT).target


OFFSETS = np.array([[0.3, -0.2, 0.1], [0.0, 0.2, -0.3], [-0.2, 0.4, 0.0]])
RECORD = SearchRecord(1000, 100, 0, 0.2, 30, 20, 1.0)


def rows_of(known, draws, log_evidence, locations):
    """The modes at these locations, whose means and deviations are of no matter."""
    described = [(location, location, location) for location in locations]
    return mode_rows(known, draws, log_evidence, basins(known, draws.position), described)



def wrong_fits() -> LocalModes:
    """Modes with fits that are off the mark, too wide and of wrong masses, as a search leaves them."""
    roots = np.linalg.cholesky(1.5 * COVARIANCES)
    peaks = [peak_of(*parts, "look") for parts in zip(MEANS, HEIGHTS, roots, strict=True)]
    mixture = StudentMixture.of(MEANS + OFFSETS, roots, 5.0, np.log([0.2, 0.5, 0.3]))
    return local_modes(Found(peaks, [5, 3, 2], np.arange(3), RECORD), mixture)


def draws_at(position, log_weight_target, log_weight_base=None):
    """Draws of which nothing else is known."""
    nothing = np.zeros(log_weight_target.shape)
    base = nothing if log_weight_base is None else log_weight_base
    return Draws(position, *[nothing] * (len(Draws._fields) - 1))._replace(
        log_weight_target=log_weight_target, log_weight_base=base
    )


def drawn_evenly(num_chains=8, num_draws=2000):
    """Draws with as many from each component, so that their weights must tell the masses; and which it was."""
    generator = np.random.default_rng(4)
    component = generator.integers(3, size=(num_chains, num_draws))
    white = generator.normal(size=(num_chains, num_draws, 3, 1))
    position = MEANS[component] + (np.linalg.cholesky(COVARIANCES)[component] @ white)[..., 0]
    return draws_at(position, np.log(3 * WEIGHTS[component])), component


@pytest.fixture(scope="module")
def known() -> ModeTable:
    with jax.enable_x64(True):
        return mode_masses(np.random.default_rng(3), Evaluator(THREE), wrong_fits())


def test_masses_by_importance_are_exact_within_their_errors(known):
    assert np.all(known.log_mass_error > 0)
    assert np.all(known.log_mass_error < 0.1)
    assert np.all(np.abs(known.log_mass - np.log(WEIGHTS) - CONSTANT) < 4 * known.log_mass_error)
    assert 0 < known.log_total_error < 0.05
    assert abs(known.log_total - CONSTANT) < 4 * known.log_total_error
    assert known.search == RECORD
    assert known.counts == (5, 3, 2)


def test_errors_of_masses_are_calibrated():
    with jax.enable_x64(True):
        target = Evaluator(THREE)
        runs = [mode_masses(np.random.default_rng(seed), target, wrong_fits()) for seed in range(60)]
    z = np.array([(run.log_mass - np.log(WEIGHTS) - CONSTANT) / run.log_mass_error for run in runs])
    assert np.all(np.abs(z.std(axis=0) - 1) < 4 / np.sqrt(2 * 60))
    assert np.all(np.abs(z.mean(axis=0)) < 4 / np.sqrt(60))


def test_the_table_gives_both_masses_heaviest_first(known, double):
    draws, component = drawn_evenly()
    log_evidence = Estimate(CONSTANT, 0.01, 100)
    locations = [{"x": mean} for mean in MEANS]
    modes = rows_of(known, draws, log_evidence, locations)
    assert [mode.name for mode in modes] == ["mode 1", "mode 2", "mode 3"]
    for mode, weight, mean in zip(modes, WEIGHTS, MEANS, strict=True):
        np.testing.assert_array_equal(mode.location["x"], mean)
        assert abs(mode.mass.z_score(weight)) < 4
        assert 0 < mode.mass.standard_error < 0.05
        assert abs(mode.mass_by_importance.value - weight) < 4 * mode.mass_by_importance.standard_error
        assert mode.found_by == "look"
    moved = np.diff(component, axis=1) != 0
    assert sum(mode.entered for mode in modes) == sum(mode.left for mode in modes) == moved.sum()


def test_without_evidence_the_chains_alone_tell_the_masses(known, double):
    draws, _ = drawn_evenly()
    untempered = draws._replace(log_weight_base=np.full(draws.log_weight_base.shape, -np.inf))
    modes = rows_of(known, untempered, None, [{"x": mean} for mean in MEANS])
    assert all(np.isnan(mode.mass_by_importance.value) for mode in modes)
    assert all(abs(mode.mass.z_score(weight)) < 4 for mode, weight in zip(modes, WEIGHTS, strict=True))


# A chain that is at the target, goes to the base and comes back to the same mode, walks to the next, and ends
# in a third mode with hardly any weight there; a second chain stays where it is.
BASIN = np.array([[0, 0, 0, 0, 1, 1, 0, 2, 2], [1] * 9])
WEIGHT_FOR_TARGET = np.array([[1, 0, 1, 1, 1, 1, 0.1, 0.1, 0.1], [1] * 9])
WEIGHT_FOR_BASE = np.array([[0, 1, 0, 0, 0, 0, 0, 0, 0], [0] * 9])


def test_visits_are_the_effective_number_of_stays_by_weight():
    """Stays of weights 1, 2 and 0.1 in the first mode, 2 and 9 in the second, 0.2 in the third."""
    with np.errstate(divide="ignore"):
        logs = np.log(WEIGHT_FOR_TARGET), np.log(WEIGHT_FOR_BASE)
    draws = draws_at(BASIN[..., None].astype(float), *logs)
    exact = [3.1**2 / (1 + 4 + 0.01), 11**2 / (4 + 81), 1]
    assert visits_by_mode(draws, BASIN, 3).tolist() == [round(number) for number in exact] == [2, 1, 1]


def test_visits_of_chains_that_never_see_the_base():
    basin = np.array([[0, 0, 1, 0, 2, 2], [2, 2, 2, 2, 2, 2]])
    draws = draws_at(basin[..., None].astype(float), np.zeros(basin.shape), np.full(basin.shape, -np.inf))
    assert visits_by_mode(draws, basin, 4).tolist() == [2, 1, 2, 0]


def test_crossings_are_counted_at_any_temperature():
    entered, left = crossings(BASIN, 3)
    assert entered.tolist() == [1, 1, 1]
    assert left.tolist() == [2, 1, 0]


FAR = np.array([4e7, -3e7, 0.0])  # where no look goes


def test_a_mode_that_chains_alone_have_found_is_reported(double):
    """Where no start goes; a quarter of the weight of the draws is there."""
    weights, means = np.array([0.75, 0.25]), np.stack([MEANS[0], FAR])
    target = Evaluator(gaussian_mixture("far", weights, means, COVARIANCES[:2], 1.0).target)
    generator = np.random.default_rng(0)
    component = np.arange(400) % 4 == 0
    position = means[component.astype(int)] + generator.normal(size=(4, 400, 3)) * 0.5
    draws = draws_at(position, np.zeros((4, 400)))
    near = MEANS[0] + generator.normal(size=(2048, 3))
    nobody: Any = None
    explored = Exploration(
        nobody,
        Outcome(draws, nobody, None, 0, {}, 0),
        BaseDraws(near, np.zeros(2048), None, None),
        Estimate(0.0, 0.0, np.inf),
    )
    found = table_of_modes(5, target, tc.BaseFit(tc.Gaussian.diagonal(MEANS[0], 1.0), 0.0), explored, Silent())
    assert target.num_rows > 0
    assert sorted(found.found_by) == ["chains", "start"]
    place = found.found_by.index("chains")
    np.testing.assert_allclose(found.location[place], FAR, atol=1e-3)
    truth = 1.0 + np.log(weights)
    order = [1 - place, place]
    assert np.all(np.abs(found.log_mass[order] - truth) < 4 * found.log_mass_error[order])
    modes = rows_of(found, draws, Estimate(1.0, 0.01, 50), [{"x": row} for row in found.location])
    assert [mode.found_by for mode in modes] == ["start", "chains"]
    assert modes[1].mass.value == pytest.approx(0.25, abs=1e-9)
    assert modes[1].visits == 400


def test_a_run_that_goes_on_reports_what_its_chains_have_found_since(known, double):
    """Known were the first three; the new mode is where no start goes, and holds a fifth of all."""
    weights, means = np.append(0.8 * WEIGHTS, 0.2), np.concatenate([MEANS, FAR[None]])
    covariances = np.concatenate([COVARIANCES, COVARIANCES[:1]])
    target = Evaluator(gaussian_mixture("far", weights, means, covariances, CONSTANT).target)
    draws, _ = drawn_evenly()
    nobody: Any = None
    beyond = draws.position.copy()
    beyond[::2] = FAR + 0.5 * np.random.default_rng(0).normal(size=beyond[::2].shape)
    outcome = Outcome(draws._replace(position=beyond), nobody, None, 0, {}, 0)
    again = table_of_modes_again(5, target, known, Exploration(nobody, outcome, nobody, nobody), Silent())
    assert target.num_rows > 0
    assert again.found_by == (*["chains" if place[0] > 300 else "look" for place in again.location],)
    assert again.found_by.count("chains") == 1
    order = [int(np.argmin(np.sum((again.location - mean) ** 2, axis=1))) for mean in means]
    assert np.all(again.log_mass_error < 0.15)
    assert np.all(np.abs(again.log_mass[order] - np.log(weights) - CONSTANT) < 4 * again.log_mass_error[order])
    assert again.search.num_looks == known.search.num_looks


@pytest.fixture(scope="module")
def result() -> tc.Result:
    problem = mixture()
    return tc.sample(problem.target, base=problem.base, seed=2, num_chains=8, num_draws=500, progress=False)


def same_modes(some: tuple[Mode, ...], others: tuple[Mode, ...]) -> bool:
    """Equal in all; arrays of places element by element."""
    places = "location", "mean", "deviation"
    plain, arrays = [], []
    for modes in (some, others):
        plain.append([replace(mode, location={}, mean={}, deviation={}) for mode in modes])
        arrays.append([{name: x.tolist() for name, x in getattr(mode, of).items()} for mode in modes for of in places])
    return plain[0] == plain[1] and arrays[0] == arrays[1]


def test_a_result_knows_its_modes(result):
    assert len(result.modes) == 2
    for mode, weight, place in zip(result.modes, (0.7, 0.3), (3.0, -3.0), strict=True):
        assert mode.location["x"] == pytest.approx([place, 0.0], abs=0.01)
        assert abs(mode.mass.z_score(weight)) < 4
        assert abs(mode.mass_by_importance.z_score(weight)) < 4
        assert mode.visits >= 10
        assert mode.entered > 0


def test_modes_survive_saving_and_loading(result, tmp_path):
    result.save(tmp_path / "run.nc")
    loaded = tc.load(tmp_path / "run.nc")
    assert same_modes(loaded.modes, result.modes)
    assert loaded.checks == result.checks
    assert loaded.summary() == result.summary()


def test_an_extended_run_keeps_its_modes_and_visits_them_again(result):
    extended = tc.extend(result, mixture().target, progress=False)
    assert len(extended.modes) == 2
    assert all(after.visits > before.visits for before, after in zip(result.modes, extended.modes, strict=True))
