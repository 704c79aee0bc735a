"""One run of a black box on a generated target: what it found against what is there."""

import importlib.util
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.optimize import minimize

import thermocline as tc
from studies.targets import GeneratedTarget
from thermocline.bases.base import log_densities, sampled_rows
from thermocline.evaluator import Evaluator
from thermocline.support.precision import computing_in

FRESH_DRAWS = 4096
WITHIN = 0.5  # of the square root of D, in deviations of the component: half-way out to where its mass is
HIGHER = 1.0  # nats by which a located mode may lie above one that it stands for: a spike is not the slab it is on
SAME = 0.05  # likewise of the square root of D, for two ascents to have ended at one mode

Run = dict[str, Any]


class Finding(NamedTuple):
    """What a black box gave: located modes (rows), work, and fresh draws of its base with their log densities."""

    modes: np.ndarray
    evaluations: int
    draws: np.ndarray
    log_base: np.ndarray


class TooLongError(BaseException):
    """The time of a run is up; no `except Exception` on the way may swallow it."""


def located_modes(fit: tc.BaseFit) -> np.ndarray:
    """Rows of the fit's modes in the target's coordinates: the one place that knows how a fit keeps them."""
    return np.array([peak.highest for peak in fit.modes.found.peaks])


def num_evaluations(fit: tc.BaseFit) -> int:
    """Rows of the density that the fit evaluated: the one place that knows how a fit counts them."""
    return int(fit.num_gradients)


def find(generated: GeneratedTarget) -> Callable[[], Finding]:
    """`fit_auto`; what is drawn after it, outside the clock, is the returned function's."""
    fit = tc.fit_auto(generated.target, seed=generated.seed)

    def finding() -> Finding:
        with computing_in("float64"):
            draws = sampled_rows(fit.base, generated.seed + 1, FRESH_DRAWS)
            log_base = log_densities(fit.base, draws, generated.target.initial_position)
        return Finding(located_modes(fit), num_evaluations(fit), np.asarray(draws), np.asarray(log_base))

    return finding


def find_by_prototype(generated: GeneratedTarget) -> Callable[[], Finding]:
    """The prototype's `run`, with its own settings, in double precision."""
    target, prototype = generated.target, prototype_module()
    with computing_in("float64"):
        data = jax.tree.map(jax.numpy.asarray, target.data)
        found = prototype.run(lambda x: target.log_density(x, data), target.initial_position, generated.seed)
    if "fail" in found:
        raise tc.ThermoclineError(found["fail"])

    def finding() -> Finding:
        draws = found["mix"].draw(np.random.default_rng(generated.seed + 1), FRESH_DRAWS)
        modes = np.array([mode.x for mode in found["modes_list"]])
        return Finding(modes, int(found["rows"]), draws, found["mix"].logpdf(draws))

    return finding


