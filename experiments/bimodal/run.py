"""The paper's section 7.1 and Figure 1: plain HMC stays in one of two modes, tempering finds both and weighs them."""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from jax.scipy.stats import norm
from rich.console import Console
from rich.table import Table

import thermocline as tc
from thermocline.movers import Scale, leapfrog
from thermocline.paths import Extended
from thermocline.paths import Path as TemperingPath
from thermocline.precision import cast

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import PowerNorm

WEIGHTS, MEANS, DEVIATIONS = np.array([0.6, 0.4]), np.array([-8.0, 8.0]), np.array([1.0, 2.0])
BASE_MEAN = float(WEIGHTS @ MEANS)
BASE_DEVIATION = float(np.sqrt(WEIGHTS @ (DEVIATIONS**2 + MEANS**2) - BASE_MEAN**2))
STEP, NUM_STEPS, NUM_DRAWS, SEED = 1.0, 20, 1000, 0
LEFT_MASS, LOG_EVIDENCE = 0.6, 0.0
LIMITS = (-20, 20)  # of x in every panel
BLUE, GREEN, ORANGE, INK = "#0072B2", "#009E73", "#D55E00", "#333333"  # Okabe and Ito's, safe for colour blindness
STYLE: Any = {
    "font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK,
    "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "text.color": INK, "legend.frameon": False,
}


class Runs(NamedTuple):
    """One chain each of the paper's setting, with equally many draws and gradients; and the library's defaults."""

    plain: tc.Result
    tempered: tc.Result
    default: tc.Result


def log_density(x: jax.Array) -> jax.Array:
    """The normalised mixture of two Gaussians."""
    return jax.nn.logsumexp(jnp.log(WEIGHTS) + norm.logpdf(x, MEANS, DEVIATIONS))


def is_left(x: jax.Array) -> jax.Array:
    """Whether a draw belongs to the left mode."""
    return x < 0


def sample() -> Runs:
    """Plain HMC and joint continuous tempering, both with a step of 1 in x (and u) and a unit mass matrix.

    Steps are in units of the metric, which without warm-up is the base's deviation for x and one over the
    square root of `mass` for u: dividing by that deviation makes both steps, and both masses, those of x itself.
    """
    target = tc.Target(log_density, 0.0)
    base = tc.BaseFit(tc.Gaussian.diagonal(BASE_MEAN, BASE_DEVIATION), LOG_EVIDENCE)
    mover = tc.HMC(step_size=STEP / BASE_DEVIATION, num_steps=NUM_STEPS, jitter=0.0)
    methods = tc.Untempered(mover), tc.JointTempering(mover, tc.Continuous(), mass=BASE_DEVIATION**-2)
    plain, tempered = (
        tc.sample(target, seed=SEED, base=base, method=method, num_chains=1, num_warmup=0, num_draws=NUM_DRAWS,
                  progress=False)
        for method in methods
    )
    return Runs(plain, tempered, tc.sample(target, seed=SEED, base=base, progress=False))


def tempering_path() -> TemperingPath:
    """The path that both runs sampled, for the pictures of its densities."""
    base = tc.Gaussian.diagonal(BASE_MEAN, BASE_DEVIATION)
    return cast(TemperingPath(tc.Target(log_density, 0.0), base, jnp.asarray(LOG_EVIDENCE)), "float64")


