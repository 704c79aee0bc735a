"""Many targets by annealed importance sampling, and their bounds from both sides."""

import numpy as np
import pytest

import thermocline as tc
from tests.test_sample_many import DIMENSION, NUMBER, ORIGIN, TARGET, data_of, encoder, run, truths_of


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "num_warmup"),
    [
        (tc.AnnealedImportance(tc.HMC(step_size=0.4), betas=tc.sigmoidal_betas(12)), 0),
        (tc.AnnealedImportance(num_temperatures=12), 100),
    ],
    ids=["given temperatures", "those of a pilot"],
)
def test_annealed_runs_of_many_targets(method, num_warmup):
    """The mean weight is unbiased, however coarse the schedule."""
    data = data_of()
    results = run(data, method=method, num_warmup=num_warmup, num_draws=32)
    assert np.all(results.stacked("log_weight_base") == 0)
    assert results.stacked("log_ratio").shape == (NUMBER, 4, 32)
    tunings = [result.continuation.tuning for result in results]
    assert [tuning.schedule.betas.shape for tuning in tunings] == NUMBER * [(12,)]
    each = results.log_evidences
    assert np.all(np.abs(each.value - truths_of(data)) < 5 * each.standard_error)
    assert abs(results.log_evidence.z_score(truths_of(data).sum())) < 4
    assert results.log_evidence.standard_error < 0.5
    assert results[3].log_evidence.value == pytest.approx(each.value[3])
    assert (results.runs.by_target.warmup_gradients.min() > 0) == (num_warmup > 0)
    has_learned = [np.ptp(tuning.step_size) > 0 for tuning in tunings]
    assert np.all(np.array(has_learned) == (num_warmup > 0))


def test_annealed_runs_need_as_many_temperatures_everywhere():
    with pytest.raises(tc.ThermoclineError, match="give AnnealedImportance its num_temperatures"):
        run(data_of(), method=tc.AnnealedImportance())
    with pytest.raises(tc.ThermoclineError, match="rise from 0 to 1"):
        run(data_of(), method=tc.AnnealedImportance(betas=[0.0, 0.5]))
    with pytest.raises(tc.ThermoclineError, match="cannot run ParallelTempering"):
        run(data_of(), method=tc.ParallelTempering())


@pytest.mark.slow
def test_bounds_on_many_targets_hold_and_close():
    data = data_of()
    generator = np.random.default_rng(1)
    white = generator.normal(size=(NUMBER, DIMENSION))
    exact = {"x": data["mean"] + data["widths"] * white, "y": generator.normal(size=NUMBER)}
    options = {"base": encoder, "progress": False, "num_runs": 64}
    mover, truths = tc.HMC(step_size=0.4), truths_of(data)
    coarse, fine = (
        tc.bidirectional_many(TARGET, data, exact, method=tc.AnnealedImportance(mover, betas=betas), **options)
        for betas in (np.array([0.0, 1.0]), tc.sigmoidal_betas(24))
    )
    for bounds in (coarse, fine):
        assert np.all(bounds.lower < truths + 4 * bounds.lower_error)
        assert np.all(bounds.upper > truths - 4 * bounds.upper_error)
        assert np.array_equal(bounds.gap, bounds.upper - bounds.lower)
        offset = bounds.lower - bounds.forward.log_evidences.value  # but for the latter's correction of bias
        assert np.all(np.abs(offset) < bounds.lower_error)
    assert abs(fine.lower.sum() - truths.sum()) < 4 * np.sqrt(np.sum(fine.lower_error**2)) + 0.1
    assert abs(fine.upper.sum() - truths.sum()) < 4 * np.sqrt(np.sum(fine.upper_error**2)) + 0.1
    assert np.abs(fine.gap).mean() < np.abs(coarse.gap).mean()
    assert "stochastic bounds" in repr(fine)
    with pytest.raises(tc.ThermoclineError, match="one exact draw of each"):
        tc.bidirectional_many(TARGET, data, ORIGIN, method=tc.AnnealedImportance(betas=[0.0, 1.0]), **options)
    with pytest.raises(tc.ThermoclineError, match="num_runs is 6"):
        tc.bidirectional_many(TARGET, data, exact, method=tc.AnnealedImportance(), base=encoder, num_runs=6)
