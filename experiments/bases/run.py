"""What each way to fit a base gives on four targets: divergences, cost, and log Z after equal work."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments.bases.figure import VERDICTS, draw_figure
from experiments.bases.outcomes import FITS, LEAST, MOST, NUM_EXACT, WORK, Outcome, measure, of
from experiments.bases.problems import problems


def medians(runs: list[Outcome], field: str) -> float:
    return float(np.median([getattr(run, field) for run in runs]))


def rmse(runs: list[Outcome]) -> float:
    return float(np.sqrt(np.mean([run.log_evidence_error**2 for run in runs])))


def verdicts(runs: list[Outcome]) -> str:
    given = [run.verdict for run in runs]
    return ", ".join(f"{given.count(name)} {name}" for name in (*VERDICTS, "refused") if name in given)


def shown(divergence: float) -> str:
    return "< 0.001" if divergence < LEAST else "> 1000" if divergence > MOST else f"{divergence:.3g}"


def table_of(problem: str, outcomes: list[Outcome]) -> Table:
    """One row a fit: medians over seeds, the root mean square for the error of log Z."""
    table = Table(title=problem)
    table.add_column("fit", no_wrap=True)
    table.add_column("base", no_wrap=True)
    for name in ("KL(b‖t)", "KL(t‖b)", "fit gradients", "run gradients", "log ζ − log Z", "rmse of log Z", "its error"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdicts", no_wrap=True)
    for fit in FITS:
        runs = of(outcomes, problem, fit)
        done = [run for run in runs if not run.refusal]
        if not done:
            table.add_row(fit, *[""] * 8, verdicts(runs))
            continue
        table.add_row(
            fit,
            " or ".join(dict.fromkeys(run.kind for run in done)),
            *(shown(medians(done, field)) for field in ("kl_base_to_target", "kl_target_to_base")),
            *(f"{medians(done, field):,.0f}" for field in ("fit_gradients", "run_gradients")),
            f"{medians(done, 'log_zeta_error'):+.3f}",
            f"{rmse(done):.3f}",
            f"{medians(done, 'standard_error'):.3f}",
            verdicts(runs),
        )
    return table


def refusals(outcomes: list[Outcome]) -> list[str]:
    """Each refusal once, in the fit's own words."""
    said = {(run.problem, run.fit): run.refusal for run in outcomes if run.refusal}
    return [f"{fit}, {problem}: refused. {sentence}" for (problem, fit), sentence in said.items()]


def numbers_of(outcomes: list[Outcome]) -> dict[str, Any]:
    """What `result.json` holds: every run, with nothing where a fit was refused."""

    def described(run: Outcome) -> dict[str, Any]:
        fields = run._asdict().items()
        return {name: value for name, value in fields if value != "" and value == value}

    return {"setting": {**WORK, "num_exact": NUM_EXACT}, "runs": [described(run) for run in outcomes]}


def main(out: Path, seeds: int) -> dict[str, Any]:
    """Measure, print the tables, write `figure.png` and `result.json` into `out`, and return the latter's content."""
    console = Console(width=None if Console().is_terminal else 160)
    out.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for problem in problems():
        for name in FITS:
            for seed in range(seeds):
                with console.status(f"{problem.name}: {name}, seed {seed}"):
                    outcomes.append(measure(problem, name, seed))
    report(outcomes, out, console)
    return numbers_of(outcomes)


def report(outcomes: list[Outcome], out: Path, console: Console) -> None:
    for problem in dict.fromkeys(run.problem for run in outcomes):
        console.print(table_of(problem, outcomes))
    for sentence in refusals(outcomes):
        console.print(sentence, soft_wrap=True)
    draw_figure(outcomes, out / "figure.png")
    (out / "result.json").write_text(json.dumps(numbers_of(outcomes), indent=2) + "\n")
    console.print(f"Figure written to {out / 'figure.png'}", soft_wrap=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--seeds", type=int, default=3, help="how many, from 0")
    options = parser.parse_args()
    main(options.out, options.seeds)
