"""Rows of the tables of peers, from runs whose answers are known."""

import math

import pytest

from benchmarks.peers import equal_accuracy
from benchmarks.peers.report import commit_of, row, summary


def run(off=0.1, error=0.2, **more):
    made = {"problem": "ring 3-D", "log_evidence": 4.4 + off, "truth": 4.4, "error": error, "seconds": 3.0}
    return made | {"evaluations": 2000, "modes": 1, "num_modes": 1} | more


def test_one_seed_shows_its_error_and_its_sign():
    shown = row("ring 3-D", "ours", [run(-0.1)])
    assert shown[2:6] == ["1", "-0.100", "0.200", "1/1"]
    assert shown[6:] == ["3.0", "2.0e+03", "1 of 1"]


def test_seeds_are_summed_up_and_ends_are_counted():
    shown = row("ring 3-D", "ours", [run(0.3), run(-0.5, modes=0), {"problem": "ring 3-D", "ended": "raised"}])
    assert shown[2:6] == ["2/3", f"{math.sqrt((0.09 + 0.25) / 2):.3f}", "0.200", "1/2"]
    assert shown[-1] == "0 of 1"


def test_what_did_not_end_says_so():
    assert row("ring 3-D", "ours", [{"problem": "ring 3-D", "ended": "more than 60 s"}])[3] == "more than 60 s"


def test_a_peer_without_an_error_covers_nothing():
    assert row("ring 3-D", "blackjax_smc", [run(error=math.nan)])[4:6] == ["none", ""]
    assert summary("blackjax_smc", [run(error=math.nan)])[3] == "no error"
    assert summary("nutpie_draws", [run(math.nan, math.nan)])[2] == "no log Z"


def test_the_summary_counts_runs():
    runs = [run(0.05), run(0.3), run(-0.5), {"problem": "simplex 9-D", "ended": "more than 60 s"}]
    assert summary("ours", runs)[1:6] == ["2", "1/4", "2/3", "3/4", "1"]


@pytest.mark.parametrize(
    ("offs", "particles", "said"), [((0.1, 0.03), "1,000", "4.0"), ((0.1,), "2,000", "more than 40")]
)
def test_particles_double_until_the_error_is_as_small_or_time_is_up(monkeypatch, offs, particles, said):
    """Ours takes a second and says that it may be off by 0.04."""

    def kept(target, seed, number):
        step = int(math.log2(number / 500)) if number else 0
        off = offs[min(step, len(offs) - 1)] if number else 0.001
        return {"off": off, "error": 0.04, "seconds": (2.0 if len(offs) > 1 else 10.0) * 2**step if number else 1.0}

    monkeypatch.setattr(equal_accuracy, "kept", kept)
    made = equal_accuracy.row("pair 20-D", 2, math.inf)
    assert made is not None
    assert made[3] == particles
    assert made[-1] == said


def test_a_table_is_of_one_commit():
    """Others' versions are pinned; ours is whatever was checked out."""
    one, other = run(peer="ours", commit="abc1234"), run(peer="ours", commit="def5678")
    assert commit_of([one, one, run(peer="blackjax_smc", commit="def5678")]) == "abc1234"
    for runs in ([one, other], []):
        with pytest.raises(SystemExit, match="commits"):
            commit_of(runs)
