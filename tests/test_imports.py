"""Importing thermocline is about as fast as importing JAX: what is slow to import waits until it is used."""

import subprocess
import sys

SLOW = (
    *("arviz", "blackjax", "dask", "distributed"),
    *("h5netcdf", "h5py", "IPython", "matplotlib", "numpyro", "optax", "pandas", "pymc"),
    *("rich", "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.spatial"),
    *("scipy.special", "scipy.stats", "typer", "xarray"),
)


def test_slow_packages_are_not_loaded():
    program = "import sys, thermocline; print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )
    assert "thermocline" in loaded
    assert not loaded & set(SLOW)
