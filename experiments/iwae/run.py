"""Section 7.4 of the paper: the marginal likelihood of images under two importance weighted autoencoders.

Stages are stored in build/ as they finish, so that an interrupted run goes on where it was.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import REPOSITORY, markdown_table, options, store
from experiments.iwae import figure
from experiments.iwae.claims import (
    claims_rows,
    claims_table,
    errors_by_length,
    middle_of,
    root_mean_square,
    seconds_shown,
    time_to_reach,
)
from experiments.iwae.model import load, load_authors
from experiments.iwae.stages import Settings, pose, run_all
from experiments.iwae.train import data_folder

FOLDER = Path(__file__).parent
NAMES = {"mnist": "mnist-iwae", "omniglot": "omni-iwae"}  # and the folders of the authors' weights
NUM_DRAWS = {"gibbs": 2000, "joint": 3000, "simulated": 2000, "library": 500}
FULL = Settings(100, 4, NUM_DRAWS, (50, 100, 200, 500, 1000, 2000), 1000, (1, 4, 16, 64))
QUICK = Settings(8, 4, dict.fromkeys(NUM_DRAWS, 500) | {"library": 100}, (50, 100), 200, (1, 16))
SMALL_GAP = 0.1  # nats an image
Found = dict[str, dict[str, np.ndarray]]


def shown(value: float, error: float) -> str:
    return f"{value:.3f} ± {error:.3f}"


def bounds_table(found: dict[str, Found], settings: Settings) -> str:
    """Both sides, the gap, and whether it is small."""
    rows = []
    for name, stages in found.items():
        bounds = stages["bounds"]
        sides = [
            shown(bounds[side].mean(), np.sqrt(np.sum(bounds[f"{side}_error"] ** 2)) / len(bounds[side]))
            for side in ("lower", "upper")
        ]
        gap = (bounds["upper"] - bounds["lower"]).mean()
        verdict = "yes" if gap <= SMALL_GAP else "no"
        rows.append((figure.TITLES[name], len(bounds["lower"]), settings.bounds, *sides, f"{gap:.3f}", verdict))
    return markdown_table(
        ("model", "images", "temperatures", "lower bound", "upper bound", "gap", f"at most {SMALL_GAP}"), rows
    )


def final_rows(stages: Found) -> list[tuple[str, float, float, float]]:
    """Method, seconds of a run, value and error, at the end of every curve and for each schedule."""
    rows = []
    for (seconds, value, error), stage in zip(np.transpose(figure.points(stages)), annealed_names(stages), strict=True):
        rows.append((f"AIS, {stage.split('-')[1]} temperatures", seconds, value, error))
    for stage, (label, _) in figure.curves_of(stages).items():
        seconds, value, error = (part[-1] for part in figure.curve(stages[stage]))
        rows.append((f"{label}, {stages[stage]['num_draws'][-1]} draws", seconds, value, error))
    return rows


def annealed_names(stages: Found) -> list[str]:
    return [name for name in stages if name.startswith("annealed-")]


def estimates_table(found: dict[str, Found]) -> str:
    """How far each estimate lies from the middle of the bounds, per image, and what it cost."""
    rows = []
    for columns in zip(*(final_rows(stages) for stages in found.values()), strict=True):
        cells = [columns[0][0]]
        for (_, seconds, value, error), stages in zip(columns, found.values(), strict=True):
            cells += [shown(value, error), f"{value - middle_of(stages):+.3f}", f"{seconds:.1f}"]
        rows.append(cells)
    header = ["method"]
    for name in found:
        header += [figure.TITLES[name], "less the middle", "seconds"]
    return markdown_table(header, rows)


def speed_table(found: dict[str, Found]) -> str:
    tolerances = 0.5, 0.2, 0.1
    columns = [time_to_reach(stages, tolerance) for stages in found.values() for tolerance in tolerances]
    rows = [(label, *(seconds_shown(column[label]) for column in columns)) for label in columns[0]]
    header = [f"{figure.TITLES[name]}, within {tolerance}" for name in found for tolerance in tolerances]
    return markdown_table(("seconds until and ever after", *header), rows)


def lengths_table(found: dict[str, Found]) -> str:
    """One chain against as many draws of several: bias and root mean square error of one image's log p."""
    rows = []
    for name, stages in found.items():
        for stage, (label, _) in figure.curves_of(stages).items():
            long, short = errors_by_length(stages, stage)
            cells = [f"{root_mean_square(part):.3f} ({part.mean():+.3f})" for part in (long, short)]
            count, number = stages[stage]["num_draws"][-1], long.shape[1]
            long_chain, short_chains = f"1 × {count}", f"{number} × {count // number}"
            rows.append((f"{figure.TITLES[name]}, {label}", long_chain, cells[0], short_chains, cells[1]))
    return markdown_table(("", "long", "error (bias)", "short", "error (bias)"), rows)


