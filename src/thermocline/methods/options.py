"""Options of our own methods, movers and laws, checked once at the door, by name."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from thermocline.paths.path import checked_betas
from thermocline.support.errors import ThermoclineError, brief
from thermocline.support.options import is_number, is_whole

Rule = tuple[Callable[[Any], bool], str]  # whether a value is good, and what to give


def _between(low: float, high: float) -> Callable[[Any], bool]:
    return lambda value: is_number(value) and low < value < high


def _whole(least: int, most: int = 2**20) -> Callable[[Any], bool]:
    return lambda value: is_whole(value) and least <= value <= most


def _optional(rule: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or rule(value)


def _numbers(value: Any, is_good: Callable[[np.ndarray], Any] = np.isfinite) -> bool:
    """Whether all of an array, which must hold real numbers, is good."""
    try:
        array = np.asarray(value)
    except ValueError:
        return False
    return array.dtype.kind in "iuf" and array.size > 0 and bool(np.all(is_good(array)))


def _rising(value: Any) -> bool:
    """Whether inverse temperatures rise within [0, 1]."""
    return _numbers(value, lambda a: (a.ndim == 1) & (a >= 0) & (a <= 1)) and bool(np.all(np.diff(value) > 0))


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda value: not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in names)


POSITIVE = _between(0, np.inf)
RULES: dict[str, Rule] = {
    "mover": (_has("move"), "a mover such as tc.HMC()"),
    "law": (_has("log_weight", "log_mass", "sample"), "a law such as tc.Continuous()"),
    "control_map": (callable, "a function of u such as tc.Logistic()"),
    "step_size": (_optional(POSITIVE), "a positive number, or None for one that warm-up finds"),
    "mass": (_optional(POSITIVE), "a positive number, or None"),
    "num_steps": (_whole(1), "a positive integer"),
    "num_legs": (_whole(1), "a positive integer"),
    "num_moves": (_whole(1), "a positive integer"),
    "num_particles": (_whole(2), "an integer of at least 2"),
    "num_temperatures": (_optional(_whole(2)), "an integer of at least 2, or None for what a pilot finds"),
    "num_replicas": (_optional(_whole(2)), "an integer of at least 2, or None for what a pilot finds"),
    "max_doublings": (_whole(1, 20), "an integer from 1 to 20"),
    "jitter": (lambda value: is_number(value) and 0 <= value <= 1, "a number from 0 to 1"),
    "target_acceptance": (_between(0, 1), "a number between 0 and 1"),
    "target_share": (_between(0, 1), "a number between 0 and 1"),
    "friction": (lambda value: is_number(value) and 0 <= value < np.inf, "a number of at least 0"),
    "scale": (_optional(lambda value: _numbers(value, lambda a: (a > 0) & np.isfinite(a))), "positive deviations"),
    "jumps": (lambda value: isinstance(value, bool), "True or False"),
    "is_adjusted": (lambda value: isinstance(value, bool), "True or False"),
}
OF_LAWS: dict[str, Rule] = {
    "bias": (lambda value: _numbers(value) and np.size(value) > 1 == np.ndim(value), "finite values at the knots"),
    "knots": (_optional(lambda v: _rising(v) and np.ravel(v)[0] == 0 and np.ravel(v)[-1] == 1), "knots from 0 to 1"),
    "betas": (_rising, "inverse temperatures that rise within [0, 1]"),
    "log_weights": (lambda value: _numbers(value) and np.ndim(value) == 1, "a finite log weight for each of the betas"),
}
ALIKE = (("bias", "knots"), ("betas", "log_weights"))  # as many of one as of the other


def check_parts(thing: Any) -> None:
    """Raise where an option of a method of ours, or of a part of it, is none; those of users are their own affair."""
    if not (is_dataclass(thing) and type(thing).__module__.startswith("thermocline.")):
        return
    own = {each.name: getattr(thing, each.name) for each in fields(thing)}
    is_law = hasattr(thing, "log_mass")
    for name, value in own.items():
        is_good, remedy = (OF_LAWS if is_law else RULES).get(name, (None, ""))
        if is_good is None and name == "law":
            is_good, remedy = RULES["law"]
        if is_good is not None and not is_good(value):
            raise ThermoclineError(f"{name} of {type(thing).__name__} is {brief(value)}; give {remedy}.")
        if name == "betas" and value is not None and not is_law:
            checked_betas(value)
        check_parts(value)
    for first, second in ALIKE:
        sizes = [np.size(own[name]) for name in (first, second) if own.get(name) is not None]
        if is_law and len(set(sizes)) > 1:
            raise ThermoclineError(
                f"{first} and {second} of {type(thing).__name__} hold {sizes[0]} and {sizes[1]} numbers; "
                "give as many of one as of the other."
            )
