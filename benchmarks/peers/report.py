"""The tables of docs/peers.md from the runs that are kept, and a figure, build/peers/peers.png.

python -m benchmarks.peers.report
"""

import json
from collections import Counter, defaultdict
from typing import Any

import numpy as np

from benchmarks.peers.environment import FOLDER
from benchmarks.peers.problems import PROBLEMS
from benchmarks.peers.run import PEERS
from studies.tables import store

NAMES = {
    "ours": "thermocline",
    "nuts_bridge": "NUTS + bridge sampling",
    "blackjax_smc": "tempered SMC (BlackJAX)",
    "blackjax_persistent": "persistent sampling (BlackJAX)",
    "nested_dynesty": "dynesty",
    "nested_nautilus": "nautilus",
    "pymc_smc": "PyMC sample_smc",
    "nutpie_draws": "nutpie (draws only)",
}
HEADER = "problem", "sampler", "seeds", "error of log Z", "its own error", "covered", "seconds", "evaluations", "modes"
SUMMARY = (
    "sampler",
    "problems",
    "within 0.1",
    "covered",
    "all modes",
    "not finished",
    "seconds, median",
    "seconds, longest",
)
COVERS, CLOSE = 2.0, 0.1
Run = dict[str, Any]


def kept_runs() -> list[Run]:
    return [json.loads(path.read_text()) for path in sorted((FOLDER / "runs").glob("*/*.json"))]


def off(run: Run) -> float:
    return run["log_evidence"] - run["truth"]


def is_covered(run: Run) -> bool:
    return abs(off(run)) <= COVERS * run["error"]


def number(value: float, form: str = ".3f") -> str:
    return format(value, form) if np.isfinite(value) else "none"


def row(problem: str, peer: str, runs: list[Run]) -> list[str]:
    """One problem and one peer; where seeds differ, the root mean square of errors and medians of the rest."""
    done = [run for run in runs if "seconds" in run]
    if not done:
        ends = Counter(run["ended"] for run in runs)
        return [problem, NAMES[peer], str(len(runs)), ", ".join(ends), "", "", "", "", ""]
    errors = np.array([off(run) for run in done])
    with_error = [run for run in done if np.isfinite(run["error"]) and np.isfinite(off(run))]
    covered = f"{sum(map(is_covered, with_error))}/{len(with_error)}" if with_error else ""
    shown = f"{errors[0]:+.3f}" if len(done) == 1 else number(float(np.sqrt(np.mean(errors**2))))
    modes = min(run["modes"] for run in done)
    return [
        problem,
        NAMES[peer],
        f"{len(done)}/{len(runs)}" if len(done) < len(runs) else str(len(runs)),
        shown if np.isfinite(errors).all() else "none",
        number(float(np.median([run["error"] for run in done]))),
        covered,
        f"{np.median([run['seconds'] for run in done]):.1f}",
        f"{np.median([run['evaluations'] for run in done]):.1e}",
        f"{modes} of {done[0]['num_modes']}",
    ]


def summary(peer: str, runs: list[Run]) -> list[str]:
    done = [run for run in runs if "seconds" in run]
    with_value = [run for run in done if np.isfinite(off(run))]
    with_error = [run for run in with_value if np.isfinite(run["error"])]
    seconds = [run["seconds"] for run in done]
    return [
        NAMES[peer],
        str(len({run["problem"] for run in runs})),
        f"{sum(abs(off(run)) < CLOSE for run in with_value)}/{len(runs)}" if with_value else "no log Z",
        f"{sum(map(is_covered, with_error))}/{len(with_error)}" if with_error else "no error",
        f"{sum(run['modes'] == run['num_modes'] for run in done)}/{len(runs)}",
        str(len(runs) - len(done)),
        f"{np.median(seconds):.1f}" if seconds else "",
        f"{max(seconds):.1f}" if seconds else "",
    ]


def draw(grouped: dict[tuple[str, str], list[Run]], peers: list[str]) -> None:
    """Seconds against the error of log Z, a panel a problem, a mark a peer, at every seed."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    problems = [name for name in PROBLEMS if any((name, peer) in grouped for peer in peers)]
    rows = -(-(len(problems) + 1) // 4)
    figure, panels = plt.subplots(rows, 4, figsize=(13, 3.1 * rows), sharex=True, sharey=True, squeeze=False)
    marks, colours = "ospD^v<>Xh*P", plt.get_cmap("tab20").colors  # type: ignore[attr-defined]
    for panel, problem in zip(panels.ravel(), problems, strict=False):
        panel.set_title(problem, fontsize=10)
        for i, peer in enumerate(peers):
            done = [run for run in grouped.get((problem, peer), []) if "seconds" in run and np.isfinite(off(run))]
            far = [max(abs(off(run)), 1e-4) for run in done]
            look = {"s": 70 if i == 0 else 35, "color": "black" if i == 0 else colours[i], "zorder": 3 if i == 0 else 2}
            panel.scatter([run["seconds"] for run in done], far, marker=marks[i], label=NAMES[peer], **look)
        panel.set(xscale="log", yscale="log", xlim=(1, 100))
        panel.grid(alpha=0.25)
    for panel in panels[:, 0]:
        panel.set_ylabel("|error of log Z|")
    for panel in panels.ravel()[len(problems) :]:
        panel.axis("off")
    for panel in panels[-1]:
        panel.set_xlabel("seconds")
    handles, labels = panels.ravel()[0].get_legend_handles_labels()
    panels.ravel()[-1].legend(handles, labels, loc="center", fontsize=9, frameon=False)
    figure.tight_layout()
    figure.savefig(FOLDER / "peers.png", dpi=110)


def commit_of(runs: list[Run]) -> str:
    """At which ours were measured; a table of several would be of none."""
    commits = sorted({run["commit"] for run in runs if run["peer"] == "ours"})
    if len(commits) != 1:
        folder = FOLDER / "runs" / "ours"
        raise SystemExit(f"our runs are of {len(commits)} commits {commits}, not of one; empty {folder} and run again")
    return commits[0]


def main() -> None:
    grouped: dict[tuple[str, str], list[Run]] = defaultdict(list)
    commit = commit_of(kept_runs())
    for run in kept_runs():
        grouped[run["problem"], run["peer"]].append(run)
    peers = [peer for peer in PEERS if any(each == peer for _, each in grouped)]
    rows = [
        row(problem, peer, grouped[problem, peer])
        for problem in PROBLEMS
        for peer in peers
        if (problem, peer) in grouped
    ]
    store("peers", "make peers", HEADER, rows, commit)
    of_peer = {peer: [run for (_, each), runs in grouped.items() if each == peer for run in runs] for peer in peers}
    store("peers-summary", "make peers", SUMMARY, [summary(peer, of_peer[peer]) for peer in peers], commit)
    draw(grouped, [peer for peer in peers if peer != "nutpie_draws"])


if __name__ == "__main__":
    main()
