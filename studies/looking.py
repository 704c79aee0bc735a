"""What looking is worth, and whether the blind spot is a bound: a second search after the first, on generated targets.

After a search, fresh looks are taken about the modes it found, and ascents made from random ones, explained and not. By
family and by dimension: the share of looks left unexplained, the shares of ascents from either kind that end at a mode
the search did not know, and how often the second search's estimate of the share of looks that lead to such a mode is
larger than the blind spot that the first one stated (which may happen in 5 % of the runs).

    python -m studies.looking [--families NAME ...] [--number 30] [--mixtures 300]
        [--seeds-from COMMIT | --first-seed 0] [--out DIR] [--seconds 120]
"""

import json
import os
from itertools import pairwise
from pathlib import Path

import numpy as np

from studies.finding import MIXTURES, arguments, forget_programs, seeds_of
from studies.finding_runs import Run, TooLongError, ended_after
from studies.targets import GeneratedTarget, generate
from thermocline.auto.black_box import searched
from thermocline.engine.progress import Silent
from thermocline.evaluator import checked_evaluator
from thermocline.modes.find import Search
from thermocline.modes.looks import EXPLAINED, explained, look
from thermocline.modes.peaks import home_of

NUM_LOOKS = 2**15
NUM_ASCENTS = 256  # of each kind: the search itself makes some 50 to 300
DIMENSIONS = (1, 3, 10, 20, 51)  # limits of the groups
KINDS = {
    "log-concave": ("regression",),
    "heavy-tailed": ("heavy-tailed product", "t mixture"),
    "curved": ("banana and ring", "funnel"),
    "skewed or bounded": ("skewed product", "bounded"),
    "several modes": (MIXTURES, "spike and slab", "label switching"),
}


def looked_again(generated: GeneratedTarget) -> Run:
    """A search, and another that knows what it found."""
    evaluate = checked_evaluator(generated.target)
    first = searched(evaluate, generated.seed, evaluate.initial_position[None], Silent())
    found, generator = first.found(), np.random.default_rng([generated.seed, 1])
    again = Search.resumed(evaluate, generator, Silent(), found)
    rows = look(generator, again.peaks, first.starts, NUM_LOOKS)
    values, gradients = evaluate(rows)
    usable = np.isfinite(values) & np.isfinite(gradients).all(axis=1)
    rows, gradients = rows[usable], gradients[usable]
    is_explained = explained(rows, gradients, again.peaks) > EXPLAINED
    run: Run = {"unexplained": float(np.mean(~is_explained)), "blind_spot": found.record.blind_spot}
    for name, chosen in (("new_unexplained", ~is_explained), ("new_explained", is_explained)):
        run[name] = share_elsewhere(again, generator.permutation(rows[chosen])[:NUM_ASCENTS])
    return run


def share_elsewhere(search: Search, starts: np.ndarray) -> float:
    """Of ascents that arrive, the share that do so at a mode the search does not know."""
    if not len(starts):
        return 0.0
    known, groups = len(search.peaks), set(search.group)
    ends = search.ascended(starts)
    search.admit(ends, "look")
    home = home_of(ends.position, ends.log_density, search.peaks)
    home = home[home >= 0]
    is_new = np.array([search.group[place] not in groups for place in home])
    assert len(search.peaks) >= known
    return float(is_new.mean()) if len(is_new) else 0.0


def share_of(run: Run) -> float:
    """Of looks, that lead elsewhere, by the second search."""
    u = run["unexplained"]
    return u * run["new_unexplained"] + (1 - u) * run["new_explained"]


def kept(folder: Path, family: str, seed: int, longest: float) -> Run | None:
    """The run of its file, or a new one; None where time ran out."""
    path = folder / f"{family.replace(' ', '-')}_{seed}_looking.json"
    if not path.exists():
        generated = generate(family, seed)
        try:
            with ended_after(longest):
                run = looked_again(generated)
        except TooLongError:
            return None
        run |= {"family": family, "seed": seed, "dimension": generated.dimension}
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(run))
        os.replace(part, path)
        forget_programs()
    return json.loads(path.read_text())


def row(name: str, runs: list[Run]) -> str:
    """Medians, and how often the blind spot was too small."""
    if not runs:
        return f"{name:<24}    0"
    columns = [float(np.median([run[key] for run in runs])) for key in ("unexplained", "blind_spot")]
    means = [float(np.mean([run[key] for run in runs])) for key in ("new_unexplained", "new_explained")]
    over = sum(share_of(run) > run["blind_spot"] for run in runs)
    cells = f"{columns[0]:>12.1%} {means[0]:>12.2%} {means[1]:>12.2%} {columns[1]:>11.2%}"
    return f"{name:<24} {len(runs):>4} {cells} {over:>5} ({over / len(runs):.1%})"


def main(given: list[str] | None = None) -> None:
    options = arguments(given)
    asked = [(family, seed) for family in options.families for seed in seeds_of(options, family)]
    runs = [run for family, seed in asked if (run := kept(options.out, family, seed, options.seconds))]
    print(f"{len(asked)} asked for, {len(runs)} finished")
    print(f"{'':<24} runs  unexplained  new of those  of the others  blind spot  exceeded")
    for kind, families in KINDS.items():
        print(row(kind, [run for run in runs if run["family"] in families]))
    for low, high in pairwise(DIMENSIONS):
        print(row(f"D from {low} to {high - 1}", [run for run in runs if low <= run["dimension"] < high]))
    print(row("Gaussian mixtures", [run for run in runs if run["family"] == MIXTURES]))
    print(row("all", runs))


if __name__ == "__main__":
    main()
