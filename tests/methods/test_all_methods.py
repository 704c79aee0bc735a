"""The rivals through `tc.sample`: exact answers, one seed one answer, resume, save, extend, and swapped ends."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import thermocline as tc
from tests.conformance.exact import CONSTANT, FACTORS, MEANS
from tests.gaussian_pair import (
    FIRST,
    HMC,
    NUM_DRAWS,
    SECOND,
    assert_same,
    interrupted_and_resumed,
    run,
    target_of,
)
from thermocline.estimators.stages import stepping_stones, swap_rejections
from thermocline.methods import pilot
from thermocline.methods.pilot import equidistant_betas, rounded_up
from thermocline.movers import metric_of
from thermocline.paths import TemperatureSchedule
from thermocline.paths.reweighting import Curve

METHODS: dict[str, Any] = {
    "parallel": tc.ParallelTempering(HMC, num_replicas=6),
    "annealed": tc.AnnealedImportance(HMC, num_temperatures=12),
    "sequential": tc.SequentialMonteCarlo(HMC, num_particles=16),
}


def quick_or_slow(name):
    """Those that compile longest are slow; the conformance suite tests their laws and weights in small."""
    return pytest.param(name, marks=pytest.mark.slow) if name in ("sequential", "parallel") else name


@pytest.fixture(scope="module", params=[quick_or_slow(name) for name in METHODS])
def finished(request):
    return METHODS[request.param], run(METHODS[request.param])


def test_evidence_and_mean_are_right(finished):
    _, result = finished
    assert 0 < result.log_evidence.standard_error < 0.1
    assert abs(result.log_evidence.z_score(CONSTANT)) < 4
    mean = result.expectation(lambda x: x[0])
    assert mean.standard_error < 0.1
    assert abs(mean.z_score(MEANS[1][0])) < 4
    assert not result.is_joint


@pytest.mark.slow
def test_swapping_base_and_target_flips_the_sign(finished):
    method, forward = finished
    backward = run(method, target_of(FIRST, -CONSTANT), base=SECOND)
    first, second = forward.log_evidence, backward.log_evidence
    assert abs(second.z_score(-CONSTANT)) < 4
    assert abs(first.value + second.value) < 4 * np.hypot(first.standard_error, second.standard_error)


def test_one_seed_one_answer_for_any_chunk_size(finished):
    method, result = finished
    assert_same(run(method, chunk_size=7), result)
    assert not np.any(run(method, seed=6).draws.position == result.draws.position)


@pytest.mark.slow
def test_an_interrupted_run_resumes(finished, tmp_path, monkeypatch):
    method, result = finished
    options = {"stores": 4, "chunk_size": 20, "part": "run"}
    assert_same(interrupted_and_resumed(method, tmp_path / "run", monkeypatch, **options), result)


@pytest.mark.slow
def test_an_interrupted_pilot_resumes(tmp_path, monkeypatch):
    """The pilot is the same for all."""
    options = {"stores": 4, "chunk_size": 20, "part": "pilot"}
    again = interrupted_and_resumed(METHODS["annealed"], tmp_path / "run", monkeypatch, **options)
    assert_same(again, run(METHODS["annealed"]))


def test_a_saved_result_gives_the_same_and_goes_on(finished, tmp_path):
    method, result = finished
    result.save(tmp_path / "run.nc")
    loaded = tc.load(tmp_path / "run.nc")
    assert loaded.log_evidence == result.log_evidence
    assert loaded.checks == result.checks
    assert loaded.summary() == result.summary()
    longer = tc.extend(loaded, target_of(), num_draws=80, progress=False)
    assert_same(longer, run(method, num_draws=NUM_DRAWS + 80))


def test_what_needs_beta_says_so(finished):
    _, result = finished
    for ask in (lambda: result.log_partition(0.5), lambda: result.kl_base_to_target):
        with pytest.raises(ValueError, match="draws of x and beta together"):
            ask()


@pytest.mark.slow
def test_off_the_support_of_the_target(finished):
    method, _ = finished
    edge, deviation = 0.5, FACTORS[1][0, 0]
    result = run(method, target_of(edge=edge), num_draws=320)
    share = norm.sf((edge - MEANS[1][0]) / deviation)
    assert abs(result.log_evidence.z_score(CONSTANT + np.log(share))) < 4
    mean = MEANS[1][0] + deviation * norm.pdf((edge - MEANS[1][0]) / deviation) / share
    assert abs(result.expectation(lambda x: x[0]).z_score(mean)) < 4
    assert result.draws.is_nonfinite.mean() < 0.01


def test_replicas_travel_and_share_the_barrier():
    result = run(METHODS["parallel"], num_draws=400)
    stones = stepping_stones(result.draws, result.log_zeta)
    for estimate in (*stones, result.log_evidence):
        assert abs(estimate.z_score(CONSTANT)) < 4
    assert result.log_evidence.standard_error < max(stone.standard_error for stone in stones)
    assert result.draws.num_round_trips.sum() > 100
    rejections = swap_rejections(result.draws)
    assert rejections.max() - rejections.min() < 0.15  # the temperatures were placed where they are equal
    assert "barrier" in result.summary()
    assert "stepping stones" in result.summary()


def test_the_number_of_replicas_follows_the_measured_barrier(double):
    method = tc.ParallelTempering(HMC)
    tuning = method.initial_tuning(metric_of(np.ones(2)), np.zeros(8))
    for size, barrier, number in ((8, 3.4, 8), (8, 6.8, 16), (12, 3.4, 12), (16, 3.4, 8), (8, 7.0, 16)):
        betas = np.linspace(0.0, 1.0, size) ** 2
        measured = tuning._replace(schedule=TemperatureSchedule(betas, barrier=np.asarray(barrier)))
        resized = method.tuned(measured)
        assert resized.schedule.betas.size == number
        assert (resized is measured) == (number == size)
    assert np.asarray(resized.schedule.betas)[[0, -1]].tolist() == [0.0, 1.0]
    assert np.all(np.diff(resized.schedule.betas) > 0)
    assert tc.ParallelTempering(HMC, num_replicas=8).is_sized


@pytest.mark.slow
def test_too_few_replicas_at_first_become_enough(monkeypatch):
    """A pilot that finds hardly any barrier on a path that has one."""
    place = pilot.placed
    monkeypatch.setattr(pilot, "placed", lambda tuning, betas, _, wanted: place(tuning, betas, 8, wanted))
    narrow = tc.Gaussian(np.array([3.0, -2.0]), 0.02 * FACTORS[1])
    result = run(tc.ParallelTempering(HMC), target_of(narrow), num_draws=100)
    barrier = swap_rejections(result.draws).sum()
    number = len(result.schedule.betas)
    assert barrier > 3.6  # more than eight replicas are made for
    assert number >= 2 * barrier
    assert abs(result.log_evidence.z_score(CONSTANT)) < 4


def test_temperatures_lie_at_equal_divergences(double):
    betas = np.linspace(0, 1, 1001)
    speed = 10 / (0.01 + betas[:-1])  # a path that is long near the base
    curve = Curve(betas, np.zeros(1001), speed)
    chosen = np.asarray(equidistant_betas(curve, 30))
    travelled = np.interp(chosen, betas, np.append(0, np.cumsum(speed * np.diff(betas))))
    assert chosen[0] == 0
    assert chosen[-1] == 1
    assert np.ptp(np.diff(travelled)) < 0.2 * np.diff(travelled).mean()
    assert chosen[15] < 0.15


def test_sizes_are_few_so_that_programs_are_shared():
    assert [rounded_up(wanted, 4, 200) for wanted in (1, 8, 9, 13, 100, 1e9)] == [8, 8, 12, 16, 128, 200]


def test_a_schedule_that_does_not_rise_from_0_to_1_is_refused():
    for betas in ([0.1, 1.0], [0.0, 0.5], [0.0, 0.6, 0.5, 1.0], 0.5):
        with pytest.raises(tc.ThermoclineError, match="rise from 0 to 1"):
            run(tc.AnnealedImportance(HMC, betas=betas), num_draws=8)


@pytest.mark.slow
def test_tempered_transitions_draw_from_the_target_and_give_no_evidence():
    result = run(tc.TemperedTransitions(HMC, num_temperatures=12), num_draws=300)
    mean = result.expectation(lambda x: x[0])
    assert mean.standard_error < 0.05
    assert abs(mean.z_score(MEANS[1][0])) < 4
    assert result.log_evidence is None
    assert 0.2 < result.draws.jump_acceptance.mean() < 0.95


OTHERS: dict[str, Any] = {
    "transitions": tc.TemperedTransitions(HMC, num_temperatures=12),
    "extended": tc.experimental.ExtendedHamiltonian(tc.experimental.Langevin(num_steps=3)),
    "adiabatic": tc.experimental.AdiabaticMonteCarlo(HMC),
    "resized parallel": tc.ParallelTempering(HMC),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_the_others_repeat_resume_save_and_go_on(name, tmp_path, monkeypatch):
    method = OTHERS[name]
    result = run(method)
    assert_same(run(method, chunk_size=7), result)
    assert_same(interrupted_and_resumed(method, tmp_path / "run", monkeypatch, stores=14, chunk_size=16), result)
    result.save(tmp_path / "run.nc")
    loaded = tc.load(tmp_path / "run.nc")
    assert loaded.checks == result.checks
    assert_same(tc.extend(loaded, target_of(), num_draws=40, progress=False), run(method, num_draws=NUM_DRAWS + 40))


@pytest.mark.slow
def test_counts_agree_with_the_rao_blackwellised_ratio_and_know_less():
    method = tc.SimulatedTempering(HMC, betas=tc.sigmoidal_betas(6), neighbours=True)
    result = run(method, num_draws=800)
    counted = tc.count_based_evidence(result)
    assert abs(counted.z_score(CONSTANT)) < 4
    assert abs(result.log_evidence.z_score(CONSTANT)) < 4
    assert counted.standard_error > 1.2 * result.log_evidence.standard_error


def test_a_page_for_any_method(finished, tmp_path):
    pytest.importorskip("matplotlib")
    text = finished[1].report(tmp_path / "report.html").read_text()
    assert "weighs no draw for base and target both" in text
    assert ("The replicas of ParallelTempering travelled" in text) == isinstance(finished[0], tc.ParallelTempering)


def test_counts_need_a_ladder(finished):
    with pytest.raises(tc.ThermoclineError, match="ladder"):
        tc.count_based_evidence(finished[1])


def test_path_sampling_needs_a_ladder_from_end_to_end():
    result = run(tc.SimulatedTempering(HMC, betas=[0.1, 0.4, 1.0]), num_draws=40)
    with pytest.raises(tc.ThermoclineError, match=r"goes from 0\.1 to 1, and nothing is known beyond"):
        tc.thermodynamic_integration(result)


@pytest.mark.slow
def test_path_sampling_with_any_prior_of_beta():
    law = tc.Continuous.from_prior(lambda beta: 1.5 * beta - 0.3 * np.cos(6 * beta))
    result = run(tc.GibbsTempering(HMC, law), num_draws=1500)
    integral = tc.thermodynamic_integration(result)
    assert integral.standard_error < 0.1
    assert abs(integral.z_score(CONSTANT)) < 4
    assert abs(result.log_evidence.z_score(CONSTANT)) < 4


@pytest.mark.slow
def test_a_second_opinion_agrees_or_says_that_it_does_not(finished):
    other = tc.Gaussian(np.array([0.2, 0.1]), np.array([[1.2, 0.0], [0.0, 1.3]]))
    options: dict[str, Any] = {"base": other, "method": tc.GibbsTempering(HMC), "progress": False}
    check = tc.cross_check(finished[1], target_of(), num_gradients=2 * 10**5, **options)
    assert check.agrees
    assert check.num_gradients <= check.budget
    assert str(check).startswith("They agree within errors")
    check = tc.cross_check(finished[1], target_of(constant=CONSTANT + 0.7), num_gradients=2 * 10**5, **options)
    assert check.agrees is False
    assert str(check).startswith("They disagree")
