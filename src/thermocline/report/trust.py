"""Can I trust it: every check, chains against each other, how evenly the weights are spread; and what was run."""

import numpy as np

from thermocline.estimators.chains import log_ratio_of_means, relative
from thermocline.report import summary
from thermocline.report.drawing import BASE, FAINT, TARGET, count_on, drawing, evidences, figure
from thermocline.report.page import Figure, Section
from thermocline.results.result import Result


def trust(result: Result) -> Section:
    bad = [check for check in result.checks if not check.passed]
    said = f"{len(bad)} of {len(result.checks)} checks did not pass."
    if not bad:
        unseen = "No check can see a mode that no start and no chain has found."
        said = f"{len(result.checks)} checks were made, and all passed. {unseen}"
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
    if final is None or len(alone) < 2 or not any(np.isfinite(e.value + e.standard_error) for e in alone):
        return ()
    with drawing() as (canvas, axes):
        evidences(axes, final, np.arange(1, len(alone) + 1), alone)
        axes.set_xlabel("chain")
        count_on(axes.xaxis)
        return (figure(canvas, "log Z from each chain alone, with 95% intervals; the band is that of all together."),)


def weight_curve(result: Result) -> tuple[Figure, ...]:
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
        return (figure(canvas, caption),)


def run(result: Result) -> Section:
    """All that it takes to run it again, and what it cost."""
    table = summary.run_table(result)._replace(title="", notes=())
    marks = list(result.info.fingerprint.marks().items())
    return Section(tables=(table, summary.Section("Fingerprints", (), marks)))
