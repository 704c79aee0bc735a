"""The demonstration: a question whose answer is known, what plain HMC says to it, and what thermocline says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

import thermocline as tc
from thermocline.report.page import BASE, FAINT, TARGET, drawing
from thermocline.support.errors import ThermoclineError
from thermocline.support.optional import require
from thermocline.support.precision import computing_in
from thermocline.support.tables import Section, sections_text

LOG_CONSTANT, SHARE, MEAN = -7.0, 0.65, -1.6242  # of the evidence; of the curved mode; of y
QUESTION = (
    "The question: a density of x and y has two modes with nothing between them, a curved one and a round one.\n"
    "How much of it does each hold, and what is its integral Z (for a posterior, the evidence)?\n"
    f"Here the answers are known: {SHARE:.0%} and {1 - SHARE:.0%}, and log Z = {LOG_CONSTANT:g}.\n"
)


class Runs(NamedTuple):
    """Plain HMC from four places about the origin, as one would run it; and a call with nothing but the target."""

    plain: tc.Result
    tempered: tc.Result


def two_modes(position: dict, data: dict) -> jnp.ndarray:
    """0.65 of a banana and 0.35 of a Gaussian far from it, both normalised, times exp(-7)."""
    x, y = position["x"], position["y"]
    banana = norm.logpdf(x, -1.0, 1.2) + norm.logpdf(y - 0.3 * x**2, 0.0, 0.5)
    blob = norm.logpdf(x, data["centre"][0], 0.4) + norm.logpdf(y, data["centre"][1], 0.6)
    return jnp.logaddexp(jnp.log(SHARE) + banana, jnp.log1p(-SHARE) + blob) + LOG_CONSTANT


def demonstration() -> tc.Target:
    return tc.Target(two_modes, {"x": 0.0, "y": 0.0}, {"centre": np.array([2.5, -6.0])})


def sampled(seed: int, progress: bool, say: Callable[[str], None]) -> Runs:
    """Both, with a word on which is going on."""
    target, around = demonstration(), tc.Gaussian.diagonal({"x": 0.0, "y": 0.0}, 1.0)
    length: dict[str, Any] = {"num_chains": 4, "num_draws": 1000, "search": False, "progress": progress}
    say("Plain HMC, four chains from near the origin:")
    plain = tc.sample(target, seed=seed, base=around, method=tc.Untempered(), **length)
    say("thermocline, tc.sample(target):")
    return Runs(plain, tc.sample(target, seed=seed, progress=progress))


def told(runs: Runs) -> str:
    """Both answers beside the truth."""

    def said(run: tc.Result, function: Any) -> str:
        estimate = run.expectation(function)
        return str(estimate) if estimate.standard_error > 0 else f"{estimate.value:g}, no doubt"

    def r_hat(run: tc.Result) -> str:
        return f"{max(run.weighing.describe(pair).r_hat for pair in run.components().values()):.2f}"

    plain, ours = runs
    rows = [
        ("share of the curved mode", f"{SHARE:g}", *(said(run, lambda p: p["y"] > -3) for run in runs)),
        ("mean of y", f"{MEAN:.3f}", *(said(run, lambda p: p["y"]) for run in runs)),
        ("log Z", f"{LOG_CONSTANT:g}", "cannot say", str(ours.log_evidence)),
        ("modes found", "2", "does not look", str(len(ours.modes))),
        ("worst R-hat of a parameter", "", r_hat(plain), r_hat(ours)),
        ("verdict", "", "its chains agree", ours.verdict),
    ]
    notes = ("Plain HMC is wrong, and neither its error bars nor R-hat show it: all its chains are in one mode.",)
    return sections_text([Section("", ("", "truth", "plain HMC", "thermocline"), rows, notes)])


def draw(runs: Runs, file: Path) -> Path:
    """The density's contours with the draws of each."""
    require("report", "matplotlib")
    x, y = np.linspace(-5.5, 4.5, 161), np.linspace(-8.5, 8.5, 201)
    with computing_in("float64"):
        grid = dict(zip("xy", jnp.meshgrid(jnp.asarray(x), jnp.asarray(y)), strict=True))
        height = np.asarray(two_modes(grid, {"centre": jnp.asarray(demonstration().data["centre"])}))
    levels = height.max() - np.array([8.0, 4.5, 2.0, 0.5])
    titles = "Plain HMC: one mode, and nothing tells", f"thermocline: both modes, log Z = {runs.tempered.log_evidence}"
    with drawing(8.4, 4.2, ncols=2, sharey=True) as (canvas, axes):
        for axis, run, colour, title in zip(axes, runs, (BASE, TARGET), titles, strict=True):
            axis.contour(x, y, height, levels, colors=FAINT, linewidths=1, linestyles="solid")
            draws = run.posterior(1000)
            axis.plot(draws["x"], draws["y"], ".", color=colour, markersize=3, alpha=0.5, markeredgewidth=0)
            axis.set_title(title, loc="left", fontsize=10)
            axis.set(xlabel="x", xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
            for text, place in ((f"{SHARE:.0%} of the mass", (-1.6, 6.2)), (f"{1 - SHARE:.0%}", (2.1, -3.2))):
                axis.text(*place, text, fontsize=9)
        axes[0].set(ylabel="y")
        canvas.savefig(file, dpi=150, metadata={"Software": None})
    return file


def written(runs: Runs, out: Path) -> list[str]:
    """What was written where, in sentences; without the packages for figures, how to install them."""
    out.mkdir(parents=True, exist_ok=True)
    runs.tempered.save(out / "run.nc")
    try:
        figure, page = draw(runs, out / "figure.png"), runs.tempered.report(out / "report.html")
        said = [f"Both pictures:  {figure}", f"The report:     {page}   (open it in a browser)"]
    except ThermoclineError as error:
        said = [f"No figure and no report: {error}"]
    return [*said, f"The run itself: {out / 'run.nc'}   (tc.load, thermocline summary)"]
