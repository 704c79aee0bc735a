"""What is installed and where things are kept: what a report of a problem should begin with."""

import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import jax

from thermocline.frontends.stan_library import cache_folder
from thermocline.support.tables import Section

EXTRAS = {"arviz": ("arviz",), "dask": ("distributed", "cloudpickle"), "numpyro": ("numpyro",), "pymc": ("pymc",),
          "stan": ("httpstan",), "nutpie": ("nutpie",), "report": ("matplotlib", "jinja2")}  # fmt: skip


def tables() -> list[Section]:
    """Versions, extras with what installs them, devices, and caches."""
    needed = [line.split(">")[0].split("<")[0] for line in requires("thermocline") or () if "extra" not in line]
    packages = [("thermocline", version("thermocline")), *((name, installed(name) or "missing") for name in needed)]
    extras = [
        (name, installed(name) or f"not installed: pip install 'thermocline[{extra}]'")
        for extra, names in EXTRAS.items()
        for name in names
    ]
    return [
        Section("Installed", (), [("python", f"{platform.python_version()} on {platform.platform()}"), *packages]),
        Section("Extras", (), extras),
        Section("Machine", (), machine()),
        Section("Caches", (), caches()),
    ]


def installed(package: str) -> str | None:
    """Its version; packages are not imported for it."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def machine() -> list[tuple[str, str]]:
    devices = [f"{device.platform} ({device.device_kind})" for device in jax.devices()]
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CXX", ""), "c++", "g++", "clang++"))), None)
    return [
        ("devices", ", ".join(devices)),
        ("processors", str(os.cpu_count())),
        ("C++ compiler", compiler or "none; Stan models need one: install g++ or clang++, or set CXX"),
    ]


def caches() -> list[tuple[str, str]]:
    programs = jax.config.values["jax_compilation_cache_dir"]
    kept = size_of(Path(programs)) if programs else "none; set JAX_COMPILATION_CACHE_DIR to a folder to start faster"
    return [("compiled programs", kept), ("compiled Stan models", size_of(cache_folder()))]


def size_of(folder: Path) -> str:
    files = [file.stat().st_size for file in folder.rglob("*") if file.is_file()] if folder.is_dir() else []
    return f"{folder} ({len(files)} files, {sum(files) / 1e6:.1f} MB)"
