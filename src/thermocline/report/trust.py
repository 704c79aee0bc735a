"""Can I trust it: every check, chains against each other, and how evenly the weights are spread."""


import numpy as np

from thermocline.estimators.evidence import log_ratio_of_means, relative
from thermocline.report import summary
from thermocline.report.drawing import BASE, FAINT, TARGET, count_on, drawing, figure
from thermocline.report.page import Figure, Section
from thermocline.results.result import Result


def trust(result: Result) -> Section:
    bad = [check for check in result.checks if not check.passed]
    said = (
        f"{len(result.checks)} checks were made, and all passed. No check can see a mode that no start and no "
        "chain has found."
        if not bad
        else f"{len(bad)} of {len(result.checks)} checks did not pass."
    )
    caveats = tuple(f"Caveat: {caveat}" for caveat in result.info.caveats)
    figures = () if result.log_evidence is None else (*chain_by_chain(result), *weight_curve(result))
    advice = tuple(f"{check.status}: {check.advice}" for check in bad)
    table = summary.checks_table(result.checks)._replace(notes=())
    return Section((said, *advice, *caveats), figures, (table,))


def chain_by_chain(result: Result) -> tuple[Figure, ...]:
    """Log Z from every chain alone."""
    final, draws = result.log_evidence, result.draws
    pairs = zip(draws.log_weight_target, draws.log_weight_base, strict=True)
    alone = [log_ratio_of_means(target[None], base[None]) for target, base in pairs]
    alone = [estimate + result.log_zeta + result.log_support for estimate in alone]
    known = [np.isfinite(e.value) and np.isfinite(e.standard_error) for e in alone]
    if final is None or len(alone) < 2 or not any(known):
        return ()
    chain = np.arange(1, len(alone) + 1)
    with drawing() as (canvas, axes):
        axes.axhspan(*final.interval(), color=TARGET, alpha=0.12, linewidth=0)
        axes.axhline(final.value, color=FAINT, linewidth=1)
        values, errors = (np.array([getattr(e, name) for e in alone])[known] for name in ("value", "standard_error"))
        axes.errorbar(chain[known], values, 1.96 * errors, color=TARGET, fmt="o", markersize=3, elinewidth=1)
        axes.set_xlabel("chain")
        axes.set_ylabel("log Z")
        count_on(axes.xaxis)
        axes.ticklabel_format(axis="y", useOffset=False)
        return (figure(canvas, "log Z from each chain alone, with 95% intervals; the band is that of all together."),)


def weight_curve(result: Result) -> tuple[Figure, ...]:
    """The share of all weight that the heaviest draws carry."""
    with drawing() as (canvas, axes):
        axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
        for name, log_weight, colour in (
            ("target", result.draws.log_weight_target, TARGET),
            ("base", result.draws.log_weight_base, BASE),
        ):
            ordered = np.sort(np.nan_to_num(relative(log_weight)[0]).ravel())[::-1]
            carried = np.append(0, np.cumsum(ordered)) / max(ordered.sum(), 1e-300)
            share = np.linspace(0, 1, 101)
            carried = np.interp(share, np.linspace(0, 1, carried.size), carried)
            axes.plot(share, carried, color=colour, label=f"for the {name}")
        axes.set_xlabel("share of the draws, heaviest first")
        axes.set_ylabel("share of the weight")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.02)
        axes.legend(loc="lower right")
        caption = "How evenly the weights are spread. A curve that leaps up at the left rests on few draws."
        return (figure(canvas, caption),)
