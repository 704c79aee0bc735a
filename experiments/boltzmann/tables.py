"""From what was measured on each machine to curves over run time and the README's tables."""

from typing import Any, NamedTuple

import numpy as np

from experiments.boltzmann.estimates import MOMENTS
from experiments.boltzmann.study import BLACK_BOX, Form, annealed_name, names_of
from experiments.common import markdown_table

Machines = list[dict[str, Any]]
PAIRS = (
    ("Gibbs CT", "simulated tempering"), ("joint CT", "simulated tempering"), ("Gibbs CT", "AIS"), ("joint CT", "AIS"),
    ("simulated tempering", "AIS"), ("joint CT", "Gibbs CT"),
)


class Curve(NamedTuple):
    """Relative RMSE of one method by machine, run time and moment; seconds are the median over machines."""

    seconds: np.ndarray
    rmse: np.ndarray  # (machine, time, moment)
    is_line: bool

    @property
    def mean(self) -> np.ndarray:
        return self.rmse.mean(axis=0)

    @property
    def standard_error(self) -> np.ndarray:
        return self.rmse.std(axis=0, ddof=1) / np.sqrt(len(self.rmse)) if len(self.rmse) > 1 else 0 * self.mean

    def at(self, seconds: float) -> "Curve":
        """At one run time: interpolated in logs along a line, the nearest point where there are only points."""
        if not self.is_line:
            nearest = np.argmin(np.abs(np.log(self.seconds / seconds)))
            return Curve(self.seconds[[nearest]], self.rmse[:, [nearest]], False)
        place = np.log(seconds), np.log(self.seconds)
        rows = [[np.exp(np.interp(*place, np.log(column))) for column in machine.T] for machine in self.rmse]
        return Curve(np.array([seconds]), np.array(rows)[:, None, :], True)


def curves_of(machines: Machines, form: Form) -> dict[str, Curve]:
    """Each method's curve; the annealed runs of all lengths are the points of one."""
    curves = {}
    for name in form.methods:
        runs = [machine["runs"][name] for machine in machines]
        seconds = np.median([run["seconds"] for run in runs])
        draws = np.array(runs[0]["draws"])
        curves[name] = Curve(seconds * draws / draws[-1], np.array([run["rmse"] for run in runs]), True)
    lengths = [[machine["runs"][annealed_name(number)] for machine in machines] for number in form.annealings]
    if lengths:
        seconds = np.array([np.median([run["seconds"] for run in runs]) for runs in lengths])
        rmse = np.stack([[run["rmse"][-1] for run in runs] for runs in lengths], axis=1)
        curves = {"AIS": Curve(seconds, rmse, False)} | curves
    if form.has_black_box:
        runs = [machine["runs"][BLACK_BOX] for machine in machines]
        timed = [run["seconds"] for run in runs if not run["is_cold"]] or [run["seconds"] for run in runs]
        curves[BLACK_BOX] = Curve(np.array([np.median(timed)]), np.array([run["rmse"] for run in runs]), False)
    return curves


def shared_times(curves: dict[str, Curve]) -> np.ndarray:
    """Run times of the annealed runs that all lines reach."""
    ends = [curve.seconds[-1] for curve in curves.values() if curve.is_line]
    times = curves["AIS"].seconds
    return times[times <= 1.05 * min(ends)]


def compared_times(curves: dict[str, Curve], name: str, other: str) -> np.ndarray:
    """Run times at which two methods are compared: the first one's that the second reaches; AIS has but its points."""
    times = shared_times(curves) if other == "AIS" else curves[name].seconds
    return times[(times >= curves[other].seconds[0]) & (times <= 1.05 * curves[other].seconds[-1])]


def errors_table(curves: dict[str, Curve]) -> str:
    """Relative RMSE ± three standard errors at equal run times, and of what has a time of its own."""
    rows = []
    for seconds in shared_times(curves):
        for name, curve in curves.items():
            if name != BLACK_BOX:
                rows.append(row_of(name, curve.at(min(seconds, curve.seconds[-1]))))
    longer = curves["AIS"].seconds[len(shared_times(curves)) :]
    rows += [row_of("AIS", curves["AIS"].at(seconds)) for seconds in longer]
    if BLACK_BOX in curves:
        rows.append(row_of(BLACK_BOX, curves[BLACK_BOX]))
    return markdown_table(["method", "run time (s)", *MOMENTS], rows)


