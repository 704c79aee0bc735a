"""What wrong calls are made of: a target, a base and options that are right, and everything that is not."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import thermocline as tc

START = {"x": np.array([0.5, -1.0]), "scale": 0.25}
BASE = tc.Gaussian.diagonal({"x": np.zeros(2), "scale": 0.0}, 1.5)
SHORT: dict[str, Any] = {"base": BASE, "num_chains": 2, "num_warmup": 4, "num_draws": 8, "search": False}
LOG_EVIDENCE = 1.5 * np.log(2 * np.pi)
NAN, INF = float("nan"), float("inf")


class Call(NamedTuple):
    """A call, what is wrong with it, and the words of which a refusal must name one; truth, where log Z is known."""

    what: str
    names: tuple[str, ...]
    run: Callable[[], Any]
    truth: float | None = None


def log_density(position: Any) -> Any:
    return -0.5 * jnp.sum(position["x"] ** 2) - 0.5 * position["scale"] ** 2


TARGET = tc.Target(log_density, START)


def sample(target: Any = TARGET, **options: Any) -> Any:
    return tc.sample(target, **{**SHORT, "progress": False, **options})


class Word:
    """A class of nobody's."""

    def __repr__(self) -> str:
        return "<a thing>"


JUNK: list[Any] = [
    *(None, True, False, -1, 0, 1, 3, 0.5, -2.5, 1e308, NAN, INF, -INF, 10**30, 2**63, 2**32, 1 + 2j),
    *("", "a", "gibbs", "laplace", b"bytes", [], [1, 2], {}, {"x": 1.0}, (), (1, 2), {1, 2}, Word(), Word, len),
    *(np.zeros(0), np.ones(3), np.array([NAN]), np.array("a"), np.array([None, 1])),
    *(np.eye(2), np.float32(2), np.int8(3)),
    *(range(3), slice(2), Ellipsis, 3 * [[1.0]], tc.HMC(), tc.GibbsTempering(), BASE, TARGET),
]
WORDS = {  # what a refusal may call an argument, besides its name
    "method": ("method", "law", "mover"),
    "base": ("base", "log_zeta"),
    "target": ("target", "log_density"),
    "checkpoint": ("checkpoint", "folder"),
    "data": ("data", "datum"),
    "initial_position": ("initial_position", "initial position", "parameter", "position", "log_density"),
}


def shown(value: Any) -> str:
    return repr(value).replace("\n", " ")[:80]


def raising(error: type[Exception]) -> Callable[..., Any]:
    def density(*given: Any) -> Any:
        raise error("from the user's own code")

    return density