def log_densities(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of target and base on a grid."""
    with jax.enable_x64(True):
        path, grid = tempering_path(), jnp.asarray(x)[:, None]
        log_base = jax.vmap(path.log_base)(grid)
        return np.asarray(log_base + jax.vmap(path.log_ratio)(grid)), np.asarray(log_base)


def joint_energy(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Minus the log density of x and the temperature control u, on a grid; rows are values of u."""
    with jax.enable_x64(True):
        density = Extended(tempering_path(), tc.Continuous(), tc.Logistic())
        grid = jnp.stack(jnp.meshgrid(jnp.asarray(x), jnp.asarray(u)), axis=-1)
        return -np.asarray(jax.jit(jax.vmap(jax.vmap(density.log_density_at)))(grid))


def example_trajectory(start: tuple[float, float], momentum: tuple[float, float], *, step: float = 0.05) -> np.ndarray:
    """Points (x, u) of a leapfrog trajectory as long as the sampler's, in finer steps so that it looks smooth."""
    with jax.enable_x64(True):
        density = Extended(tempering_path(), tc.Continuous(), tc.Logistic())
        unit = Scale(jnp.ones(2), jnp.ones(2))

        def advance(carry: tuple[Any, jax.Array], _: None) -> tuple[tuple[Any, jax.Array], jax.Array]:
            point, momentum = leapfrog(density, jnp.asarray(step), unit, jnp.asarray(1), *carry)
            return (point, momentum), density.position(point)

        first = density.evaluate(jnp.asarray(start)), jnp.asarray(momentum)
        positions = jax.lax.scan(advance, first, length=round(NUM_STEPS * STEP / step))[1]
        return np.concatenate([[start], np.asarray(positions)])


def draw_densities(axes: Any) -> None:
    x = np.linspace(*LIMITS, 801)
    for log_values, colour, name in zip(log_densities(x), (BLUE, GREEN), ("target", "base"), strict=True):
        axes.plot(x, np.exp(log_values), color=colour, linewidth=2, label=name)
        axes.fill_between(x, np.exp(log_values), color=colour, alpha=0.12, linewidth=0)
    axes.set(xlabel="$x$", ylabel="density", xlim=LIMITS, ylim=(0, None))
    axes.legend(loc="upper right")


def draw_energy(axes: Any) -> None:
    x, u = np.linspace(*LIMITS, 301), np.linspace(-7, 7, 201)
    energy = joint_energy(x, u)
    levels = np.floor(energy.min()) + np.arange(0, 17)
    axes.contourf(x, u, energy, levels, cmap="Blues_r", extend="max")
    axes.contour(x, u, energy, levels, colors="white", linewidths=0.3)
    trajectory = example_trajectory((-8.0, 1.5), (1.53, 2.32))
    axes.plot(*trajectory.T, color=ORANGE, linewidth=2, label="trajectory")
    axes.plot(*trajectory[0], "o", color=ORANGE, markeredgecolor="white", markersize=7)
    axes.plot(*trajectory[-1], "s", color=ORANGE, markeredgecolor="white", markersize=7)
    axes.set(xlabel="$x$", ylabel="temperature control $u$", xlim=LIMITS, ylim=(-7, 7))


def draw_samples(axes: Any, tempered: tc.Result) -> None:
    x, beta = np.linspace(*LIMITS, 401), np.linspace(0, 1, 201)
    log_target, log_base = log_densities(x)
    density = np.exp(log_base + beta[:, None] * (log_target - log_base))
    density /= density.mean() * (x[-1] - x[0])
    levels = density.max() * np.linspace(0, 1, 13) ** 2  # closer together where the density is low
    axes.contourf(x, beta, density, levels, cmap="Blues", norm=PowerNorm(0.5, vmax=1.3 * density.max()))
    weight = np.exp(tempered.draws.log_weight_target[0])
    axes.scatter(tempered.draws.position[0, :, 0], tempered.draws.inverse_temperature[0], s=6 * weight,
                 facecolor=ORANGE, edgecolor="white", linewidth=0.3, alpha=0.75)
    axes.set(xlabel="$x$", ylabel=r"inverse temperature $\beta$", xlim=LIMITS, ylim=(0, 1))


def draw_histogram(axes: Any, result: tc.Result, name: str, colour: str) -> None:
    x = np.linspace(*LIMITS, 801)
    weight = np.exp(result.draws.log_weight_target[0])
    bins = np.linspace(*LIMITS, 81)
    axes.hist(result.draws.position[0, :, 0], bins, weights=weight, density=True, color=colour, alpha=0.55, linewidth=0)
    axes.plot(x, np.exp(log_densities(x)[0]), color=INK, linewidth=1.4)
    axes.text(0.98, 0.92, name, transform=axes.transAxes, ha="right", va="top", color=colour, fontweight="bold")
    axes.set(xlim=LIMITS, ylim=(0, 0.42), yticks=[])
    axes.spines["left"].set_visible(False)


def draw_figure(runs: Runs, file: Path) -> None:
    """The four panels of the paper's Figure 1."""
    captions = {"a": "target and base", "b": "joint energy and one trajectory",
                "c": "joint density and draws, area by weight $w_1$", "d": "draws of the target and its true density"}
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(10, 7), layout="constrained")
        axes = figure.subplot_mosaic([["a", "b"], ["a", "b"], ["c", "d"], ["c", "below"]])
        draw_densities(axes["a"])
        draw_energy(axes["b"])
        draw_samples(axes["c"], runs.tempered)
        draw_histogram(axes["d"], runs.plain, "plain HMC", BLUE)
        draw_histogram(axes["below"], runs.tempered, "tempered", ORANGE)
        axes["d"].tick_params(labelbottom=False)
        axes["below"].set_xlabel("$x$")
        for tag, caption in captions.items():
            axes[tag].set_title(f"$\\bf{{({tag})}}$ {caption}", loc="left", fontsize=10)
        figure.savefig(file, dpi=150, metadata={"Software": None})
        plt.close(figure)


