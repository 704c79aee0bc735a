"""Data of the models that fill the galleries of PyMC and NumPyro: real where small, simulated with fixed seeds else."""

from typing import NamedTuple

import numpy as np


class Gallery(NamedTuple):
    """A model's data by name, the dims of parameters, and the numbers compared where not all have a mean and variance.

    Labels of a mixture switch and a half-Cauchy scale has no variance: then sorted values and logarithms are compared.
    """

    data: dict[str, np.ndarray]
    dims: dict[str, tuple[str, ...]]
    compared: tuple[str, ...] = ()


def _schools() -> dict[str, np.ndarray]:
    """Rubin (1981)."""
    effect = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    return {"effect": effect, "error": np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])}


def _mixture() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    groups = ((-2.0, 35), (0.5, 25), (3.5, 40))
    return {"y": np.concatenate([rng.normal(centre, 0.7, size) for centre, size in groups])}


def _areas(side: int = 6) -> dict[str, np.ndarray]:
    """Counts on a square lattice with a smooth effect of space."""
    rng = np.random.default_rng(2)
    row, column = np.divmod(np.arange(side**2), side)
    distance = np.abs(row[:, None] - row) + np.abs(column[:, None] - column)
    expected, x = rng.uniform(4, 20, side**2), rng.normal(size=side**2)
    log_rate = 0.3 + 0.4 * x + 0.6 * np.sin(row / 2) * np.cos(column / 3)
    counts = rng.poisson(expected * np.exp(log_rate + rng.normal(0, 0.2, side**2)))
    return {"adjacency": (distance == 1).astype(float), "expected": expected, "x": x, "counts": counts}


def _returns(size: int = 300) -> dict[str, np.ndarray]:
    """Daily returns in percent whose log volatility walks."""
    rng = np.random.default_rng(3)
    volatility = np.cumsum(rng.normal(0, 0.12, size))
    return {"returns": np.exp(volatility) * rng.standard_t(8, size)}


def _curve() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    x = np.sort(rng.uniform(0, 10, 40))
    return {"x": x, "y": np.sin(x) + 0.3 * np.cos(3 * x) + rng.normal(0, 0.25, 40)}


def _sparse() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    x, slope = rng.normal(size=(120, 15)), np.zeros(15)
    slope[:3] = 2.0, -1.5, 1.0
    return {"x": x, "y": rng.binomial(1, 1 / (1 + np.exp(-x @ slope)))}


def _lynx() -> dict[str, np.ndarray]:
    """Pelts of hares and lynxes of the Hudson's Bay Company, 1900 to 1920, in thousands."""
    hare = "30 47.2 70.2 77.4 36.3 20.6 18.1 21.4 22 25.4 27.1 40.3 57 76.6 52.3 19.5 11.2 7.6 14.6 16.2 24.7"
    lynx = "4 6.1 9.8 35.2 59.4 41.7 19 13 8.3 9.1 7.4 8 12.3 19.5 45.7 51.1 29.7 15.8 9.7 10.1 8.6"
    return {"pelts": np.array([hare.split(), lynx.split()], float).T}


def _trees() -> dict[str, np.ndarray]:
    """Of five species in ten forests, 50 each."""
    rng = np.random.default_rng(6)
    shares = rng.dirichlet(6.0 * np.array([0.45, 0.3, 0.15, 0.09, 0.01]), 10)
    return {"counts": np.stack([rng.multinomial(50, share) for share in shares])}


def _survival() -> dict[str, np.ndarray]:
    """Times of which those past a patient's own end of study are seen as that end."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(80, 2))
    time, end = np.exp(1.0 + x @ [0.6, -0.3]) * rng.weibull(1.6, 80), rng.uniform(1, 8, 80)
    return {"x": x, "time": np.minimum(time, end), "censored": time > end}


def _answers(people: int = 40, items: int = 12) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    ability, difficulty = rng.normal(size=(people, 1)), rng.normal(size=items)
    logit = np.exp(0.4 * rng.normal(size=items)) * (ability - difficulty)
    return {"correct": rng.binomial(1, 1 / (1 + np.exp(-logit)))}


GALLERIES = {
    "schools": Gallery(_schools(), {"theta": ("school",)}, ("mean", "spread", "theta")),
    "schools_noncentred": Gallery(_schools(), {"theta": ("school",)}, ("mean", "spread", "theta")),
    "mixture": Gallery(_mixture(), {"centre": ("component",)}, ("centre_sorted", "weight_sorted", "scale")),
    "mixture_ordered": Gallery(_mixture(), {"centre": ("component",)}),
    "areas": Gallery(_areas(), {"spatial": ("area",), "local": ("area",)}),
    "volatility": Gallery(_returns(), {"volatility": ("day",)}),
    "gaussian_process": Gallery(_curve(), {}),
    "horseshoe": Gallery(_sparse(), {"slope": ("regressor",)}, ("slope", "log_local", "log_global", "intercept")),
    "ode": Gallery(_lynx(), {"theta": ("rate",), "sigma": ("species",)}),
    "dirichlet_multinomial": Gallery(_trees(), {"share": ("species",)}),
    "survival": Gallery(_survival(), {"slope": ("regressor",)}),
    "item_response": Gallery(_answers(), {"ability": ("person",), "discrimination": ("item",)}),
}
