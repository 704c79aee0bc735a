"""What each way to fit a base gives on three targets: divergences, cost, and log Z after equal work."""

import argparse
import json
from collections.abc import Callable
from functools import partial
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

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.lines import Line2D

NUM_EXACT = 20_000  # draws of base and target for the divergences
WORK: Any = {"num_chains": 16, "num_warmup": 500, "num_draws": 1000}
BLUE, GREEN, ORANGE, PINK, INK, FAINT = "#0072B2", "#009E73", "#D55E00", "#CC79A7", "#333333", "#BBBBBB"
LEAST, MOST = 1e-3, 1e3  # divergence that draws can tell from none, and what is far in any case
VERDICTS = {"ok": ("o", GREEN), "suspect": ("s", PINK), "failed": ("X", INK)}
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "legend.frameon": False,
}


class Problem(NamedTuple):
    """A target that can also be sampled exactly: `draws(generator, number)` are positions, stacked."""

    name: str
    target: tc.Target
    log_evidence: float
    draws: Callable[[np.random.Generator, int], Any]


class Outcome(NamedTuple):
    """One fit with one seed; where it was refused, the sentence and nothing else."""

    problem: str
    fit: str
    seed: int
    kl_base_to_target: float = np.nan
    kl_target_to_base: float = np.nan
    fit_gradients: float = np.nan
    run_gradients: float = np.nan
    log_zeta_error: float = np.nan
    log_evidence_error: float = np.nan
    standard_error: float = np.nan
    verdict: str = "refused"
    kind: str = ""
    refusal: str = ""


PAIR_WEIGHTS, PAIR_SCALES, PAIR_DIMENSION, PAIR_CONSTANT = np.array([0.6, 0.4]), np.array([1.0, 0.5]), 10, 12.0
PAIR_MEANS = np.outer([5.0, -5.0], np.ones(PAIR_DIMENSION) / PAIR_DIMENSION**0.5)


def pair_log_density(x):
    each = jnp.sum(norm.logpdf(x, PAIR_MEANS, PAIR_SCALES[:, None]), axis=1)
    return jax.nn.logsumexp(each, b=PAIR_WEIGHTS) + PAIR_CONSTANT


def pair_draws(generator: np.random.Generator, number: int) -> np.ndarray:
    which = generator.choice(2, size=number, p=PAIR_WEIGHTS)
    return PAIR_MEANS[which] + PAIR_SCALES[which, None] * generator.normal(size=(number, PAIR_DIMENSION))


def banana_log_density(x):
    """A Gaussian bent along a parabola, one arm heavier than the other."""
    return norm.logpdf(x[0], 1.0, 3.0) + norm.logpdf(x[1], 0.3 * x[0] ** 2, 0.5) - 4.0


def banana_draws(generator: np.random.Generator, number: int) -> np.ndarray:
    first = generator.normal(1.0, 3.0, number)
    return np.stack([first, generator.normal(0.3 * first**2, 0.5)], axis=1)


EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])  # of coaching in eight schools (Rubin 1981)
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
MEAN_SCALE, SPREAD_SCALE = 5.0, 5.0  # mu ~ N(0, 5²), tau ~ half-Cauchy(5)
LOG_TAU = np.linspace(-25.0, 25.0, 5001)  # for the trapezoidal rule


def schools_log_density(position):
    """Centred: unbounded, though proper, as tau goes to 0 and all groups to one value."""
    mu, log_tau, theta = position["mu"], position["log_tau"], position["theta"]
    log_prior = norm.logpdf(mu, 0.0, MEAN_SCALE) + jnp.log(2 / (jnp.pi * SPREAD_SCALE)) + log_tau
    log_prior -= jnp.log1p((jnp.exp(log_tau) / SPREAD_SCALE) ** 2)
    return log_prior + jnp.sum(norm.logpdf(theta, mu, jnp.exp(log_tau)) + norm.logpdf(EFFECTS, theta, ERRORS))


