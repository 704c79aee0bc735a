"""Which method, mover, trajectory and number of chains should be the default? Work to a given error, measured.

For each problem the black box fits one base, or one that fits badly is made of it. Every candidate then samples from
it for the same number of gradients. The table gives the gradients after warm-up that it would take for a standard
error of 0.05 in log Z, and the gradients for an effective draw of the coordinate that has fewest, both relative to the
first candidate, as geometric means over problems and seeds, and the share of runs with verdict "ok".

    python benchmarks/defaults.py [--seeds 3] [--problem NAME ...] [--candidate NAME ...]
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import thermocline as tc
from experiments.radon.data import radon
from experiments.radon.models import target_of
from studies.study_problems import STUDY

PROBLEMS = (
    "shells 5-D",
    "banana",
    "hierarchical (non-centred)",
    "funnel",
    "five 10-D, base too wide",
    "five 10-D, one Gaussian",
    "shells 5-D, one Gaussian",
    "radon, ADVI",
)
REFERENCE = "Gibbs, HMC 8, 16 chains"
EIGHT = tc.HMC(num_steps=8)
GRADIENTS = 200_000  # of sampling, in all chains


def candidates() -> dict[str, tuple[Any, int, float]]:
    """Method, chains, and gradients a draw, by name."""
    return {
        REFERENCE: (tc.GibbsTempering(EIGHT), 16, 9),
        "Gibbs without jumps": (tc.GibbsTempering(EIGHT, jumps=False), 16, 8),
        "Gibbs, HMC 2": (tc.GibbsTempering(tc.HMC(num_steps=2)), 16, 3),
        "Gibbs, HMC 4": (tc.GibbsTempering(tc.HMC(num_steps=4)), 16, 5),
        "Gibbs, HMC 16": (tc.GibbsTempering(tc.HMC(num_steps=16)), 16, 17),
        "Gibbs, NUTS": (tc.GibbsTempering(tc.NUTS()), 16, 9),
        "Gibbs, acceptance 0.8": (tc.GibbsTempering(tc.HMC(num_steps=8, target_acceptance=0.8)), 16, 9),
        "joint, HMC 8": (tc.JointTempering(EIGHT), 16, 9),
        "Gibbs, 4 chains": (tc.GibbsTempering(EIGHT), 4, 9),
        "Gibbs, 64 chains": (tc.GibbsTempering(EIGHT), 64, 9),
    }


def target_and_base(name: str) -> tuple[Any, Any]:
    """The target and the base that every candidate starts from."""
    if name == "radon, ADVI":
        target = target_of("numpyro", radon())
        return target, tc.fit_advi(target, seed=0)
    target = STUDY[name.split(",")[0]]().target
    fit = tc.fit_auto(target, seed=0)
    if "too wide" in name:
        components = fit.base.components
        wide = tc.Gaussian(components.mean, 1.5 * np.asarray(components.scale_tril))
        fit = tc.BaseFit(tc.Mixture(wide, fit.base.log_weights), fit.log_zeta, modes=fit.modes)
    if "one Gaussian" in name:
        fit = tc.fit_moments(fit)
    return target, fit


def smallest_effective_size(result: tc.Result) -> float:
    return min(check.value for check in result.checks if check.name.startswith("effective size"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--problem", nargs="+", choices=PROBLEMS, default=PROBLEMS)
    parser.add_argument("--candidate", nargs="+", choices=candidates(), default=list(candidates()))
    options = parser.parse_args()
    chosen = {name: candidates()[name] for name in (REFERENCE, *options.candidate)}
    needed, per_draw, is_ok = ({name: [] for name in chosen} for _ in range(3))
    for problem_name in options.problem:
        target, fit = target_and_base(problem_name)
        for name, (method, num_chains, cost) in chosen.items():
            num_draws = max(int(GRADIENTS / cost / num_chains), 50)
            for seed in range(options.seeds):
                result = tc.sample(
                    target,
                    base=fit,
                    method=method,
                    num_chains=num_chains,
                    num_draws=num_draws,
                    seed=seed,
                    progress=False,
                )
                evidence: Any = result.log_evidence
                spent = float(result.draws.num_gradients.sum())
                needed[name].append(spent * (evidence.standard_error / 0.05) ** 2)
                per_draw[name].append(spent / smallest_effective_size(result))
                is_ok[name].append(result.verdict == "ok")
            recent = [np.exp(np.mean(np.log(values[name][-options.seeds :]))) for values in (needed, per_draw)]
            print(f"{problem_name:40s} {name:26s} {recent[0]:10.3g} gradients, {recent[1]:8.3g} a draw", flush=True)
    print("\nrelative to the first       log Z    draw      ok")
    for name in needed:
        ratios = (np.exp(np.mean(np.log(values[name]) - np.log(values[REFERENCE]))) for values in (needed, per_draw))
        print(f"{name:26s}", *(f"{ratio:6.2f} " for ratio in ratios), f"{np.mean(is_ok[name]):6.2f}")


if __name__ == "__main__":
    main()
