"""The claims table of `experiments/README.md`, from what the experiments' full runs left in their result.json.

`python -m experiments.claims` writes it anew. A verdict is a rule on the numbers, not a remark of ours.
"""

import json
from collections.abc import Callable
from typing import NamedTuple

from experiments import judges
from experiments.common import REPOSITORY, markdown_table, write_readme
from experiments.judges import Finding, Numbers

FOLDER = REPOSITORY / "experiments"
OPEN = "not run yet", "open"


class Claim(NamedTuple):
    """A sentence of the paper that states a result, and how our numbers judge it."""

    section: str
    sentence: str
    experiment: str
    judge: Callable[[Numbers], Finding]


CLAIMS = (
    Claim("7.1", "Standard HMC gets stuck in one mode.", "bimodal", judges.stuck),
    Claim(
        "7.1",
        "The tempered chain identifies both modes and accurately estimates their relative masses.",
        "bimodal",
        judges.masses,
    ),
    Claim(
        "7.1",
        "Even points for which β is close to zero can contribute significantly to expectations.",
        "bimodal",
        judges.hot_draws,
    ),
    Claim(
        "6",
        "A high KL divergence from base to target leads to low densities on intermediate β.",
        "bimodal",
        judges.empty_middle,
    ),
    Claim(
        "6",
        "An error in log ζ makes the dynamic spend most of the time at one end of β.",
        "bimodal",
        judges.pushed_to_one_end,
    ),
    Claim(
        "8",
        "Gibbs eliminates the need to tune m and achieves similar or better efficiency.",
        "bimodal",
        judges.no_mass_to_tune,
    ),
    Claim(
        "7.2",
        "Gibbs and joint CT both have lower RMSEs in all three moments across all run times.",
        "boltzmann",
        judges.compared(
            ("Gibbs CT", "simulated tempering"),
            ("joint CT", "simulated tempering"),
            ("Gibbs CT", "AIS"),
            ("joint CT", "AIS"),
        ),
    ),
    Claim(
        "7.2",
        "Joint CT is marginally better than Gibbs CT on log Z and the mean.",
        "boltzmann",
        judges.compared(("joint CT", "Gibbs CT"), moments=slice(2)),
    ),
    Claim(
        "7.2",
        "The tempering approaches outperform AIS, simulated tempering among them.",
        "boltzmann",
        judges.compared(("simulated tempering", "AIS")),
    ),
    Claim(
        "7.3",
        "NUTS on the extended space converges to an estimate very close to that of AIS.",
        "radon",
        judges.near_annealing,
    ),
    Claim("7.3", "It does so quickly.", "radon", judges.quickly),
    Claim("7.3", "It significantly improves over ADVI's final lower bound.", "radon", judges.above_the_bound),
    Claim(
        "7.3, 8",
        "The approach gives a reasonable marginal likelihood in a black-box fashion.",
        "radon",
        judges.black_box,
    ),
    Claim(
        "6",
        "Bootstrapping base and log ζ from a first run's samples ameliorates a poor base.",
        "radon",
        judges.bootstrapped,
    ),
    Claim(
        "7.4",
        "Gibbs CT and AIS perform similarly, joint CT converges less quickly, simulated tempering is slowest.",
        "iwae",
        judges.autoencoders,
    ),
    Claim(
        "7.4",
        "A leapfrog step in the extended space costs more.",
        "boltzmann",
        judges.dearer("joint CT", "Gibbs CT", 1.02),
    ),
    Claim(
        "7.4, 8",
        "Categorical draws of β can become a bottleneck.",
        "boltzmann",
        judges.dearer("simulated tempering", "Gibbs CT", 1.2),
    ),
    Claim(
        "7.4",
        "One long chain gains more than several shorter ones of equal total length.",
        "iwae",
        judges.judged_by_images("One long chain"),
    ),
    Claim("7.4", "AIS uses parallel hardware more effectively.", "iwae", judges.judged_by_images("AIS gains most")),
)


def found(claim: Claim) -> Finding:
    file = FOLDER / claim.experiment / "result.json"
    if not file.exists():
        return OPEN
    try:
        return claim.judge(json.loads(file.read_text()))
    except KeyError as missing:
        return f"the stored result has no {missing}: run the experiment again", "open"


def main() -> None:
    """Write the table into `experiments/README.md`."""
    rows = []
    for claim in CLAIMS:
        figure, verdict = found(claim)
        rows.append([claim.section, claim.sentence, f"[{claim.experiment}]({claim.experiment})", figure, verdict])
    table = markdown_table(["section", "the paper says", "experiment", "we find", "verdict"], rows)
    write_readme(FOLDER, FOLDER, {"claims": table.replace("---:", "---")})
    print(table)


if __name__ == "__main__":
    main()
