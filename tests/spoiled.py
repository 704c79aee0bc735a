"""A small run, and things gone wrong with it: files that are damaged or foreign, bases that lack a half."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import jax.numpy as jnp
import numpy as np

import thermocline as tc
from thermocline.support import sealed
from thermocline.support.pytree import pytree

START = {"x": np.array([0.5, -1.0]), "scale": 0.25}
BASE = tc.Gaussian.diagonal({"x": np.zeros(2), "scale": 0.0}, 1.0)
SHORT = {"num_chains": 2, "num_warmup": 4, "num_draws": 8, "progress": False}


def log_density(position):
    return -0.5 * jnp.sum(position["x"] ** 2) - 0.5 * position["scale"] ** 2


TARGET = tc.Target(log_density, START)


def sample(target: Any = TARGET, **options) -> tc.Result:
    return tc.sample(target, **{"base": BASE, **SHORT, **options}, search=False)


def of(function: Callable, start: Any = START, **options) -> tc.Result:
    return sample(tc.Target(function, start), **options)


@cache
def folder() -> Path:
    return Path(mkdtemp())


@cache
def result() -> tc.Result:
    return sample()


@cache
def untempered() -> tc.Result:
    return sample(method=tc.Untempered())


def file(name: str, content: bytes) -> Path:
    path = folder() / name
    path.write_bytes(content)
    return path


@cache
def saved() -> Path:
    result().save(folder() / "run.nc")
    return folder() / "run.nc"


def foreign() -> Path:
    import xarray

    xarray.Dataset({"x": ("time", np.arange(3))}).to_netcdf(folder() / "foreign.nc", engine="h5netcdf")
    return folder() / "foreign.nc"


def with_header(header: str) -> Path:
    import h5netcdf

    path = file("header.nc", saved().read_bytes())
    with h5netcdf.File(path, "a") as stored:
        stored.attrs["thermocline"] = header
    sealed.seal(path)
    return path


def damaged_checkpoint() -> Path:
    path = folder() / "damaged"
    path.mkdir(exist_ok=True)
    (path / "state.npz").write_bytes(b"not an archive")
    return path


def checkpoint_of_another_run() -> Path:
    path = folder() / "other"
    if not path.exists():
        sample(checkpoint=path)
    return path


@pytree
class WithoutSample:
    width: float

    def log_density(self, position):
        return log_density(position)


@pytree
class WithoutDensity:
    width: float

    def sample(self, key):
        return START
