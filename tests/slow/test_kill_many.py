"""Twenty kills at random moments of one run, and still every draw bit for bit."""

import random

import pytest

from studies.kills import study
from tests.engine.test_loop import NUM_DRAWS, NUM_WARMUP, assert_same, job, kill_after, steps_done


@pytest.mark.slow
def test_twenty_kills_lose_nothing(tmp_path):
    generator, folder, cache = random.Random(7), tmp_path / "checkpoint", str(tmp_path / "cache")
    last = NUM_WARMUP + NUM_DRAWS - 20
    for num_steps in sorted(generator.sample(range(2, last), 20)):
        kill_after(folder, max(num_steps, steps_done(folder) + 2), generator.uniform(0, 0.01), cache)
    assert_same(job(folder), job())


@pytest.mark.slow
def test_kills_at_any_moment_lose_nothing():
    """The search and its pilots too; with and without workers. `make kills` does many more."""
    for tally in study(6, [("sample", 0), ("sample_many", 2)], seed=1):
        assert tally.kills >= 1
        assert (tally.differing, tally.left) == (0, 0)
