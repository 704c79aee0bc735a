"""What a generated target is: a canonical density with its truths, seen through a random affine map."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

import thermocline as tc
from studies.targets.affine import AffineMap, canonical

LIGHTEST = 0.01  # share of the mass above which a mode matters
SPREAD_OF_CONSTANTS = 50.0  # nats

Sampler = Callable[[np.random.Generator, int], np.ndarray]


class Modes(NamedTuple):
    """The components that a target is made of, one a row.

    `log_masses` are logs of shares of the evidence. `whiteners` take an offset from a centre to the component's own
    deviations (a t's scales), and a log volume is that of the Gaussian with these. Components that overlap may share
    one mode of the density.
    """

    centres: np.ndarray
    log_masses: np.ndarray
    log_volumes: np.ndarray
    whiteners: np.ndarray

    @property
    def heavy(self) -> np.ndarray:
        """Which of them hold more than one per cent."""
        return self.log_masses > np.log(LIGHTEST)


def gaussian_log_volume(whitener: np.ndarray) -> float:
    """Log of the mass over the height of a Gaussian."""
    return float(0.5 * len(whitener) * np.log(2 * np.pi) - np.linalg.slogdet(whitener)[1])


def one_mode(centre: np.ndarray, whitener: np.ndarray) -> Modes:
    """All of the mass at one mode."""
    return Modes(centre[None], np.zeros(1), np.array([gaussian_log_volume(whitener)]), whitener[None])


def log_volume_spread(modes: Modes | None) -> float:
    """V: widest over narrowest, in nats, of the components that hold more than one per cent; 0 for one."""
    return 0.0 if modes is None else float(np.ptp(modes.log_volumes[modes.heavy]))


class Core(NamedTuple):
    """A density in canonical coordinates, and its truths there; what a family makes of a generator."""

    log_density: Callable[..., Any]  # of (position, data), `under_map`
    own: Any  # the family's data, leaves
    log_evidence: float
    start: np.ndarray
    modes: Modes | None = None
    exact_draws: Sampler | None = None


@dataclass(frozen=True, eq=False)
class GeneratedTarget:
    """A target with its exact log evidence. `modes` and `exact_draws` are in the target's own coordinates."""

    family: str
    seed: int
    target: tc.Target
    log_evidence: float
    dimension: int
    log_volume_spread: float
    modes: Modes | None
    exact_draws: Sampler | None
    map: AffineMap


def under_map(log_density: Callable[[jax.Array, Any], Any]) -> Callable[[jax.Array, Any], Any]:
    """The canonical density at the canonical position, plus a constant; made once a family, at import."""

    def mapped_log_density(position: jax.Array, data: dict[str, Any]) -> Any:
        return log_density(canonical(position, data["map"]), data["own"]) + data["constant"]

    return mapped_log_density


def mapped(core: Core, affine: AffineMap, constant: float, family: str = "", seed: int = 0) -> GeneratedTarget:
    """The core in the coordinates x = shift + matrix u, with `constant` added to its log density.

    The density is *not* divided by the Jacobian, so ∫ f(u(x)) e^c dx = e^c |det matrix| ∫ f(u) du, exactly:
    log Z = log Z of the core + log |det matrix| + constant. Shares of modes stay, log volumes grow by the determinant.
    """
    modes, draws = core.modes, core.exact_draws
    if modes is not None:
        log_volumes = modes.log_volumes + affine.log_determinant
        modes = Modes(affine.forward(modes.centres), modes.log_masses, log_volumes, modes.whiteners @ affine.whitener)

    def exact_draws(generator: np.random.Generator, number: int) -> np.ndarray:
        assert draws is not None
        return affine.forward(draws(generator, number))

    data = {"map": affine.leaves, "own": core.own, "constant": np.float64(constant)}
    return GeneratedTarget(
        family,
        seed,
        tc.Target(core.log_density, affine.forward(core.start), data),
        core.log_evidence + affine.log_determinant + constant,
        len(core.start),
        log_volume_spread(modes),
        modes,
        None if draws is None else exact_draws,
        affine,
    )


def far_start(generator: np.random.Generator, exact_draws: Sampler) -> np.ndarray:
    """Two to four deviations off the mean of the whole, times a normal, in every canonical direction."""
    draws = exact_draws(generator, 256)
    scale = generator.uniform(2, 4) * draws.std(axis=0)
    return draws.mean(axis=0) + scale * generator.normal(size=draws.shape[1])
