"""The paper's section 7.3 and Figure 3b: the marginal likelihood of a hierarchical regression, by tempered NUTS."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

import thermocline as tc
from experiments.common import markdown_table, options, store
from experiments.radon.data import radon
from experiments.radon.exact import log_evidence
from experiments.radon.figure import draw_figure
from experiments.radon.models import target_of

FOLDER = Path(__file__).parent
NUM_POINTS = 25  # of a curve against run time


class Setting(NamedTuple):
    """How much is run; the defaults are the paper's."""

    num_counties: int | None = None
    num_chains: int = 10
    num_warmup: int = 500
    num_draws: int = 2500
    num_annealings: int = 100
    num_temperatures: int = 10_000
    black_boxes: tuple[tuple[str, bool], ...] = (("numpyro", False), ("numpyro", True), ("pymc", False), ("pymc", True))
    seed: int = 1


QUICK = Setting(num_counties=12, num_warmup=200, num_draws=400, num_annealings=20, num_temperatures=500,
                black_boxes=(("numpyro", False), ("numpyro", True)))


class Run(NamedTuple):
    """A finished run, and its seconds from start to end, compiling and the fit of its base included."""

    name: str
    result: tc.Result
    seconds: float
    drawing: float | None = None  # seconds of a sampler that is not ours, its warm-up included


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    begun = time.perf_counter()
    return function(), time.perf_counter() - begun


def tempered_nuts(setting: Setting) -> tuple[tc.JointTempering, tc.JointTempering, dict[str, int]]:
    """The paper's sampler, NUTS on (x, u) with beta uniform but for log zeta; the same with a law that is learned."""
    theirs = tc.JointTempering(tc.NUTS(), tc.Continuous(), jumps=False)
    lengths = {"num_chains": setting.num_chains, "num_warmup": setting.num_warmup, "num_draws": setting.num_draws}
    return theirs, tc.JointTempering(tc.NUTS(), jumps=False), lengths


def own_nuts(setting: Setting, target: tc.Target, fit: tc.BaseFit) -> tuple[tc.Result, float]:
    """The paper's sampler with somebody else's NUTS, nutpie's, as the authors used PyMC3's; and its own seconds."""
    import nutpie

    extended = tc.extended(target, base=fit, seed=setting.seed, progress=False)
    model = extended.to_nutpie()
    lengths: dict[str, Any] = {"chains": setting.num_chains, "tune": setting.num_warmup, "draws": setting.num_draws}
    trace, seconds = timed(lambda: nutpie.sample(model, **lengths, seed=setting.seed, progress_bar=False))
    return extended.result(trace, progress=False), seconds