def parallel_table(found: dict[str, Found]) -> str:
    """Seconds of one run and of one draw for four images, by how many go on at once."""
    stages = next(iter(found.values()))["parallel"]
    numbers = stages["numbers"]
    rows = []
    for name, label in (("annealed", "AIS run, 50 temperatures"), ("gibbs", "Gibbs CT draw")):
        seconds = stages[name]
        rows.append((label, *(f"{1e3 * s:.1f} ({1e3 * s / n:.2f})" for s, n in zip(seconds, numbers, strict=True))))
    return markdown_table(("milliseconds (each)", *(f"{number} at once" for number in numbers)), rows)


def numbers_of(found: dict[str, Found], settings: Settings) -> dict[str, Any]:
    """What the figure and the tables show, for result.json."""
    numbers: dict[str, Any] = {"settings": settings._asdict(), "claims": claims_rows(found)}
    for model, stages in found.items():
        bounds = {side: float(stages["bounds"][side].mean()) for side in ("lower", "upper")}
        rows = [
            {"method": label, "seconds": float(seconds), "value": float(value), "error": float(error)}
            for label, seconds, value, error in final_rows(stages)
        ]
        methods = figure.curves_of(stages)
        curves = {name: [np.round(part, 5).tolist() for part in figure.curve(stages[name])] for name in methods}
        acceptance = {name: round(float(stages[name]["acceptance"]), 3) for name in methods}
        numbers[model] = {"bounds": bounds, "estimates": rows, "curves": curves, "acceptance": acceptance}
    return numbers


def report(found: dict[str, Found], settings: Settings) -> dict[str, str]:
    return {
        "claims": claims_table(found),
        "bounds": bounds_table(found, settings),
        "estimates": estimates_table(found),
        "speed": speed_table(found),
        "lengths": lengths_table(found),
        "parallel": parallel_table(found),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, help="of each model")
    parser.add_argument("--authors", action="store_true", help="the paper's own weights, if at hand; into build/")
    chosen, given = options(FOLDER, parser), parser.parse_args()
    settings = QUICK if chosen.quick else FULL
    settings = settings if given.images is None else settings._replace(num_images=given.images)
    form = ("authors-" if given.authors else "") + ("quick" if chosen.quick else "full")
    out = REPOSITORY / "build" / f"paper-iwae-{form}" if given.authors and given.out is None else chosen.out
    problems, found = {}, {}
    for name, folder in NAMES.items():
        ours, theirs = FOLDER / "weights" / f"{name}.npz", data_folder() / "paper" / folder
        model = load_authors(theirs) if given.authors else load(ours)
        problems[name] = pose(name, model, settings.num_images)
        here = settings if not found else settings._replace(parallel=())  # a matter of the machine: measured once
        found[name] = run_all(problems[name], here, REPOSITORY / "build" / "iwae" / form)
    tables = report(found, settings)
    store(FOLDER, out, numbers_of(found, settings), tables)
    figure.draw(out / "figure.png", problems, found)
    print("\n\n".join(tables.values()), f"\n\nWritten to {out}")


if __name__ == "__main__":
    main()
