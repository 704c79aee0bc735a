"""How an experiment's stored numbers judge a sentence of the paper; each function gives a figure and a verdict."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

HOLDS, PART, FAILS = "holds", "holds in part", "does not hold here"
Numbers = dict[str, Any]
Finding = tuple[str, str]  # our figure, and a verdict with its reason


def graded(shares: Iterable[float], reason: str = "") -> str:
    """Holds where all is as said, in part where at least half is."""
    share = float(np.mean(list(shares)))
    verdict = HOLDS if share == 1 else PART if share >= 0.5 else FAILS
    return verdict + (f": {reason}" if reason and verdict != HOLDS else "")


def pair(estimate: list[float], digits: int = 3) -> str:
    return f"{estimate[0]:.{digits}f} ± {estimate[1]:.{digits}f}"


def stuck(numbers: Numbers) -> Finding:
    mass = numbers["plain"]["left_mass"][0]
    return f"mass of the left mode {mass:g}, exact 0.6", HOLDS if mass in (0, 1) else FAILS


def masses(numbers: Numbers) -> Finding:
    (value, error), (default, its_error) = numbers["tempered"]["left_mass"], numbers["default"]["left_mass"]
    figure = f"{value:.2f} ± {error:.2f} in the paper's setting, {default:.3f} ± {its_error:.3f} by default; exact 0.6"
    if abs(value - 0.6) > 3 * error:
        return figure, FAILS
    return figure, HOLDS if error < 0.03 else f"{PART}: both modes are found, but 1000 draws of one chain are few"


def hot_draws(numbers: Numbers) -> Finding:
    hot = numbers["hot_draws"]
    figure = (
        f"draws with β < 0.1 hold {hot['exact_share']:.1%} of w₁ (exact), {hot['share']:.1%} in the run; all draws "
        f"are worth {hot['effective_share']:.0%} of their number, those with β > 0.9 are "
        f"{hot['share_of_cold_draws']:.0%} of them"
    )
    return figure, HOLDS if hot["exact_share"] > 0.01 else FAILS


def empty_middle(numbers: Numbers) -> Finding:
    rows = [row for row in numbers["marginals"] if row["error_of_log_zeta"] == 0]
    rows.sort(key=lambda row: row["kl_base_to_target"])
    lowest = [row["lowest_density"] for row in rows]
    shown = ", ".join(f"{row['kl_base_to_target']:.1f} nats: {row['lowest_density']:.2g}" for row in rows)
    return f"lowest density of β by KL from base to target: {shown}", graded(np.diff(lowest) < 0)


def pushed_to_one_end(numbers: Numbers) -> Finding:
    rows = [row for row in numbers["marginals"] if row["error_of_log_zeta"] != 0]
    shown = ", ".join(f"{row['error_of_log_zeta']:+g}: {row['near_0']:.3f} and {row['near_1']:.3f}" for row in rows)
    right = [(row["near_0"] > row["near_1"]) == (row["error_of_log_zeta"] > 0) for row in rows]
    return f"P(β < 0.1) and P(β > 0.9) by log ζ − log Z: {shown}", graded(right)


def no_mass_to_tune(numbers: Numbers) -> Finding:
    gibbs, *joint = numbers["without_a_mass"]
    errors = [row["rmse_log_evidence"] for row in joint]
    best, worst = min(errors), max(errors)
    figure = (
        f"RMSE of log Z {gibbs['rmse_log_evidence']:.3f}; joint {best:.3f} with the best m of five, "
        f"{worst:.3f} with the worst"
    )
    similar = gibbs["rmse_log_evidence"] < 1.2 * best
    return figure, HOLDS if similar else f"{PART}: joint with the best m is ahead" if gibbs[
        "rmse_log_evidence"
    ] < worst else FAILS


def near_annealing(numbers: Numbers) -> Finding:
    nuts, annealed = (numbers["runs"][name]["log_evidence"] for name in ("CT-NUTS", "AIS"))
    figure = f"CT-NUTS {pair(nuts)}, AIS {pair(annealed)}, exact {numbers['exact']:.4f}"
    gap, error = abs(nuts[0] - annealed[0]), np.hypot(nuts[1], annealed[1])
    return figure, HOLDS if gap < max(3 * error, 0.1) and abs(nuts[0] - numbers["exact"]) < 4 * nuts[1] else FAILS


def quickly(numbers: Numbers) -> Finding:
    curve, exact = numbers["curves"]["CT-NUTS"], numbers["exact"]
    outside = np.flatnonzero(np.abs(np.array(curve["mean"]) - exact) > 0.2)
    after = 0 if not outside.size else int(outside[-1]) + 1
    if after == len(curve["mean"]):
        return "the mean of ten chains never stays within 0.2 of the exact value", FAILS
    figure = (
        f"the mean of ten chains stays within 0.2 after {curve['seconds'][after]:.0f} s of "
        f"{curve['seconds'][-1]:.0f}; all of AIS takes {numbers['runs']['AIS']['running_seconds']:.0f} s"
    )
    return figure, HOLDS if curve["seconds"][after] < 0.5 * curve["seconds"][-1] else PART


def above_the_bound(numbers: Numbers) -> Finding:
    (value, _), bound = numbers["runs"]["CT-NUTS"]["log_evidence"], numbers["advi"]["elbo"]
    gained, wanted = value - bound, numbers["exact"] - bound
    return (
        f"bound {bound:.2f}; {gained:.2f} of the {wanted:.2f} nats missing are gained",
        HOLDS if gained > 0.9 * wanted else FAILS,
    )


def black_box(numbers: Numbers) -> Finding:
    runs = {name.removeprefix("black box, "): run for name, run in numbers["runs"].items() if "black box" in name}
    shown = "; ".join(f"{name} {pair(run['log_evidence'])} ({run['verdict']})" for name, run in runs.items())
    right = [abs(run["z"]) < 4 or run["verdict"] != "ok" for run in runs.values()]
    close = [abs(run["log_evidence"][0] - numbers["exact"]) < 0.5 for run in runs.values()]
    return shown, graded([a and b for a, b in zip(right, close, strict=True)], "see the verdicts")


def bootstrapped(numbers: Numbers) -> Finding:
    first, second = (numbers["runs"][name]["log_evidence"] for name in ("CT-NUTS", "CT-NUTS, second stage"))
    return f"error of log Z {first[1]:.3f} before, {second[1]:.3f} after", HOLDS if second[1] < first[1] else FAILS


def lower_shares(numbers: Numbers, pairs: list[tuple[str, str]]) -> dict[str, np.ndarray]:
    """Share of run times at which the first method's mean relative RMSE is lower: of log Z, mean and covariance."""
    from experiments.boltzmann.study import Form  # pyright: ignore[reportMissingImports]
    from experiments.boltzmann.tables import compared_times, curves_of  # pyright: ignore[reportMissingImports]

    stored = numbers["setting"].items()
    setting: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in stored}
    curves = curves_of(numbers["machines"], Form(**setting))
    shares = {}
    for name, other in pairs:
        times = compared_times(curves, name, other)
        lower = [curves[name].at(t).mean[0] < curves[other].at(t).mean[0] for t in times]
        shares[f"{name} below {other}"] = np.mean(lower, axis=0)
    return shares


