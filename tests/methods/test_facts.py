"""What methods state of themselves: their tunings agree with it, and nobody else finds it out by looking."""

import ast
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import thermocline as tc
from thermocline.methods import METHODS, Temperatures, check_method
from thermocline.methods.tuning import visits_base
from thermocline.movers import metric_of
from thermocline.results import storage
from thermocline.support.precision import to_numpy

SOURCE = Path(tc.__file__).parent
ALL: dict[str, Any] = {name: make() for name, make in METHODS.items()} | {
    "extended": tc.experimental.ExtendedHamiltonian(),
    "adiabatic": tc.experimental.AdiabaticMonteCarlo(),
    "paper": tc.GibbsTempering(law=tc.Continuous()),
}


def first_tuning(method):
    return method.initial_tuning(metric_of(np.ones(3)), np.random.default_rng(0).normal(size=200))


@pytest.mark.parametrize("name", ALL)
def test_a_tuning_has_the_temperatures_that_the_method_states(name):
    method = ALL[name]
    check_method(method)
    tuning = first_tuning(method)
    assert (tuning.law is not None) == (method.temperatures is Temperatures.LAW)
    assert (tuning.schedule is not None) == (method.temperatures is Temperatures.SCHEDULE)
    assert (tuning.curve is not None) == (name == "adiabatic")
    assert (tuning.bias is not None) == (name == "extended")
    assert method.first_draws > 0


@pytest.mark.parametrize("name", ALL)
def test_a_method_is_tuned_by_its_pilot_once(name):
    method = ALL[name]
    tuning = first_tuning(method)
    if method.is_sized or method.own_warmup == 0:  # others are sized by what they have measured
        assert method.tuned(tuning) is tuning
    if method.pilot is not None:
        before = first_tuning(method.pilot)
        assert method.pilot.pilot is None
        assert before.schedule is None
        after = method.tuned(before)
        assert after.law is None
        assert after.learning is None
        np.testing.assert_array_equal(after.schedule.betas, tuning.schedule.betas)


def test_who_visits_the_base():
    expected = {name: method.temperatures is Temperatures.SCHEDULE for name, method in ALL.items()}
    expected["simulated"] = True  # its ladder begins there
    assert {name: visits_base(first_tuning(method)) for name, method in ALL.items()} == expected
    assert not visits_base(first_tuning(tc.SimulatedTempering(betas=[0.1, 0.5, 1.0])))


@pytest.mark.parametrize("name", ALL)
def test_a_file_can_hold_the_method_and_all_that_it_learns(name):
    arrays: dict[str, np.ndarray] = {}
    kept = to_numpy((ALL[name], first_tuning(ALL[name])))
    again = storage.decode(storage.encode(kept, arrays), arrays)
    assert jax.tree.structure(again) == jax.tree.structure(kept)
    for one, other in zip(jax.tree.leaves(again), jax.tree.leaves(kept), strict=True):
        np.testing.assert_array_equal(one, other)


class HalfAMethod:
    has_evidence = True

    def step(self, keys, path, tuning, state):
        raise NotImplementedError


def test_a_method_that_does_not_state_its_facts_is_refused_with_their_names():
    target = tc.Target(lambda x: -0.5 * x @ x, np.zeros(2))
    with pytest.raises(tc.ThermoclineError, match=r"HalfAMethod lacks temperatures, is_sized, .*tuned.*extending"):
        tc.sample(target, base=tc.Gaussian.diagonal(np.zeros(2), 1.0), method=HalfAMethod())  # type: ignore[arg-type]
    with pytest.raises(tc.ThermoclineError, match="give an object with its options"):
        check_method(tc.GibbsTempering)


ABOUT = {"method", "methods", "law", "laws", "pilot", "chosen", "schedule"}
CLASSES = {"Continuous", "Ladder", "Law", "Learned", "Method", "Neighbours", "TemperatureSchedule"}
CLASSES |= {made.__name__ for made in METHODS.values()}


def guesses(tree):
    """Calls that look into a method or a law, by line."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        if node.func.id not in ("isinstance", "getattr", "hasattr"):
            continue
        subject, *rest = node.args
        name = getattr(subject, "attr", getattr(subject, "id", ""))
        asked = {part.id for other in rest for part in ast.walk(other) if isinstance(part, ast.Name)}
        if name in ABOUT or asked & CLASSES:
            yield node.lineno


def test_nobody_else_looks_into_methods_and_laws():
    """A fact is stated by the method, or asked of a function in methods/ or paths/."""
    found = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] not in ("methods", "paths")
        for line in guesses(ast.parse(path.read_text()))
    ]
    assert not found, f"isinstance, getattr or hasattr on a method or a law: state a fact instead: {found}"


@pytest.mark.parametrize("code", ["isinstance(x, Ladder)", "getattr(a.method, 'law', None)", "hasattr(law, 'betas')"])
def test_looking_is_noticed(code):
    assert list(guesses(ast.parse(code)))
