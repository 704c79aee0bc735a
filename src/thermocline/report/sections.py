"""The report's sections on the answer, the checks, the temperature, the base and the run, each from a Result."""

from dataclasses import replace
from typing import Any

import numpy as np

from thermocline.checks import Check
from thermocline.estimators.chains import log_ratio_of_means, relative
from thermocline.records import Draws, Estimate
from thermocline.report import summary
from thermocline.report.page import BASE, FAINT, TARGET, Figure, Section, drawing, figure, range_of, unscaled
from thermocline.results.result import Result
from thermocline.results.weighing import by_component

NUM_LOOKS = 12
MOST_COORDINATES = 6
CLOSE, FAR = 1.0, 10.0  # nats, of both divergences together


def answer(result: Result) -> Section:
    table = summary.answer_table(result)
    tables = table._replace(rows=table.rows[1:]), summary.parameters_table(result)  # the verdict is the headline
    return Section(figures=evidence_against_work(result), tables=tables)


def evidence_against_work(result: Result) -> tuple[Figure, ...]:
    """Log Z with its error from the first part of the draws, for growing parts."""
    from matplotlib.ticker import EngFormatter

    final, draws = result.log_evidence, result.draws
    if final is None or not np.isfinite(final.value):
        return ()
    num_draws = draws.log_ratio.shape[1]
    lengths = np.unique(np.geomspace(min(16, num_draws), num_draws, NUM_LOOKS).astype(int))
    work = np.cumsum(draws.num_gradients.sum(axis=0))[lengths - 1]
    parts = [Draws(*(leaf[:, :length] for leaf in draws)) for length in lengths]
    estimates = [replace(result, draws=part).log_evidence or final for part in parts]
    with drawing() as (canvas, axes):
        values, reach = evidences(axes, final, work, estimates)
        near = reach < 12 * max(reach[-1], 1e-12)  # the error of the first looks may be beyond all measure
        low, high = np.min((values - reach)[near]), np.max((values + reach)[near])
        margin = 0.08 * (high - low) or 0.1
        axes.set(xscale="log", xlabel="gradients while sampling", ylim=(low - margin, high + margin))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.xaxis.set_minor_formatter("")
        return (figure(canvas, "log Z with its 95% interval as draws came in; the band is the final interval."),)


def evidences(axes: Any, final: Estimate, at: np.ndarray, estimates: list[Estimate]) -> Any:
    """Log Z with 95% intervals at some places, over a band that is the final interval; the values and their reach."""
    known = [bool(np.isfinite(e.value) and np.isfinite(e.standard_error)) for e in estimates]
    kept = [e for e, is_known in zip(estimates, known, strict=True) if is_known]
    values, reach = np.array([e.value for e in kept]), np.array([e.interval()[1] - e.value for e in kept])
    axes.axhspan(*final.interval(), color=TARGET, alpha=0.12, linewidth=0)
    axes.axhline(final.value, color=FAINT, linewidth=1)
    axes.errorbar(at[known], values, reach, color=TARGET, fmt="o", markersize=3.5, elinewidth=1.2)
    axes.set_ylabel("log Z")
    axes.ticklabel_format(axis="y", useOffset=False)
    return values, reach


def trust(result: Result) -> Section:
    bad = [check for check in result.checks if not check.passed]
    said = f"{len(bad)} of {len(result.checks)} checks did not pass."
    if not bad:
        unseen = "No check can see a mode that no start and no chain has found."
        said = f"{len(result.checks)} checks were made, and all passed. {unseen}"
    caveats = tuple(f"Caveat: {caveat}" for caveat in result.info.caveats)
    figures = () if result.log_evidence is None else (*chain_by_chain(result), weight_curve(result))
    return with_checks(said, result.checks, caveats, figures)


def with_checks(
    said: str, checks: tuple[Check, ...], caveats: tuple[str, ...] = (), figures: tuple[Figure, ...] = ()
) -> Section:
    """A sentence on the checks, the advice of those that did not pass, and the table of all."""
    advice = tuple(f"{check.status}: {check.advice}" for check in checks if not check.passed)
    return Section((said, *advice, *caveats), figures, (summary.checks_table(checks)._replace(notes=()),))


def chain_by_chain(result: Result) -> tuple[Figure, ...]:
    """Log Z from every chain alone."""
    final, draws = result.log_evidence, result.draws
    pairs = zip(draws.log_weight_target, draws.log_weight_base, strict=True)
    alone = [log_ratio_of_means(target[None], base[None]) for target, base in pairs]
    alone = [estimate + result.log_zeta + result.log_support for estimate in alone]
    if final is None or len(alone) < 2 or not any(np.isfinite(e.value + e.standard_error) for e in alone):
        return ()
    with drawing() as (canvas, axes):
        evidences(axes, final, np.arange(1, len(alone) + 1), alone)
        axes.set_xlabel("chain")
        axes.locator_params("x", integer=True)
        return (figure(canvas, "log Z from each chain alone, with 95% intervals; the band is that of all together."),)


