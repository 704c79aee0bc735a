"""ArviZ from version 1 on, which needs Python 3.12 and an environment of its own."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def runs(python: str | None) -> bool:
    """Whether it is there and starts: what is on the path may only stand for a version that is not installed."""
    return python is not None and subprocess.run([python, "--version"], capture_output=True).returncode == 0


PYTHON = next((found for name in ("python3.12", "python3.13") if runs(found := shutil.which(name))), None)
SCRIPT = """
import arviz as az, matplotlib, numpy as np, xarray
matplotlib.use("agg")
import jax.numpy as jnp
import thermocline as tc

assert int(az.__version__.split(".")[0]) >= 1, az.__version__
shown = lambda p: {"x": p["x"], "first": p["x"][0]}
target = tc.Target(lambda p: -0.5 * jnp.sum(p["x"] ** 2), {"x": np.zeros(2)}, None, shown)
base = tc.Gaussian.diagonal({"x": np.zeros(2)}, 1.5)
result = tc.sample(target, base=base, num_chains=4, num_warmup=100, num_draws=200, progress=False)
data = result.to_arviz()
assert isinstance(data, xarray.DataTree)
table = az.summary(data, round_to="none")
mean = result.expectation(lambda p: p["first"])
assert abs(float(table.loc["first", "mean"]) - mean.value) < mean.standard_error, table
az.plot_trace(data, var_names=["x"])
az.plot_pair(data, var_names=["x", "first"])
data.to_netcdf("arviz.nc", engine="h5netcdf")
again = az.from_netcdf("arviz.nc")
assert np.array_equal(again["posterior"]["x"], data["posterior"]["x"])
result.save("run.nc")
assert np.array_equal(az.from_netcdf("run.nc")["posterior"]["x"], data["posterior"]["x"])
print("arviz", az.__version__, "ok")
"""


@pytest.mark.slow
@pytest.mark.skipif(PYTHON is None, reason="ArviZ 1 needs Python 3.12 or newer, which is not on this machine")
def test_the_newer_arviz_summarises_plots_and_stores_a_result(tmp_path):
    environment = tmp_path / "venv"
    subprocess.run([PYTHON, "-m", "venv", environment], check=True)
    python = environment / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", f"{ROOT}", "arviz>=1", "matplotlib"]
    subprocess.run(install, check=True)
    done = subprocess.run([python, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ok" in done.stdout