def prototype_module() -> Any:
    """`black_box.py` of the folder in THERMOCLINE_PROTOTYPE; what it does to JAX's settings on import is undone."""
    if "finding_prototype" in sys.modules:
        return sys.modules["finding_prototype"]
    folder = Path(os.environ.get("THERMOCLINE_PROTOTYPE", "prototype"))
    if not (folder / "black_box.py").exists():
        raise tc.ThermoclineError(f"no black_box.py in {folder}; set THERMOCLINE_PROTOTYPE to the prototype's folder.")
    before = jax.config.values["jax_enable_x64"]
    spec = importlib.util.spec_from_file_location("finding_prototype", folder / "black_box.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    jax.config.update("jax_enable_x64", before)
    sys.modules["finding_prototype"] = module
    return module


FINDERS: dict[str, Callable[[GeneratedTarget], Callable[[], Finding]]] = {
    "ours": find,
    "prototype": find_by_prototype,
}


def run_once(generated: GeneratedTarget, finder: str, longest: float) -> Run:
    """A run and what is asked of it; running out of time and raising are results too."""
    run: Run = {"family": generated.family, "seed": generated.seed, "finder": finder}
    run |= {"dimension": generated.dimension, "log_volume_spread": generated.log_volume_spread}
    began = time.perf_counter()
    try:
        with ended_after(longest), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            finding = FINDERS[finder](generated)
        run["seconds"] = time.perf_counter() - began
        return run | {"status": "finished"} | measures(generated, finding())
    except TooLongError:
        return run | {"status": "timeout", "seconds": time.perf_counter() - began}
    except Exception as error:  # noqa: BLE001
        sentence = f"{type(error).__name__}: {error}".splitlines()[0]
        return run | {"status": "raised", "seconds": time.perf_counter() - began, "message": sentence}


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """An alarm that raises `TooLongError`, as soon as Python is asked: compiled code runs to its end first."""

    def ring(*_: Any) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def measures(generated: GeneratedTarget, finding: Finding) -> Run:
    """Modes lost, and importance sampling by fresh draws of the base: Kish's share, log Z and its z."""
    evaluate = Evaluator(generated.target)
    log_weight = evaluate.values(finding.draws) - finding.log_base
    highest = max(float(np.max(log_weight)), -1e300)
    weight = np.exp(log_weight - highest)
    total = max(float(weight.sum()), 1e-300)
    error = float(weight.std() / max(weight.mean(), 1e-300) / np.sqrt(weight.size))
    log_evidence = float(np.log(total / weight.size) + highest)
    endings = true_modes(generated, evaluate)
    lost = lost_modes(endings, finding.modes, evaluate)
    return {
        "num_modes": len(endings),
        "num_lost": len(lost),
        "lost_masses": [ending.mass for ending in lost],
        "num_located": len(finding.modes),
        "evaluations": finding.evaluations,
        "share": float(total**2 / max(float(np.sum(weight**2)), 1e-300) / weight.size),
        "difference": log_evidence - generated.log_evidence,
        "standard_error": error,
        "z": (log_evidence - generated.log_evidence) / max(error, 1e-9),
    }


class Ending(NamedTuple):
    """A mode of the density: where an ascent ended, the deviations of its component, and the mass that leads there."""

    position: np.ndarray
    whitener: np.ndarray
    mass: float

    def distances(self, rows: np.ndarray) -> np.ndarray:
        """From the mode, in deviations of its component times the square root of their number."""
        return np.linalg.norm((rows - self.position) @ self.whitener.T, axis=1) / np.sqrt(rows.shape[1])


def true_modes(generated: GeneratedTarget, evaluate: Evaluator) -> list[Ending]:
    """Where ascents from the centres of heavy components end; those that end together are one, of all their mass."""
    endings: list[Ending] = []
    modes = generated.modes
    if modes is None:
        return endings
    for index in np.flatnonzero(modes.heavy):
        position = ascended(evaluate, modes.centres[index], modes.whiteners[index])
        mass = float(np.exp(modes.log_masses[index]))
        same = [k for k, known in enumerate(endings) if known.distances(position[None])[0] < SAME]
        if same:
            endings[same[0]] = endings[same[0]]._replace(mass=endings[same[0]].mass + mass)
        else:
            endings.append(Ending(position, modes.whiteners[index], mass))
    return endings


def lost_modes(endings: list[Ending], located: np.ndarray, evaluate: Evaluator) -> list[Ending]:
    """Those near which nothing was located.

    Near is within `WITHIN` times √D of the component's deviations, and not more than `HIGHER` above.
    """
    if not len(located):
        return endings
    heights = evaluate.values(located)

    def is_found(ending: Ending) -> bool:
        ceiling = evaluate.values(ending.position[None])[0] + HIGHER
        return bool(np.any((ending.distances(located) < WITHIN) & (heights < ceiling)))

    return [ending for ending in endings if not is_found(ending)]


def ascended(evaluate: Evaluator, centre: np.ndarray, whitener: np.ndarray) -> np.ndarray:
    """Where SciPy's L-BFGS ends from the component's centre, in its deviations; the centre if nothing is higher."""
    factor = np.linalg.inv(whitener)
    start = evaluate.values(centre[None])[0]

    def loss(white: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = evaluate((centre + factor @ white)[None])
        if not np.isfinite(value[0]):
            return 1e10, np.zeros_like(white)
        return float(start - value[0]), -factor.T @ slope[0]

    if not np.isfinite(start):
        return centre
    found = minimize(loss, np.zeros(len(centre)), jac=True, method="L-BFGS-B", options={"gtol": 1e-6, "ftol": 1e-13})
    return centre + factor @ found.x if found.fun < 0 else centre