def compared(*pairs: tuple[str, str], moments: slice = slice(None)) -> Callable[[Numbers], Finding]:
    """Judged by the shares of run times at which one method's error is below another's."""

    def judge(numbers: Numbers) -> Finding:
        shares = {name: share[moments] for name, share in lower_shares(numbers, list(pairs)).items()}
        shown = "; ".join(
            f"{name} at {', '.join(f'{s:.0%}' for s in share)} of run times" for name, share in shares.items()
        )
        verdict = graded(np.concatenate(list(shares.values())), "the order changes with run time or moment")
        return f"{shown} ({', '.join(('log Z', 'mean', 'covariance')[moments])})", verdict

    return judge


def dearer(name: str, other: str, least: float) -> Callable[[Numbers], Finding]:
    """Judged by the time of a leapfrog step, one method's over another's."""

    def judge(numbers: Numbers) -> Finding:
        runs = [[machine["runs"][method] for machine in numbers["machines"]] for method in (name, other)]
        one, two = (np.median([run["seconds"] / run["gradients"] for run in same]) for same in runs)
        ratio = one / two
        return f"a step of {name} takes {ratio:.2f} of the time of one of {other}", HOLDS if ratio > least else FAILS

    return judge


def autoencoders(numbers: Numbers) -> Finding:
    """Distance from the middle of the bounds, at the time of AIS's longest schedule that all reach."""
    parts, right = [], []
    for name in ("mnist", "omniglot"):
        middle = np.mean(list(numbers[name]["bounds"].values()))
        annealed = [row for row in numbers[name]["estimates"] if row["method"].startswith("AIS")]
        curves = {
            label: numbers[name]["curves"][stage]
            for label, stage in (("Gibbs", "gibbs"), ("joint", "joint"), ("simulated", "simulated"))
        }
        last = min(curve[0][-1] for curve in curves.values())
        seconds = max((row["seconds"] for row in annealed if row["seconds"] <= last), default=annealed[0]["seconds"])
        gaps = {"AIS": next(abs(row["value"] - middle) for row in annealed if row["seconds"] == seconds)}
        gaps |= {label: abs(np.interp(seconds, curve[0], curve[1]) - middle) for label, curve in curves.items()}
        parts.append(f"{name} after {seconds:.1f} s: " + ", ".join(f"{label} {gap:.2f}" for label, gap in gaps.items()))
        right += [
            abs(gaps["Gibbs"] - gaps["AIS"]) < 0.2,
            gaps["joint"] > gaps["Gibbs"],
            gaps["simulated"] > gaps["joint"],
        ]
    return "nats an image from the middle of the bounds, " + "; ".join(parts), graded(right, "not the whole order")


def judged_by_images(beginning: str) -> Callable[[Numbers], Finding]:
    """What the experiment on images says of the one of its claims that begins so."""

    def judge(numbers: Numbers) -> Finding:
        (row,) = (row for row in numbers["claims"] if row[0].startswith(beginning))
        claim, *shown, verdict = row
        return f"{claim.split(': ')[-1]}: " + "; ".join(filter(None, shown)), verdict

    return judge
