"""The table of `studies.finding`: families down, finders across."""

from collections.abc import Iterable

import numpy as np

from studies.finding_runs import Run

SPREADS = ((0.0, 6.0), (6.0, 9.0), (9.0, 12.0), (12.0, np.inf))  # nats of log volume, V
SPLIT = ("gaussian mixture", "t mixture", "spike and slab")  # families with a row for each of these
WRONG = 4.0  # errors
HEADS = (
    "runs",
    "not finished",
    "lost a mode",
    "modes lost",
    "median s",
    "max s",
    "evaluations",
    "share",
    "median |z|",
    "|z| > 4",
)


def groups(runs: list[Run]) -> dict[str, list[Run]]:
    """Runs by family, mixtures by V besides, and all together."""
    grouped: dict[str, list[Run]] = {}
    for family in dict.fromkeys(run["family"] for run in runs):
        own = [run for run in runs if run["family"] == family]
        grouped[family] = own
        for low, high in SPREADS if family in SPLIT else ():
            part = [run for run in own if low <= run["log_volume_spread"] < high]
            if part:
                grouped[f"{family}, V {low:.0f} to {high:.0f}"] = part
    return grouped | {"all": runs}


def cells(runs: Iterable[Run]) -> list[str]:
    """The numbers of one group, in the order of `HEADS`; of finished runs, but for the seconds, which are of all."""
    runs = list(runs)
    done = [run for run in runs if run["status"] == "finished"]
    if not runs:
        return ["0"] + ["-"] * (len(HEADS) - 1)
    seconds = [run["seconds"] for run in runs]
    head = [str(len(runs)), str(len(runs) - len(done))]
    if not done:
        return [*head, "-", "-", f"{np.median(seconds):.1f}", f"{max(seconds):.1f}", "-", "-", "-", "-"]
    with_modes = [run for run in done if run["num_modes"]]
    lost = sum(run["num_lost"] for run in with_modes)
    total = sum(run["num_modes"] for run in with_modes)
    z = np.abs([run["z"] for run in done])
    return [
        *head,
        f"{sum(run['num_lost'] > 0 for run in with_modes)} of {len(with_modes)}" if with_modes else "-",
        f"{lost} of {total}" if with_modes else "-",
        f"{np.median(seconds):.1f}",
        f"{max(seconds):.1f}",
        f"{np.median([run['evaluations'] for run in done]):,.0f}",
        f"{np.median([run['share'] for run in done]):.2f}",
        f"{np.median(z):.1f}",
        str(int(np.sum(z > WRONG))),
    ]


def table(runs: list[Run], finders: list[str]) -> str:
    """Plain text: a line for each group and finder, one under the other so that they can be compared."""
    rows = [["", "finder", *HEADS]]
    for name, group in groups(runs).items():
        rows += [
            [name if finder == finders[0] else "", finder, *cells(r for r in group if r["finder"] == finder)]
            for finder in finders
        ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        left = [row[column].ljust(widths[column]) for column in (0, 1)]
        lines.append("  ".join([*left, *(cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True))]))
    return "\n".join(lines)