def schools_given_tau(log_tau: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log joint density of data and log tau, all else integrated out; mean and precision of mu given tau."""
    variances = ERRORS**2 + np.exp(2 * log_tau)[:, None]
    precision = np.sum(1 / variances, axis=1) + MEAN_SCALE**-2
    mean = np.sum(EFFECTS / variances, axis=1) / precision
    log_joint = 0.5 * (mean**2 * precision - np.log(precision * MEAN_SCALE**2))
    log_joint -= 0.5 * np.sum(EFFECTS**2 / variances + np.log(2 * np.pi * variances), axis=1)
    log_joint += np.log(2 / (np.pi * SPREAD_SCALE)) - np.log1p((np.exp(log_tau) / SPREAD_SCALE) ** 2) + log_tau
    return log_joint, mean, precision


def schools_draws(generator: np.random.Generator, number: int) -> dict[str, np.ndarray]:
    """Log tau by inverting its distribution on the grid, then mu and the groups, which are Gaussian."""
    share = np.cumsum(np.exp(schools_given_tau(LOG_TAU)[0]))
    log_tau = np.interp(generator.uniform(size=number), share / share[-1], LOG_TAU)
    _, mean, precision = schools_given_tau(log_tau)
    mu = generator.normal(mean, precision**-0.5)
    pull = np.exp(-2 * log_tau)[:, None]  # of mu on a group, against that of its datum
    variance = 1 / (ERRORS**-2 + pull)
    theta = generator.normal(variance * (EFFECTS / ERRORS**2 + mu[:, None] * pull), variance**0.5)
    return {"mu": mu, "log_tau": log_tau, "theta": theta}


def problems() -> list[Problem]:
    start = {"mu": np.float64(0.1), "log_tau": np.float64(0.1), "theta": np.full(8, 0.1)}
    schools_evidence = float(np.log(np.trapezoid(np.exp(schools_given_tau(LOG_TAU)[0]), LOG_TAU)))
    pair = tc.Target(pair_log_density, np.zeros(PAIR_DIMENSION))
    return [
        Problem("pair, 10-D", pair, PAIR_CONSTANT, pair_draws),
        Problem("banana, 2-D", tc.Target(banana_log_density, np.full(2, 0.1)), -4.0, banana_draws),
        Problem("eight schools, centred", tc.Target(schools_log_density, start), schools_evidence, schools_draws),
    ]


def fit_moments_of_mixture(target: tc.Target, *, seed: int) -> tc.BaseFit:
    """The paper's proposal: one Gaussian with the mean and covariance of the mixture of local fits."""
    return tc.fit_moments(tc.fit_local_mixture(target, seed=seed))


FITS: dict[str, Callable[..., tc.BaseFit]] = {
    "laplace": tc.fit_laplace,
    "advi, mean field": tc.fit_advi,
    "advi, full rank": partial(tc.fit_advi, full_rank=True),
    "pathfinder": tc.fit_pathfinder,
    "renyi, order 2": partial(tc.fit_renyi, order=2.0),
    "local mixture": tc.fit_local_mixture,
    "its moments": fit_moments_of_mixture,
    "bootstrap": tc.fit_bootstrap,
    "auto": tc.fit_auto,
}


@jax.jit
def log_ratios(target: tc.Target, base: Any, positions: Any) -> jax.Array:
    return jax.vmap(lambda position: target(position) - base.log_density(position))(positions)


def divergences(problem: Problem, base: Any, seed: int) -> tuple[float, float]:
    """KL(base ‖ target) and KL(target ‖ base), each from exact draws of the first."""
    with jax.enable_x64(True):
        base = jax.tree.map(jnp.asarray, base)  # a mixture of NumPy arrays cannot be sampled inside vmap
        of_base = jax.jit(jax.vmap(base.sample))(jax.random.split(jax.random.key(seed), NUM_EXACT))
        of_target = jax.tree.map(jnp.asarray, problem.draws(np.random.default_rng(seed), NUM_EXACT))
        from_base, from_target = (log_ratios(problem.target, base, draws) for draws in (of_base, of_target))
        return float(problem.log_evidence - from_base.mean()), float(from_target.mean() - problem.log_evidence)


def measure(problem: Problem, name: str, seed: int) -> Outcome:
    """Fit, compare with exact draws, and sample as long as with any other base."""
    try:
        fit = FITS[name](problem.target, seed=seed)
        result = tc.sample(problem.target, seed=seed, base=fit, progress=False, **WORK)
    except tc.ThermoclineError as error:
        return Outcome(problem.name, name, seed, refusal=str(error))
    evidence = result.log_evidence
    assert evidence is not None
    return Outcome(
        problem.name,
        name,
        seed,
        *divergences(problem, fit.base, seed),
        fit_gradients=int(fit.num_gradients),
        run_gradients=int(result.draws.num_gradients.sum()) + int(result.info["warmup_gradients"]),
        log_zeta_error=fit.log_zeta - problem.log_evidence,
        log_evidence_error=float(evidence.value) - problem.log_evidence,
        standard_error=float(evidence.standard_error),
        verdict=result.verdict,
        kind=type(fit.base).__name__,
    )


def of(outcomes: list[Outcome], problem: str, fit: str) -> list[Outcome]:
    return [outcome for outcome in outcomes if (outcome.problem, outcome.fit) == (problem, fit)]


def medians(runs: list[Outcome], field: str) -> float:
    return float(np.median([getattr(run, field) for run in runs]))


def rmse(runs: list[Outcome]) -> float:
    return float(np.sqrt(np.mean([run.log_evidence_error**2 for run in runs])))


def verdicts(runs: list[Outcome]) -> str:
    given = [run.verdict for run in runs]
    return ", ".join(f"{given.count(name)} {name}" for name in (*VERDICTS, "refused") if name in given)


def shown(divergence: float) -> str:
    return "< 0.001" if divergence < LEAST else "> 1000" if divergence > MOST else f"{divergence:.3g}"


def table_of(problem: str, outcomes: list[Outcome]) -> Table:
    """One row a fit: medians over seeds, the root mean square for the error of log Z."""
    table = Table(title=problem)
    table.add_column("fit", no_wrap=True)
    table.add_column("base", no_wrap=True)
    for name in ("KL(b‖t)", "KL(t‖b)", "fit gradients", "run gradients", "log ζ − log Z", "rmse of log Z", "its error"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdicts", no_wrap=True)
    for fit in FITS:
        runs = of(outcomes, problem, fit)
        done = [run for run in runs if not run.refusal]
        if not done:
            table.add_row(fit, *[""] * 8, verdicts(runs))
            continue
        table.add_row(
            fit,
            " or ".join(dict.fromkeys(run.kind for run in done)),
            *(shown(medians(done, field)) for field in ("kl_base_to_target", "kl_target_to_base")),
            *(f"{medians(done, field):,.0f}" for field in ("fit_gradients", "run_gradients")),
            f"{medians(done, 'log_zeta_error'):+.3f}",
            f"{rmse(done):.3f}",
            f"{medians(done, 'standard_error'):.3f}",
            verdicts(runs),
        )
    return table


def refusals(outcomes: list[Outcome]) -> list[str]:
    """Each refusal once, in the fit's own words."""
    said = {(run.problem, run.fit): run.refusal for run in outcomes if run.refusal}
    return [f"{fit}, {problem}: refused. {sentence}" for (problem, fit), sentence in said.items()]


def draw_divergences(axes: Any, outcomes: list[Outcome], problem: str) -> None:
    for row, fit in enumerate(FITS):
        done = [run for run in of(outcomes, problem, fit) if not run.refusal]
        if not done:
            axes.text(0.02, row, "refused", transform=axes.get_yaxis_transform(), va="center", fontstyle="italic")
        for field, shift, marker, colour in (
            ("kl_base_to_target", -0.14, "<", BLUE),
            ("kl_target_to_base", 0.14, ">", ORANGE),
        ):
            values = [min(max(getattr(run, field), LEAST), MOST) for run in done]
            axes.plot(values, np.full(len(values), row + shift), marker, color=colour, markersize=5, alpha=0.75)
    axes.set(xscale="log", xlim=(LEAST / 1.5, 1.5 * MOST))


def draw_errors(axes: Any, outcomes: list[Outcome], problem: str) -> None:
    axes.axvline(0, color=INK, linewidth=1)
    for row, fit in enumerate(FITS):
        runs = of(outcomes, problem, fit)
        done = [run for run in runs if not run.refusal]
        if not done:
            axes.text(0.02, row, "refused", transform=axes.get_yaxis_transform(), va="center", fontstyle="italic")
        for run, shift in zip(done, np.linspace(-0.22, 0.22, len(done)), strict=True):
            marker, colour = VERDICTS[run.verdict]
            axes.plot(run.log_zeta_error, row + shift, "|", color=FAINT, markersize=6, markeredgewidth=2, zorder=1)
            axes.errorbar(
                run.log_evidence_error,
                row + shift,
                xerr=2 * run.standard_error,
                fmt=marker,
                color=colour,
                markersize=5,
                elinewidth=1,
                markeredgecolor="white",
                markeredgewidth=0.4,
            )
    axes.set_xscale("symlog", linthresh=0.1, linscale=1.0)
    done = [run for run in outcomes if run.problem == problem and not run.refusal]
    reach = max([0.3, *(abs(error) for run in done for error in (run.log_zeta_error, run.log_evidence_error))])
    ticks = [tick for tick in (0.05, 0.2, 0.5, 2, 5, 20, 100) if tick <= reach * 1.2]
    ticks = [*(-tick for tick in reversed(ticks)), 0, *ticks]
    axes.set_xticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
    axes.minorticks_off()
    axes.set_xlim(-1.3 * reach, 1.3 * reach)


def draw_gradients(axes: Any, outcomes: list[Outcome], problem: str) -> None:
    for row, fit in enumerate(FITS):
        values = [run.fit_gradients for run in of(outcomes, problem, fit) if not run.refusal]
        axes.plot(values, np.full(len(values), row), "D", color=INK, markersize=4, alpha=0.6)
    run_gradients = np.nanmedian([run.run_gradients for run in outcomes if run.problem == problem])
    axes.axvline(run_gradients, color=FAINT, linewidth=1, linestyle="--")
    axes.set(xscale="log", xlim=(5, 3e6))


def draw_figure(outcomes: list[Outcome], file: Path) -> None:
    """A row a target, every seed a mark: how far the fit is, what it cost, what it leads to."""
    names = list(dict.fromkeys(run.problem for run in outcomes))
    with plt.rc_context(STYLE):
        figure, grid = plt.subplots(
            len(names),
            3,
            figsize=(11, 3.1 * len(names)),
            sharey=True,
            layout="constrained",
            width_ratios=[1.1, 0.8, 1.3],
        )
        for row, name in enumerate(names):
            draw_divergences(grid[row, 0], outcomes, name)
            draw_gradients(grid[row, 1], outcomes, name)
            draw_errors(grid[row, 2], outcomes, name)
            grid[row, 0].set_title(name, loc="left", fontweight="bold", fontsize=10)
            for axes in grid[row]:
                axes.grid(axis="y", color="#EEEEEE", linewidth=0.8)
                axes.set_axisbelow(True)
                axes.tick_params(axis="y", length=0)
        grid[0, 0].set_yticks(range(len(FITS)), list(FITS))
        grid[0, 0].set_ylim(len(FITS) - 0.5, -0.5)
        grid[-1, 0].set_xlabel("KL divergence, nats (cut to 0.001 and 1000)")
        grid[-1, 1].set_xlabel("gradients of fit (dashed: run)")
        grid[-1, 2].set_xlabel("error of log Z, ± 2 standard errors")
        figure.legend(handles=legend_handles(), loc="outside upper center", ncols=7, handletextpad=0.3)
        figure.savefig(file, dpi=150, metadata={"Software": None})
        plt.close(figure)


def legend_handles() -> list[Any]:
    def handle(marker: str, colour: str, label: str, **options: Any) -> Any:
        return Line2D([], [], linestyle="", marker=marker, color=colour, label=label, **options)

    return [
        handle("<", BLUE, "KL(base ‖ target)"),
        handle(">", ORANGE, "KL(target ‖ base)"),
        *(handle(marker, colour, f"log Z, {name}") for name, (marker, colour) in VERDICTS.items()),
        handle("|", FAINT, "log ζ of the fit", markeredgewidth=2),
    ]


def numbers_of(outcomes: list[Outcome]) -> dict[str, Any]:
    """What `result.json` holds: every run, with nothing where a fit was refused."""

    def described(run: Outcome) -> dict[str, Any]:
        fields = run._asdict().items()
        return {name: value for name, value in fields if value != "" and value == value}

    return {"setting": {**WORK, "num_exact": NUM_EXACT}, "runs": [described(run) for run in outcomes]}


def main(out: Path, seeds: int) -> dict[str, Any]:
    """Measure, print the tables, write `figure.png` and `result.json` into `out`, and return the latter's content."""
    console = Console(width=None if Console().is_terminal else 160)
    out.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for problem in problems():
        for name in FITS:
            for seed in range(seeds):
                with console.status(f"{problem.name}: {name}, seed {seed}"):
                    outcomes.append(measure(problem, name, seed))
    report(outcomes, out, console)
    return numbers_of(outcomes)


def report(outcomes: list[Outcome], out: Path, console: Console) -> None:
    for problem in dict.fromkeys(run.problem for run in outcomes):
        console.print(table_of(problem, outcomes))
    for sentence in refusals(outcomes):
        console.print(sentence, soft_wrap=True)
    draw_figure(outcomes, out / "figure.png")
    (out / "result.json").write_text(json.dumps(numbers_of(outcomes), indent=2) + "\n")
    console.print(f"Figure written to {out / 'figure.png'}", soft_wrap=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--seeds", type=int, default=3, help="how many, from 0")
    options = parser.parse_args()
    main(options.out, options.seeds)