def table_of(runs: Runs) -> Table:
    """What each run says, beside the truth."""
    masses = [str(run.expectation(is_left)) for run in runs]
    table = Table("quantity", "truth", "plain HMC", "tempered", "tempered, defaults", title="Two Gaussian modes")
    table.add_row("mass of the left mode", f"{LEFT_MASS:g}", *masses)
    table.add_row("log evidence", f"{LOG_EVIDENCE:g}", *(str(run.log_evidence or "none") for run in runs))
    table.add_row("chains × draws", "", *(" × ".join(map(str, run.draws.log_ratio.shape)) for run in runs))
    table.add_row("mean acceptance", "", *(f"{run.draws.acceptance.mean():.2f}" for run in runs))
    table.add_row("verdict", "", *(run.verdict for run in runs))
    return table


def numbers_of(runs: Runs) -> dict[str, Any]:
    """What `result.json` holds."""
    def described(run: tc.Result) -> dict[str, Any]:
        mass, evidence = run.expectation(is_left), run.log_evidence
        return {
            "left_mass": [float(mass.value), float(mass.standard_error)],
            "log_evidence": None if evidence is None else [evidence.value, evidence.standard_error],
            "acceptance": float(run.draws.acceptance.mean()),
            "verdict": run.verdict,
            "checks_not_passed": [check.name for check in run.checks if not check.passed],
        }

    setting = {"step": STEP, "num_steps": NUM_STEPS, "num_draws": NUM_DRAWS, "seed": SEED}
    truth = {"left_mass": LEFT_MASS, "log_evidence": LOG_EVIDENCE}
    return {"setting": setting, "truth": truth, **{name: described(run) for name, run in runs._asdict().items()}}


def main(out: Path) -> dict[str, Any]:
    """Sample, print the table, write `figure.png` and `result.json` into `out`, and return the latter's content."""
    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    with console.status("sampling a mixture of two Gaussians, with and without tempering"):
        runs = sample()
        numbers = numbers_of(runs)
    console.print(table_of(runs))
    for check in runs.tempered.checks:
        if not check.passed:
            wanted = f"{check.value:.3g} where {check.limit:g} is wanted"
            console.print(f"Tempered run, {check.name}: {wanted}. {check.advice}", soft_wrap=True)
    with console.status("drawing the figure"):
        draw_figure(runs, out / "figure.png")
    (out / "result.json").write_text(json.dumps(numbers, indent=2) + "\n")
    console.print(f"Figure written to {out / 'figure.png'}", soft_wrap=True)
    return numbers


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    main(parser.parse_args().out)