def weight_curve(result: Result) -> Figure:
    """The share of all weight that the heaviest draws carry."""
    with drawing() as (canvas, axes):
        axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
        for name, colour in (("target", TARGET), ("base", BASE)):
            weight = relative(getattr(result.draws, f"log_weight_{name}"))[0]
            ordered = np.sort(np.nan_to_num(weight).ravel())[::-1]
            carried = np.append(0, np.cumsum(ordered)) / max(ordered.sum(), 1e-300)
            share = np.linspace(0, 1, 101)
            carried = np.interp(share, np.linspace(0, 1, carried.size), carried)
            axes.plot(share, carried, color=colour, label=f"for the {name}")
        labels = {"xlabel": "share of the draws, heaviest first", "ylabel": "share of the weight"}
        axes.set(**labels, xlim=(0, 1), ylim=(0, 1.02))
        axes.legend(loc="lower right")
        caption = "How evenly the weights are spread. A curve that leaps up at the left rests on few draws."
        return figure(canvas, caption)


def run(result: Result) -> Section:
    """All that it takes to run it again, and what it cost, by phase."""
    table = summary.run_table(result)
    rows = [row for row in table.rows if row[0] not in ("evaluations", "seconds")]
    marks = list(result.info.fingerprint.marks().items())
    named = table._replace(title="", rows=rows, notes=()), summary.Section("Fingerprints", (), marks)
    return Section(tables=(named[0], cost_table(result), named[1]))


def cost_table(result: Result) -> summary.Section:
    """Seconds and evaluations of each phase, and of all."""
    cost = result.cost
    seconds, evaluations = cost.seconds.shown(), cost.evaluations.shown()
    rows = [
        (name, f"{seconds.get(name, 0.0):.1f}", f"{evaluations.get(name, 0):,}")
        for name in dict.fromkeys([*seconds, *evaluations])
    ]
    total = "all", f"{cost.seconds.total:.1f}", f"{cost.evaluations.total:,}"
    return summary.Section("Cost", ("phase", "seconds", "evaluations"), [*rows, total])


def base(result: Result) -> Section:
    if result.law is None and result.schedule is None:
        return Section(("This method uses the base only as a place to start from.",), _marginals(result))
    said = f"{result.info.method.split('(')[0]} weighs no draw for base and target both: no divergences."
    if result.is_joint:
        both = result.kl_base_to_target, result.kl_target_to_base
        (there, back), total = map(summary.divergence, both), both[0].value + both[1].value
        word = "close to" if total < CLOSE else "at some distance from" if total < FAR else "far from"
        said = (
            f"The base ({summary.base_name(result.continuation.base)}) is {word} the target: the KL divergence from "
            f"base to target is {there} nats, from target to base {back}."
        )
    return Section((said, *result.info.notes), _marginals(result))


def _marginals(result: Result) -> tuple[Figure, ...]:
    """The coordinates in which base and target differ most, as they were sampled."""
    weight = np.nan_to_num(relative(result.draws.log_weight_target)[0])
    positions, fresh = result.draws.position, result.base_draws.position
    names = list(by_component(result.unconstrained))
    distance = [_distance(positions[..., i], weight, fresh[:, i]) for i in range(len(names))]
    chosen = np.argsort(distance)[::-1][:MOST_COORDINATES]
    return tuple(_marginal(names[i], positions[..., i], weight, fresh[:, i]) for i in chosen)


def _marginal(name: str, values: np.ndarray, weight: np.ndarray, fresh: np.ndarray) -> Figure:
    both = range_of(values, weight), range_of(fresh)
    edges = np.linspace(np.min(both), np.max(both), 71)
    with drawing() as (canvas, axes):
        how = {"bins": edges.tolist(), "density": True, "histtype": "stepfilled", "linewidth": 0}
        axes.hist(fresh, **how, color=BASE, alpha=0.45, label="base")
        axes.hist(values.ravel(), weights=weight.ravel(), **how, color=TARGET, alpha=0.55, label="target")
        unscaled(axes, name)
        axes.legend(loc="best")
        return figure(canvas, f"{name}, unconstrained: base and target.")


def _distance(values: np.ndarray, weight: np.ndarray, fresh: np.ndarray) -> float:
    """Kolmogorov's distance between the two marginals."""
    shares = np.linspace(0.02, 0.98, 49)
    below = np.histogram(values, np.append(-np.inf, np.quantile(fresh, shares)), weights=weight)[0].cumsum()
    return float(np.max(np.abs(below / max(weight.sum(), 1e-300) - shares)))
