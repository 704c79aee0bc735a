"""What people see of a run: labelled times, bars that stay where an interruption left them, all of its seconds."""

import time
from io import StringIO

import pytest

import thermocline as tc
from thermocline.engine.progress import Live, Part, times_of, watched


@pytest.fixture
def live():
    from rich.console import Console

    shown = Live(Console(file=StringIO(), force_terminal=True, width=160))
    yield shown
    shown.close()


def started(live, done):
    live.phase("sampling", 100)
    live.advance(done, 10)
    live.show()
    return live.bar.tasks[0]


def interrupted(live):
    with watched(live):
        started(live, 30)
        raise KeyboardInterrupt


def test_an_interrupted_bar_stays_where_it_was(live):
    with pytest.raises(KeyboardInterrupt):
        interrupted(live)
    task = live.bar.tasks[0]
    assert task.percentage == 30
    assert task.description == "interrupted: sampling"


def test_a_phase_that_is_over_is_whole_however_long_it_was_to_be(live):
    with watched(live):
        task = started(live, 30)
        live.phase("table of modes", None)
    assert task.percentage == 100


def test_times_are_labelled_and_no_share_is_shown_of_what_has_no_length(live):
    task = started(live, 50)
    assert times_of(task).startswith(" 50%, 0:00 elapsed")
    live.phase("searching for modes", None)
    time.sleep(0.01)
    assert times_of(live.bar.tasks[1]) == "0:00 elapsed"


def test_phases_of_a_pilot_are_named_as_its_own(live):
    Part("pilot 2", live).phase("warm-up", 10)
    assert live.bar.tasks[0].description == "pilot 2: warm-up"


def test_the_seconds_are_those_of_the_whole_call():
    small = {"num_chains": 2, "num_warmup": 4, "num_draws": 8, "search": False, "progress": False}
    began = time.monotonic()
    result = tc.sample(tc.Target(lambda x: -0.5 * x**2, 0.5), base=tc.Gaussian.diagonal(0.0, 1.0), **small)
    elapsed = time.monotonic() - began
    assert 0.95 * elapsed < result.cost.seconds.total <= elapsed
