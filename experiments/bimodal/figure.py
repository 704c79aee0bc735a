"""The four panels of the paper's Figure 1."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np

import thermocline as tc
from experiments.bimodal.problem import base_fit, target
from experiments.common import BLUE, GREEN, INK, ORANGE, STYLE
from thermocline.movers import Scale, leapfrog
from thermocline.paths import Extended
from thermocline.paths import Path as TemperingPath
from thermocline.support.precision import cast

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import PowerNorm

LIMITS = (-20, 20)  # of x in every panel
TRAJECTORY_LENGTH = 20.0  # as long as one of the sampler's


def tempering_path() -> TemperingPath:
    """The path that both runs sampled, for the pictures of its densities."""
    fit = base_fit()
    return cast(TemperingPath(target(), fit.base, jnp.asarray(fit.log_zeta)), "float64")


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
        positions = jax.lax.scan(advance, first, length=round(TRAJECTORY_LENGTH / step))[1]
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


def draw_figure(plain: tc.Result, tempered: tc.Result, file: Path) -> None:
    """All four into one file."""
    captions = {"a": "target and base", "b": "joint energy and one trajectory",
                "c": "joint density and draws, area by weight $w_1$", "d": "draws of the target and its true density"}
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(10, 7), layout="constrained")
        axes = figure.subplot_mosaic([["a", "b"], ["a", "b"], ["c", "d"], ["c", "below"]])
        draw_densities(axes["a"])
        draw_energy(axes["b"])
        draw_samples(axes["c"], tempered)
        draw_histogram(axes["d"], plain, "plain HMC", BLUE)
        draw_histogram(axes["below"], tempered, "tempered", ORANGE)
        axes["d"].tick_params(labelbottom=False)
        axes["below"].set_xlabel("$x$")
        for tag, caption in captions.items():
            axes[tag].set_title(f"$\\bf{{({tag})}}$ {caption}", loc="left", fontsize=10)
        figure.savefig(file, dpi=150, metadata={"Software": None})
        plt.close(figure)
