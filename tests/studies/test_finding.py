"""The study of what is found: what counts as lost, what is kept, and that time runs out."""

import json
import time
from types import SimpleNamespace

import numpy as np
import pytest

from studies import finding, finding_runs
from studies.finding_runs import Finding, located_modes, lost_modes, measures, run_once, true_modes
from studies.finding_table import HEADS, table
from studies.targets import AffineMap, generate, mapped
from studies.targets.mixtures import mixture_core
from thermocline.evaluator import Evaluator

NUM_DRAWS = 4096


def two_modes(distance, scale):
    """Half N(0, I), half `scale` times as wide at `distance`, in units of a thousandth, in two dimensions."""
    means, factors = np.array([[0.0, 0.0], [distance, 0.0]]), np.array([np.eye(2), scale * np.eye(2)])
    core = mixture_core(np.random.default_rng(0), np.full(2, 0.5), means, factors)
    return mapped(core, AffineMap(1e-3 * np.eye(2), np.array([5.0, 0.0])), 2.0, "two")


def lost_masses(generated, located):
    evaluate = Evaluator(generated.target)
    return [round(end.mass, 3) for end in lost_modes(true_modes(generated, evaluate), np.array(located), evaluate)]


def test_a_mode_is_lost_unless_one_is_located_near_it():
    generated = two_modes(8.0, 0.5)
    first, second = generated.modes.centres
    assert lost_masses(generated, [first, second]) == []
    assert lost_masses(generated, [first]) == [0.5]
    assert lost_masses(generated, [first, second + 0.2e-3]) == []
    assert lost_masses(generated, [first, second + 1e-3]) == [0.5]
    assert lost_masses(generated, np.zeros((0, 2))) == [0.5, 0.5]


def test_a_spike_is_not_the_slab_it_stands_on():
    generated = two_modes(0.4, 0.01)
    slab, spike = generated.modes.centres
    assert lost_masses(generated, [spike]) == [0.5]
    assert lost_masses(generated, [slab, spike]) == []


def test_components_that_share_a_mode_are_one():
    generated = two_modes(0.5, 1.0)
    endings = true_modes(generated, Evaluator(generated.target))
    assert [round(end.mass, 6) for end in endings] == [1.0]
    assert np.allclose(endings[0].position, [5.00025, 0.0], atol=1e-7)


@pytest.mark.parametrize("family", ["bounded", "funnel", "label switching", "heavy-tailed product"])
def test_modes_are_no_lower_than_the_centres(family):
    generated = generate(family, 1)
    evaluate = Evaluator(generated.target)
    endings = true_modes(generated, evaluate)
    assert len(endings) == (0 if generated.modes is None else len(generated.modes.centres))
    for end, centre in zip(endings, [] if generated.modes is None else generated.modes.centres, strict=True):
        assert evaluate.values(end.position[None])[0] >= evaluate.values(centre[None])[0]
    assert lost_modes(endings, np.array([end.position for end in endings]), evaluate) == []


def test_a_base_equal_to_the_target_has_full_share_and_no_error():
    generated = two_modes(8.0, 0.5)
    draws = generated.exact_draws(np.random.default_rng(1), NUM_DRAWS)
    log_base = Evaluator(generated.target).values(draws) - generated.log_evidence
    run = measures(generated, Finding(generated.modes.centres, 10, draws, log_base))
    assert run["share"] > 1 - 1e-9
    assert abs(run["difference"]) < 1e-9
    assert run["num_lost"] == 0


def test_located_modes_reads_a_fit():
    rows = np.arange(6.0).reshape(3, 2)
    peaks = [SimpleNamespace(highest=row) for row in rows]
    fit = SimpleNamespace(modes=SimpleNamespace(found=SimpleNamespace(peaks=peaks)))
    np.testing.assert_array_equal(located_modes(fit), rows)


def test_a_run_that_takes_too_long_is_ended_and_one_that_raises_is_kept(monkeypatch):
    def endless(_):
        while True:
            time.sleep(0.01)

    def broken(_):
        raise ValueError("no")

    monkeypatch.setattr(finding_runs, "FINDERS", {"endless": endless, "broken": broken})
    generated = two_modes(8.0, 0.5)
    assert run_once(generated, "endless", 0.1)["status"] == "timeout"
    assert run_once(generated, "broken", 5.0)["message"] == "ValueError: no"


def test_runs_are_made_once_and_tabled(monkeypatch, tmp_path, capsys):
    made = []

    def one_run(generated, finder, _):
        made.append(generated.seed)
        run = {"family": generated.family, "seed": generated.seed, "finder": finder, "status": "finished"}
        run |= {"dimension": generated.dimension, "log_volume_spread": generated.log_volume_spread, "seconds": 1.5}
        return run | {"num_modes": 3, "num_lost": 1, "evaluations": 1000, "share": 0.5, "z": 5.0}

    monkeypatch.setattr(finding, "run_once", one_run)
    options = ["--families", "gaussian mixture", "--mixtures", "6", "--out", str(tmp_path)]
    finding.main(options)
    finding.main(options)
    assert made == list(range(6))
    assert len([json.loads(path.read_text()) for path in tmp_path.glob("*.json")]) == 6
    shown = capsys.readouterr().out
    assert "6 of 6" in shown
    assert "6 of 18" in shown


def test_the_table_shows_runs_that_did_not_finish():
    run = {"family": "funnel", "seed": 0, "finder": "ours", "status": "timeout", "seconds": 120.0}
    shown = table([run | {"dimension": 3, "log_volume_spread": 0.0}], ["ours", "prototype"])
    assert "120.0" in shown
    assert all(head in shown for head in HEADS)
