"""The paper's section 7.1 and Figure 1: plain HMC stays in one of two modes, tempering finds both and weighs them."""

from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

import thermocline as tc
from experiments.bimodal.figure import draw_figure
from experiments.bimodal.problem import BASE_DEVIATION, LEFT_MASS, LOG_EVIDENCE, base_fit, is_left, target
from experiments.bimodal.studies import marginals, share_of_the_hot, without_a_mass
from experiments.common import markdown_table, options, store

FOLDER = Path(__file__).parent
STEP, NUM_STEPS, NUM_DRAWS, SEED = 1.0, 20, 1000, 0


class Runs(NamedTuple):
    """One chain each of the paper's setting, with equally many draws and gradients; and the library's defaults."""

    plain: tc.Result
    tempered: tc.Result
    default: tc.Result


def sample() -> Runs:
    """Plain HMC and joint continuous tempering, both with a step of 1 in x (and u) and a unit mass matrix.

    Steps are in units of the metric, which without warm-up is the base's deviation for x and one over the
    square root of `mass` for u: dividing by that deviation makes both steps, and both masses, those of x itself.
    """
    base = base_fit()
    mover = tc.HMC(step_size=STEP / BASE_DEVIATION, num_steps=NUM_STEPS, jitter=0.0)
    methods = tc.Untempered(mover), tc.JointTempering(mover, tc.Continuous(), mass=BASE_DEVIATION**-2, jumps=False)
    plain, tempered = (
        tc.sample(target(), seed=SEED, base=base, method=method, num_chains=1, num_warmup=0, num_draws=NUM_DRAWS,
                  progress=False)
        for method in methods
    )
    return Runs(plain, tempered, tc.sample(target(), seed=SEED, base=base, progress=False))


def numbers_of(runs: Runs) -> dict[str, Any]:
    """What `result.json` holds of the three runs."""
    def described(run: tc.Result) -> dict[str, Any]:
        mass, evidence = run.expectation(is_left), run.log_evidence
        return {
            "left_mass": [float(mass.value), float(mass.standard_error)],
            "log_evidence": None if evidence is None else [evidence.value, evidence.standard_error],
            "chains": list(run.draws.log_ratio.shape),
            "acceptance": float(run.draws.acceptance.mean()),
            "verdict": run.verdict,
            "checks_not_passed": [check.name for check in run.checks if not check.passed],
        }

    setting = {"step": STEP, "num_steps": NUM_STEPS, "num_draws": NUM_DRAWS, "seed": SEED}
    truth = {"left_mass": LEFT_MASS, "log_evidence": LOG_EVIDENCE}
    return {"setting": setting, "truth": truth, **{name: described(run) for name, run in runs._asdict().items()}}


def table_of(runs: Runs) -> str:
    """What each run says, beside the truth."""
    return markdown_table(["quantity", "truth", "plain HMC", "tempered", "tempered, defaults"], [
        ["mass of the left mode", f"{LEFT_MASS:g}", *(str(run.expectation(is_left)) for run in runs)],
        ["log evidence", f"{LOG_EVIDENCE:g}", *(str(run.log_evidence or "none") for run in runs)],
        ["chains × draws", "", *(" × ".join(map(str, run.draws.log_ratio.shape)) for run in runs)],
        ["mean acceptance", "", *(f"{run.draws.acceptance.mean():.2f}" for run in runs)],
        ["verdict", "", *(run.verdict for run in runs)],
    ])


def tables_of_studies(numbers: dict[str, Any]) -> dict[str, str]:
    """The smaller statements of the paper, each with what was measured."""
    rows = [[row["base"], f"{row['kl_base_to_target']:.2f}", f"{row['kl_target_to_base']:.2f}",
             f"{row['error_of_log_zeta']:+g}", f"{row['near_0']:.3f}", f"{row['lowest_density']:.2g}",
             f"{row['near_1']:.3f}"] for row in numbers["marginals"]]
    tables = {"marginals": markdown_table(["base", "KL to target", "KL from target", "log ζ − log Z", "P(β < 0.1)",
                                           "lowest density of β", "P(β > 0.9)"], rows)}
    hot = numbers["hot_draws"]
    tables["hot"] = markdown_table(["share", ""], [
        ["of the weight w₁, held by draws with β < 0.1, exactly", f"{hot['exact_share']:.1%}"],
        ["the same, in the run", f"{hot['share']:.1%}"],
        ["of the draws, with β < 0.1", f"{hot['share_of_draws']:.0%}"],
        ["of the draws, with β > 0.9", f"{hot['share_of_cold_draws']:.0%}"],
        ["of the draws, that all are worth by their weights (Kish)", f"{hot['effective_share']:.0%}"],
    ])
    if "without_a_mass" in numbers:
        rows = [[row["method"], f"{row['rmse_log_evidence']:.3f}", f"{row['rmse_left_mass']:.3f}",
                 f"{row['gradients_a_draw']:.1f}"] for row in numbers["without_a_mass"]]
        header = ["method", "RMSE of log Z", "RMSE of the left mode's mass", "gradients a draw"]
        tables["masses"] = markdown_table(header, rows)
    return tables


def main(quick: bool, out: Path, console: Console) -> dict[str, Any]:
    """Sample, print the tables, write figure, numbers and README into `out`, and return the numbers."""
    out.mkdir(parents=True, exist_ok=True)
    with console.status("sampling a mixture of two Gaussians, with and without tempering"):
        runs = sample()
        numbers = numbers_of(runs) | {"hot_draws": share_of_the_hot(runs.tempered), "marginals": marginals()}
    if not quick:
        with console.status("Gibbs and joint tempering, with several masses"):
            numbers["without_a_mass"] = without_a_mass()
    tables = {"table": table_of(runs)} | tables_of_studies(numbers)
    for table in tables.values():
        console.print(table + "\n", soft_wrap=True, markup=False)
    for check in runs.tempered.checks:
        if not check.passed:
            wanted = f"{check.value:.3g} where {check.limit:g} is wanted"
            console.print(f"Tempered run, {check.name}: {wanted}. {check.advice}", soft_wrap=True)
    with console.status("drawing the figure"):
        draw_figure(runs.plain, runs.tempered, out / "figure.png")
    store(FOLDER, out, numbers, tables)
    console.print(f"Figure written to {out / 'figure.png'}", soft_wrap=True)
    return numbers


if __name__ == "__main__":
    given = options(FOLDER)
    main(given.quick, given.out, Console())