def annealing(setting: Setting) -> tuple[tc.AnnealedImportance, dict[str, int]]:
    """The paper's reference: independent runs from the same base, with HMC moves that a pilot has tuned."""
    method = tc.AnnealedImportance(tc.HMC(), tc.sigmoidal_betas(setting.num_temperatures))
    num_chains = min(20, setting.num_annealings // 4)
    lengths = {"num_chains": num_chains, "num_draws": setting.num_annealings // num_chains}
    return method, lengths | {"num_warmup": setting.num_warmup}


def sample_all(setting: Setting, tell: Callable[[Run], None]) -> tuple[tc.BaseFit, float, list[Run]]:
    """ADVI's fit, its seconds without compiling, and every run, told of as it ends."""
    data, runs = radon(setting.num_counties), []
    target = target_of("numpyro", data)
    fit = tc.fit_advi(target, seed=setting.seed)
    _, advi_seconds = timed(lambda: tc.fit_advi(target, seed=setting.seed))  # once more, now that it is compiled

    def sampled(name: str, target: tc.Target, seed: int = setting.seed, **arguments: Any) -> tc.Result:
        result, seconds = timed(lambda: tc.sample(target, seed=seed, **arguments))
        runs.append(Run(name, result, seconds))
        tell(runs[-1])
        return result

    nuts, learned_nuts, lengths = tempered_nuts(setting)
    first = sampled("CT-NUTS", target, base=fit, method=nuts, **lengths)
    sampled("CT-NUTS, second stage", target, setting.seed + 1, base=tc.fit_moments(first), method=nuts, **lengths)
    sampled("CT-NUTS, learned law", target, base=fit, method=learned_nuts, **lengths)
    (own, drawing), seconds = timed(lambda: own_nuts(setting, target, fit))
    runs.append(Run("CT-NUTS, nutpie's", own, seconds, drawing))
    tell(runs[-1])
    method, lengths = annealing(setting)
    sampled("AIS", target, base=fit, method=method, **lengths)
    for front_end, centred in setting.black_boxes:
        form = "centred" if centred else "non-centred"
        sampled(f"black box, {form} ({front_end})", target_of(front_end, data, centred=centred))
    return fit, advi_seconds, runs


def prefix(result: tc.Result, num_draws: int, chain: int) -> float:
    """Log Z as one chain would have it, had it stopped early."""
    draws = type(result.draws)(*(leaf[chain : chain + 1, :num_draws] for leaf in result.draws))
    estimate = replace(result, draws=draws).log_evidence_chains
    assert estimate is not None
    return estimate.value


def running_seconds(result: tc.Result) -> tuple[float, float]:
    """Seconds before the first draw and while drawing, compiling excluded (adaptation is next to nothing else)."""
    seconds = result.cost.seconds
    return seconds.ramp + seconds.warmup, seconds.sampling


def curve_of(result: tc.Result, offset: float) -> dict[str, list[float]]:
    """Mean of log Z over chains, each an independent run, and its standard error, from more and more draws."""
    before, drawing = running_seconds(result)
    num_chains, num_draws = result.draws.log_ratio.shape
    lengths = np.unique(np.geomspace(min(16, num_draws), num_draws, NUM_POINTS).astype(int))
    values = np.array([[prefix(result, length, chain) for chain in range(num_chains)] for length in lengths])
    return {
        "seconds": (offset + before + drawing * lengths / num_draws).round(3).tolist(),
        "mean": values.mean(axis=1).round(4).tolist(),
        "error": (values.std(axis=1, ddof=1) / np.sqrt(num_chains)).round(4).tolist(),
    }


def numbers_of(run: Run, exact: float) -> dict[str, Any]:
    result, estimate = run.result, run.result.log_evidence_chains
    assert estimate is not None
    return {
        "log_evidence": [round(estimate.value, 4), round(estimate.standard_error, 4)],
        "z": round(estimate.z_score(exact), 2),
        "verdict": result.verdict,
        "checks_not_passed": [check.name for check in result.checks if not check.passed],
        "chains": list(result.draws.log_ratio.shape),
        "num_gradients": int(result.cost.evaluations.total),
        "seconds": round(run.seconds, 1),
        "running_seconds": round(sum(running_seconds(result)) if run.drawing is None else run.drawing, 1),
    }


def table_of(numbers: dict[str, Any]) -> str:
    """Every answer beside the exact one."""
    exact, fit = numbers["exact"], numbers["advi"]
    rows = [
        ["exact, by quadrature", f"{exact:.4f}", "", "", "", "", ""],
        ["ADVI's bound", f"{fit['elbo']:.2f}", f"{fit['elbo'] - exact:+.2f}", "", "", "", f"{fit['seconds']:.1f}"],
    ]
    for name, run in numbers["runs"].items():
        value, error = run["log_evidence"]
        rows.append([name, f"{value:.3f} ± {error:.3f}", f"{value - exact:+.3f}", f"{run['z']:+.1f}", run["verdict"],
                     f"{run['num_gradients']:.1e}", f"{run['running_seconds']:.1f} / {run['seconds']:.0f}"])
    header = ["method", "log Z", "less the exact", "z", "verdict", "gradients", "seconds, running / in all"]
    return markdown_table(header, rows)


def main(setting: Setting, out: Path, console: Console) -> dict[str, Any]:
    """Run all, write figure, numbers and README into `out`, and return the numbers."""
    exact = log_evidence(radon(setting.num_counties))
    console.print(f"exact log evidence, by quadrature: {exact:.4f}")

    def tell(run: Run) -> None:
        answer = f"{run.result.log_evidence_chains} ({run.result.verdict})"
        console.print(f"{run.name}: {answer}, {run.seconds:.0f} s", soft_wrap=True)

    fit, advi_seconds, runs = sample_all(setting, tell)
    assert fit.trace is not None
    numbers = {
        "setting": setting._asdict(),
        "exact": round(exact, 4),
        "advi": {"elbo": round(fit.log_zeta, 3), "seconds": round(advi_seconds, 2),
                 "trace": fit.trace.round(3).tolist()},
        "runs": {run.name: numbers_of(run, exact) for run in runs},
        "curves": {run.name: curve_of(run.result, advi_seconds) for run in runs[:3]},
    }
    store(FOLDER, out, numbers, {"table": table_of(numbers)})
    draw_figure(numbers, out / "figure.png")
    console.print(table_of(numbers), soft_wrap=True)
    return numbers


if __name__ == "__main__":
    given = options(FOLDER)
    main(QUICK if given.quick else Setting(), given.out, Console())
