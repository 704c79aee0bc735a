"""What an installed thermocline must do: run by `make release-check` with the Python of a fresh environment.

It imports nothing of this repository, and only what `pip install thermocline` brings; with the `arviz` and `report`
extras installed it tries these too. Prints one line and ends with 0 where everything is right.
"""

import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import thermocline as tc

MEANS, DEVIATIONS, WEIGHTS = np.array([-4.0, 5.0]), np.array([1.0, 0.5]), np.array([0.3, 0.7])
LOG_EVIDENCE = 2.0  # of the target below, whose second coordinate is normal


def log_density(position):
    z = (position["x"][0] - MEANS) / DEVIATIONS
    modes = jnp.log(WEIGHTS) - 0.5 * z**2 - jnp.log(DEVIATIONS * np.sqrt(2 * np.pi))
    other = -0.5 * position["x"][1] ** 2 - 0.5 * np.log(2 * np.pi)
    return jnp.logaddexp(modes[0], modes[1]) + other + LOG_EVIDENCE


def check_evidence(result: tc.Result) -> None:
    """Right to four of its errors: with exactly the right base the error is rounding's."""
    estimate = result.log_evidence
    assert estimate is not None
    assert abs(float(estimate.value) - LOG_EVIDENCE) < 4 * float(estimate.standard_error) + 1e-9, estimate


def check_core(target: tc.Target, folder: Path) -> tc.Result:
    """The black box, its file and its table; the methods and movers that are BlackJAX's; the command."""
    result = tc.sample(target, seed=1, progress=False)
    check_evidence(result)
    assert len(result.modes) == 2, result.modes
    result.save(folder / "run.nc")
    assert tc.load(folder / "run.nc").log_evidence == result.log_evidence
    base = tc.Gaussian.diagonal({"x": np.zeros(2)}, 6.0)
    for method in (tc.JointTempering(mover=tc.NUTS()), tc.SequentialMonteCarlo(num_particles=200)):
        check_evidence(tc.sample(target, seed=1, base=base, method=method, num_draws=200, progress=False))
    for arguments in (["list", "methods"], ["doctor"], ["summary", str(folder / "run.nc")]):
        subprocess.run([sys.executable, "-m", "thermocline.cli", *arguments], check=True, capture_output=True)
    return result


def check_extras(result: tc.Result, folder: Path) -> None:
    """ArviZ of either generation, and the report."""
    import arviz
    import matplotlib as mpl

    mpl.use("agg")
    table: Any = arviz.summary(result.to_arviz(), round_to="none")
    mean = result.expectation(lambda position: position["x"][1])
    assert abs(float(table.loc["x[1]", "mean"]) - mean.value) < 4 * mean.standard_error, table
    result.report(folder / "report.html")
    assert "<svg" in (folder / "report.html").read_text()


def installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def main() -> None:
    assert version("thermocline") == tc.__version__
    assert "site-packages" in tc.__file__, tc.__file__
    target = tc.Target(log_density, {"x": np.zeros(2)})
    with tempfile.TemporaryDirectory() as scratch:
        result = check_core(target, Path(scratch))
        if installed("arviz"):
            check_extras(result, Path(scratch))
    shown = ("thermocline", "jax", "numpy", "scipy", "blackjax", "xarray", "arviz")
    print("; ".join(f"{name} {installed(name)}" for name in shown if installed(name)))


if __name__ == "__main__":
    main()
