"""What will not fit in memory is said before the run, and what does not is read from files."""

import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from thermocline.engine import memory
from thermocline.engine.memory import Needs, within_memory
from thermocline.engine.plan import Lengths
from thermocline.results import assemble
from thermocline.support import large

TARGET = tc.Target(lambda p: -0.5 * jnp.sum(p["x"] ** 2), {"x": np.full(40, 0.1)})
BASE = tc.Gaussian.diagonal({"x": np.zeros(40)}, 1.1)
NEEDS = Needs(dimension=10_000, num_chains=16, itemsize=8)
GROWING = Lengths(16, 100, 200, 2**14, 0.05)


def sample(**options):
    sizes = {"num_chains": 4, "num_warmup": 20, "num_draws": 40, "search": False, "progress": False}
    return tc.sample(TARGET, base=BASE, **{**sizes, **options})


def having(monkeypatch, free):
    monkeypatch.setattr(memory, "free_bytes", lambda: float(free))


def test_what_will_not_fit_is_said_before_anything_is_sampled(monkeypatch):
    having(monkeypatch, 2e9)
    with pytest.raises(tc.ThermoclineError, match="16 chains of 20,000,000 draws in 40") as said:
        sample(num_chains=16, num_draws=20_000_000)
    for advice in ("1.6 GB are free", "num_draws=", "checkpoint=", 'precision="float32"', "num_chains"):
        assert advice in str(said.value)


def test_the_number_of_draws_that_it_advises_fits(monkeypatch):
    having(monkeypatch, 16e9)
    most = NEEDS.most_draws(memory.USED * 16e9)
    fixed = Lengths(16, 100, most, 2**14)
    assert within_memory(NEEDS, fixed, is_stored=False) == fixed
    with pytest.raises(tc.ThermoclineError, match=f"num_draws={most} or less"):
        within_memory(NEEDS, fixed._replace(num_draws=most + 2), is_stored=False)


def test_a_run_that_doubles_its_draws_ends_where_memory_does_unless_they_stream(monkeypatch):
    having(monkeypatch, 16e9)
    assert within_memory(NEEDS, GROWING, is_stored=False).most_draws == 1600
    assert within_memory(NEEDS, GROWING, is_stored=True) == GROWING
    assert NEEDS.peak(1600) < memory.USED * 16e9 < NEEDS.peak(3200)


def test_a_run_that_memory_ended_says_so(monkeypatch):
    needs = Needs(40, 4, 8)
    having(monkeypatch, needs.peak(250) / memory.USED)
    result = sample(num_draws=100, target_error=1e-6)
    assert result.draws.log_ratio.shape == (4, 200)
    assert "the memory that was free (a folder as checkpoint= holds more draws)" in result.info.cut_short


def test_draws_that_stream_are_the_same_and_are_read_from_the_disk(monkeypatch, tmp_path):
    straight = sample()
    for module in (large, memory):
        monkeypatch.setattr(module, "LARGE", 1000)
    streamed = sample(checkpoint=tmp_path / "run", chunk_size=16)
    assert np.array_equal(streamed.draws.position, straight.draws.position)
    assert streamed.log_evidence == straight.log_evidence
    assert str(streamed.checks) == str(straight.checks)
    for leaf in (streamed.draws.position, streamed.parameters["x"], streamed.pool["x"], streamed.positions):
        assert large.folder_of(leaf) == tmp_path / "run"
    assert large.folder_of(straight.draws.position) is None
    again = sample(checkpoint=tmp_path / "run", chunk_size=16)  # resumed
    assert np.array_equal(again.draws.position, straight.draws.position)


def test_the_memory_that_is_free_is_of_this_machine():
    assert 1e8 < memory.free_bytes() < 1e14


def test_many_draws_are_shown_in_parts(monkeypatch):
    """As people see them, by one program of one size."""
    target = tc.Target(lambda x: -0.5 * x @ x, np.zeros(3), constrain=lambda x: {"y": jnp.exp(x), "first": x[0]})
    rows = np.random.default_rng(0).normal(size=(10, 3))
    groups = [rows, rows[:0], rows[:3]]
    together = assemble.in_coordinates(target, groups)
    monkeypatch.setattr(large, "LARGE", 10)
    monkeypatch.setattr(assemble, "SHOWN_AT_ONCE", 4)
    for (_, one), (_, other) in zip(together, assemble.in_coordinates(target, groups), strict=True):
        assert np.allclose(one["y"], other["y"], rtol=1e-6)
        assert np.array_equal(one["first"], other["first"])
    assert together[2][1]["y"].shape == (3, 3)
