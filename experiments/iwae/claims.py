"""The paper's sentences on these images, each with our figure for it and whether it held."""

from collections.abc import Callable

import numpy as np

from experiments.common import markdown_table
from experiments.iwae import figure

TOLERANCE = 0.2  # nats an image: speed is the time until a method stays this close to the middle of the bounds
ALIKE = 2.0  # times within this factor of each other are called similar
Found = dict[str, dict[str, np.ndarray]]


def middle_of(stages: Found) -> float:
    """The middle of the bounds, mean over images."""
    return float(np.mean([stages["bounds"][side].mean() for side in ("lower", "upper")]))


def curves_of(stages: Found) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Seconds, mean and error of every method by its label."""
    return {"AIS": figure.points(stages)} | {
        label: figure.curve(stages[stage]) for stage, (label, _) in figure.curves_of(stages).items()
    }


def time_to_reach(stages: Found, tolerance: float) -> dict[str, float]:
    """Seconds from which on each method stays within a tolerance of the middle of the bounds; infinite for never."""
    found = {}
    for label, (seconds, value, _) in curves_of(stages).items():
        is_outside = np.abs(value - middle_of(stages)) > tolerance
        first = int(np.flatnonzero(is_outside).max()) + 1 if is_outside.any() else 0
        found[label] = float(seconds[first]) if first < len(seconds) else np.inf
    return found


def is_longer(stages: Found, label: str, other: str, factor: float) -> bool | None:
    """Whether a method takes more than `factor` times as long as another; None where its runs were too short to tell.

    A method that never came close took longer than its run at least.
    """
    times, curves = time_to_reach(stages, TOLERANCE), curves_of(stages)
    at_least = [times[name] if np.isfinite(times[name]) else float(curves[name][0][-1]) for name in (label, other)]
    if np.isfinite(times[other]) and at_least[0] > factor * times[other]:
        return True
    if np.isfinite(times[label]) and times[label] <= factor * at_least[1]:
        return False
    return None


def errors_by_length(stages: Found, stage: str) -> tuple[np.ndarray, np.ndarray]:
    """Errors of an image's log likelihood by one chain (image, chain) and by as many draws of all (image)."""
    middle = (stages["bounds"]["lower"] + stages["bounds"]["upper"]) / 2
    return stages[stage]["value"][:, :, -1] - middle[:, None], stages[stage]["pooled"] - middle


def root_mean_square(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def shown_times(stages: Found, *labels: str) -> str:
    times = time_to_reach(stages, TOLERANCE)
    return " against ".join(seconds_shown(times[label]) for label in labels)


def is_similar(stages: Found) -> tuple[str, bool | None]:
    either = [is_longer(stages, *pair, ALIKE) for pair in (("Gibbs CT", "AIS"), ("AIS", "Gibbs CT"))]
    held = False if True in either else None if None in either else True
    return shown_times(stages, "Gibbs CT", "AIS"), held


def is_slower(label: str, factor: float) -> Callable[[Found], tuple[str, bool | None]]:
    """Whether a method needs more than `factor` times as long as Gibbs CT."""
    return lambda stages: (shown_times(stages, label, "Gibbs CT"), is_longer(stages, label, "Gibbs CT", factor))


def is_long_better(stages: Found) -> tuple[str, bool | None]:
    long, short = map(root_mean_square, errors_by_length(stages, "gibbs"))
    return f"{long:.3f} against {short:.3f}", long < short


def seconds_shown(seconds: float) -> str:
    return "never" if np.isinf(seconds) else f"{seconds:.1f} s"


CLAIMS: dict[str, Callable[[Found], tuple[str, bool | None]]] = {
    f"Gibbs CT and AIS perform similarly: seconds to within {TOLERANCE}, alike by a factor of {ALIKE:g}": is_similar,
    f"Joint CT converges less quickly than Gibbs CT: seconds to within {TOLERANCE}": is_slower("joint CT", 1.0),
    f"Simulated tempering is significantly less efficient: more than {ALIKE:g} times as long": is_slower(
        "simulated tempering", ALIKE
    ),
    "One long chain beats several short ones of equal total: error of an image, Gibbs CT": is_long_better,
}


def parallel_claim(stages: Found) -> tuple[str, bool]:
    """How much less each costs when many go on at once, from the time for one and the time for most."""
    timing = stages["parallel"]
    gains = {name: timing[name][0] / (timing[name][-1] / timing["numbers"][-1]) for name in ("annealed", "gibbs")}
    shown = f"each {gains['annealed']:.1f} times cheaper, Gibbs CT {gains['gibbs']:.1f}"
    return f"{timing['numbers'][-1]} at once: {shown}", gains["annealed"] > 1.2 * gains["gibbs"]


def claims_rows(found: dict[str, Found]) -> list[tuple[str, ...]]:
    """The claim, the figure of each model, and the verdict; a claim that holds for one model only holds in part."""
    rows = []
    for claim, judge in CLAIMS.items():
        judged = [judge(stages) for stages in found.values()]
        rows.append((claim, *(shown for shown, _ in judged), verdict([held for _, held in judged])))
    timed = [parallel_claim(stages) for stages in found.values() if "parallel" in stages]
    for shown, held in timed:
        claim = "AIS gains most from parallel hardware: on this machine, by the cost of each run"
        rows.append((claim, shown, *[""] * (len(found) - 1), verdict([held])))
    return rows


def claims_table(found: dict[str, Found]) -> str:
    return markdown_table(("claim", *(figure.TITLES[name] for name in found), "verdict"), claims_rows(found))


def verdict(held: list[bool | None]) -> str:
    """In words; models whose runs were too short to tell do not count."""
    decided = [one for one in held if one is not None]
    if not decided:
        return "not decided by runs of this length"
    return "holds" if all(decided) else "holds in part" if any(decided) else "does not hold here"