def row_of(name: str, point: Curve) -> list[str]:
    cells = [f"{m:.3f} ± {3 * e:.3f}" for m, e in zip(point.mean[0], point.standard_error[0], strict=True)]
    return [name, f"{point.seconds[0]:.2g}", *cells]


def comparison_table(curves: dict[str, Curve]) -> str:
    """Geometric mean over machines of one method's RMSE over another's, at the longest shared time; and how often less.

    The share in brackets is of run times (for AIS its points) at which the mean over machines is the lower one.
    """
    rows = []
    for name, other in PAIRS:
        if name not in curves or other not in curves:
            continue
        times = compared_times(curves, name, other)
        if not times.size:
            rows.append([f"{name} / {other}", "none in common", *["" for _ in MOMENTS]])
            continue
        latest = min(curves[name].seconds[-1], times[-1])
        ratio = np.log(curves[name].at(latest).rmse[:, 0] / curves[other].at(latest).rmse[:, 0])
        error = ratio.std(axis=0, ddof=1) / np.sqrt(len(ratio)) if len(ratio) > 1 else 0 * ratio[0]
        lower = np.mean([curves[name].at(t).mean[0] < curves[other].at(t).mean[0] for t in times], axis=0)
        cells = [f"{np.exp(r):.2f} × {np.exp(3 * e):.2f}^±1 ({share:.0%})"
                 for r, e, share in zip(ratio.mean(axis=0), error, lower, strict=True)]
        rows.append([f"{name} / {other}", f"{latest:.2g}", *cells])
    return markdown_table(["ratio of RMSEs", "at (s)", *MOMENTS], rows)


def costs_table(machines: Machines, form: Form) -> str:
    """What a leapfrog step costs in each method, with equally many chains side by side."""
    rows = []
    for name in names_of(form):
        if name == BLACK_BOX:
            continue
        runs = [machine["runs"][name] for machine in machines]
        step = np.median([1e6 * run["seconds"] / run["gradients"] for run in runs])
        seconds, gradients = np.median([run["seconds"] for run in runs]), runs[0]["gradients"]
        acceptance = np.mean([run["acceptance"] for run in runs])
        rows.append([name, f"{gradients:,}", f"{seconds:.2f}", f"{step:.3f}", f"{acceptance:.2f}"])
    return markdown_table(["method", "leapfrog steps a repeat", "seconds", "µs a step", "mean acceptance"], rows)


def machines_table(machines: Machines) -> str:
    """The machines: what is exact, what the variational approximation makes of it, and what both cost."""
    rows = []
    for index, machine in enumerate(machines):
        rmse = machine["variational_rmse"]
        rows.append([index, machine["dimension"], f"{machine['log_evidence']:.3f}", machine["num_fits"],
                     f"{machine['log_zeta_error']:+.3f}", f"{rmse[1]:.3f}", f"{rmse[2]:.3f}",
                     f"{machine['programme seconds']:.1f}", f"{machine['enumeration seconds']:.1f}",
                     f"{machine['enumeration MiB']:.0f}"])
    return markdown_table(["machine", "D", "log Z", "fits", "log ζ − log Z", "RMSE of mean", "RMSE of covariance",
                           "programme (s)", "enumeration (s)", "(MiB)"], rows)


def black_box_table(machines: Machines) -> str:
    """One run of the black box a machine."""
    rows = []
    for index, machine in enumerate(machines):
        run = machine["runs"].get(BLACK_BOX)
        if run is not None:
            first = " (first of its size)" if run["is_cold"] else ""
            rows.append([index, run["verdict"], f"{run['error_in_standard_errors']:+.1f}", f"{run['gradients']:,}",
                         f"{run['seconds']:.0f}{first}"])
    return markdown_table(["machine", "verdict", "error of log Z / its standard error", "gradients", "seconds"], rows)
