"""The report's section on the temperature, and its drawings, which users can have by themselves."""

from typing import Any

import numpy as np

from thermocline.estimators.convergence import round_trips
from thermocline.estimators.stages import has_stages
from thermocline.paths import ladder_of
from thermocline.report.page import BASE, MODES, TARGET, Figure, Section, drawing, figure
from thermocline.results.result import Result

MOST_CHAINS, MOST_STEPS = 4, 250
BAND = 0.75  # of the height of a chain


def temperature(result: Result) -> Section:
    if result.law is None and result.schedule is None:
        return Section(("This method stays at the target (β = 1); there is no temperature to mix.",))
    name, trips = result.info.method.split("(")[0], round_trips(result.draws)
    travelled = f"travelled {trips.sum()} times from the base to the target and back"
    if result.is_joint:
        said = f"Chains {travelled}, {trips.min()} to {trips.max()} times each."
        return Section((said,), (*drawn(result), journeys(result)))
    if has_stages(result.draws):
        return Section((f"The replicas of {name} {travelled}.",), (journeys(result),))
    return Section((f"{name} climbs from the base to the target in every run; no temperature has to mix.",))


def drawn(result: Result) -> list[Figure]:
    figures = []
    for draw in DRAWN:
        with drawing() as (canvas, axes):
            caption = draw(axes, result)
            figures.append(figure(canvas, caption))
    return figures


def draw_trace(axes: Any, result: Result) -> str:
    """Beta of a few chains over the first of their draws."""
    beta = result.draws.inverse_temperature[:MOST_CHAINS, :MOST_STEPS]
    for i, row in enumerate(beta):
        axes.plot(row * BAND + i, color=MODES[i], linewidth=0.8)
    axes.set_yticks([i + end for i in range(len(beta)) for end in (0, BAND)], ["0", "1"] * len(beta), fontsize=7)
    axes.set(xlabel="draw", ylabel="β, a band a chain", xlim=(0, beta.shape[1]))
    return f"β of {len(beta)} chains over {beta.shape[1]} draws: 0 is the base, 1 the target."


def draw_occupancy(axes: Any, result: Result) -> str:
    """Where beta was, and its density by the mean of its conditionals."""
    ladder = None if result.law is None else ladder_of(result.law)
    beta = result.draws.inverse_temperature.ravel()
    if ladder is not None:
        rungs = np.asarray(ladder.betas)
        counts = np.bincount(np.abs(beta[:, None] - rungs).argmin(axis=1), minlength=rungs.size)
        axes.bar(np.arange(rungs.size), counts / counts.sum(), color=TARGET, width=0.9)
        axes.set(xlabel="rung, from the base to the target", ylabel="share of the draws")
        return "How often each rung of the ladder was visited."
    axes.hist(beta, np.linspace(0, 1, 41).tolist(), density=True, color=TARGET, alpha=0.3, linewidth=0, label="draws")
    curve = result.beta_marginal(np.linspace(0.005, 0.995, 60))
    axes.plot(curve.betas, curve.value, color=TARGET, label="estimated density")
    axes.set(xlabel="β", ylabel="density", xlim=(0, 1))
    axes.legend(loc="best")
    return "Where β was. It need not be flat, for the law spends its time where the path is long; but no gaps."


def journeys(result: Result) -> Figure:
    """Round trips by chain."""
    trips = round_trips(result.draws)
    with drawing() as (canvas, axes):
        axes.bar(np.arange(1, trips.size + 1), trips, color=TARGET, width=0.75)
        axes.set(xlabel="chain", ylabel="round trips")
        axes.locator_params(integer=True)
        return figure(canvas, "Journeys between base and target and back, by chain.")


def draw_partition(axes: Any, result: Result) -> str:
    """Log z(beta) less beta log Z, which is what is curved in it, with the bounds of Appendix A."""
    betas = np.linspace(0, 1, 41)
    curve, bounds = result.log_partition(betas), result.log_partition_bounds(betas)
    lower, upper, value = (side - bounds.upper for side in (bounds.lower, bounds.upper, curve.value))
    shown = np.isfinite(lower) & np.isfinite(upper)
    axes.fill_between(betas[shown], lower[shown], upper[shown], color=BASE, alpha=0.25, linewidth=0, label="bounds")
    reach = 1.96 * curve.standard_error
    axes.fill_between(betas, value - reach, value + reach, color=TARGET, alpha=0.25, linewidth=0)
    axes.plot(betas, value, color=TARGET, label="estimate")
    axes.legend(loc="lower right")
    axes.set(xlabel="β", ylabel="log z(β) − β log Z", xlim=(0, 1))
    return "The partition function, less a straight line: how far apart base and target are on the way."


DRAWN = draw_trace, draw_occupancy, draw_partition  # of axes and a Result; each returns its caption
