"""Did temperature mix: beta over time, where it was, journeys by chain, and the partition function."""

import numpy as np

from thermocline.estimators.convergence import round_trips
from thermocline.estimators.stages import has_stages
from thermocline.paths import ladder_of
from thermocline.report.drawing import BASE, MODES, TARGET, count_on, drawing, figure
from thermocline.report.page import Figure, Section
from thermocline.results.result import Result

MOST_CHAINS, MOST_STEPS = 4, 250
BAND = 0.75  # of the height of a chain


def temperature(result: Result) -> Section:
    if result.law is None and result.schedule is None:
        return Section(("This method stays at the target (β = 1); there is no temperature to mix.",))
    name = result.info.method.split("(")[0]
    if not (result.is_joint or has_stages(result.draws)):
        return Section((f"{name} climbs from the base to the target in every run; no temperature has to mix.",))
    trips = round_trips(result.draws)
    if not result.is_joint:
        said = f"The replicas of {name} travelled {trips.sum()} times from the base to the target and back."
        return Section((said,), (journeys(result),))
    said = (
        f"Chains travelled {trips.sum()} times from the base to the target and back, "
        f"{trips.min()} to {trips.max()} times each."
    )
    return Section((said,), (trace(result), occupancy(result), journeys(result), partition(result)))


def trace(result: Result) -> Figure:
    """Beta of a few chains over the first of their draws."""
    beta = result.draws.inverse_temperature[:MOST_CHAINS, :MOST_STEPS]
    with drawing() as (canvas, axes):
        for i, row in enumerate(beta):
            axes.plot(row * BAND + i, color=MODES[i], linewidth=0.8)
        axes.set_yticks([i + end for i in range(len(beta)) for end in (0, BAND)], ["0", "1"] * len(beta), fontsize=7)
        axes.set(xlabel="draw", ylabel="β, a band a chain", xlim=(0, beta.shape[1]))
        return figure(canvas, f"β of {len(beta)} chains over {beta.shape[1]} draws: 0 is the base, 1 the target.")


def occupancy(result: Result) -> Figure:
    """Where beta was, and its density by the mean of its conditionals."""
    ladder = None if result.law is None else ladder_of(result.law)
    beta = result.draws.inverse_temperature.ravel()
    with drawing() as (canvas, axes):
        if ladder is not None:
            rungs = np.asarray(ladder.betas)
            counts = np.bincount(np.abs(beta[:, None] - rungs).argmin(axis=1), minlength=rungs.size)
            axes.bar(np.arange(rungs.size), counts / counts.sum(), color=TARGET, width=0.9)
            axes.set(xlabel="rung, from the base to the target", ylabel="share of the draws")
            return figure(canvas, "How often each rung of the ladder was visited.")
        edges = np.linspace(0, 1, 41).tolist()
        axes.hist(beta, edges, density=True, color=TARGET, alpha=0.3, linewidth=0, label="draws")
        curve = result.beta_marginal(np.linspace(0.005, 0.995, 60))
        axes.plot(curve.betas, curve.value, color=TARGET, label="estimated density")
        axes.set(xlabel="β", ylabel="density", xlim=(0, 1))
        axes.legend(loc="best")
        caption = "Where β was. It need not be flat, for the law spends its time where the path is long; but no gaps."
        return figure(canvas, caption)


def journeys(result: Result) -> Figure:
    """Round trips by chain."""
    trips = round_trips(result.draws)
    with drawing() as (canvas, axes):
        axes.bar(np.arange(1, trips.size + 1), trips, color=TARGET, width=0.75)
        axes.set(xlabel="chain", ylabel="round trips")
        count_on(axes.xaxis)
        count_on(axes.yaxis)
        return figure(canvas, "Journeys between base and target and back, by chain.")


def partition(result: Result) -> Figure:
    """Log z(beta) less beta log Z, which is what is curved in it, with the bounds of Appendix A."""
    betas = np.linspace(0, 1, 41)
    curve, bounds = result.log_partition(betas), result.log_partition_bounds(betas)
    with drawing() as (canvas, axes):
        lower, upper, value = (side - bounds.upper for side in (bounds.lower, bounds.upper, curve.value))
        shown = np.isfinite(lower) & np.isfinite(upper)
        axes.fill_between(betas[shown], lower[shown], upper[shown], color=BASE, alpha=0.25, linewidth=0, label="bounds")
        reach = 1.96 * curve.standard_error
        axes.fill_between(betas, value - reach, value + reach, color=TARGET, alpha=0.25, linewidth=0)
        axes.plot(betas, value, color=TARGET, label="estimate")
        axes.legend(loc="lower right")
        axes.set(xlabel="β", ylabel="log z(β) − β log Z", xlim=(0, 1))
        caption = "The partition function, less a straight line: how far apart base and target are on the way."
        return figure(canvas, caption)
