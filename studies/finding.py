"""What `tc.fit_auto` finds on generated targets: modes lost, work, and how good a base it leaves.

Each run leaves a file of JSON, and a run whose file exists is not made again. The table says, by family (and for
mixtures by the log-volume spread V of the modes): runs, runs that lost a mode of more than 1 %, such modes lost,
seconds (all targets in one process: who comes first pays for compiling), evaluations, the effective share of 4096
fresh draws of the base, and z of their log Z. Funnels and rings have no modes to lose; on bounded targets the mode is
often on the edge, where no slope vanishes. With `--prototype` another black box, of the folder in
THERMOCLINE_PROTOTYPE, runs on the same targets with its own settings.

    python -m studies.finding [--families NAME ...] [--number 30] [--mixtures 300]
        [--seeds-from COMMIT | --first-seed 0] [--out DIR] [--prototype] [--seconds 120]
"""

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path

import jax

from studies.finding_runs import FINDERS, Run, run_once
from studies.finding_table import table
from studies.targets import FAMILIES, generate, seeds_of_commit

MIXTURES = "gaussian mixture"  # the family of which there are more, to be split by V
MOST_MEMORY_MAPS = 30_000  # of the 65530 that Linux allows a process; compiled programs hold them


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES), metavar="NAME")
    parser.add_argument("--number", type=int, default=30, help="of targets a family")
    parser.add_argument("--mixtures", type=int, default=300, help="of targets of the Gaussian mixtures")
    seeds = parser.add_mutually_exclusive_group()
    seeds.add_argument("--seeds-from", metavar="COMMIT", help="seeds that nobody has seen, from the hash of a commit")
    seeds.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("build/finding"))
    parser.add_argument("--prototype", action="store_true", help="run the one in THERMOCLINE_PROTOTYPE beside it")
    parser.add_argument("--seconds", type=float, default=120.0, help="after which a run is ended")
    return parser.parse_args(given)


def seeds_of(options: argparse.Namespace, family: str) -> list[int]:
    number = options.mixtures if family == MIXTURES else options.number
    if options.seeds_from is not None:
        return seeds_of_commit(options.seeds_from, number)
    return list(range(options.first_seed, options.first_seed + number))


def finders_of(options: argparse.Namespace) -> list[str]:
    return list(FINDERS) if options.prototype else ["ours"]


def runs(options: argparse.Namespace) -> Iterator[Run]:
    """Read or made, one after another, in turn through the families so that a part of the table is one too."""
    asked = {family: seeds_of(options, family) for family in options.families}
    for index in range(max(map(len, asked.values()))):
        for family, seeds in asked.items():
            for finder in finders_of(options) if index < len(seeds) else []:
                yield kept(options.out, family, seeds[index], finder, options.seconds)


def kept(folder: Path, family: str, seed: int, finder: str, longest: float) -> Run:
    """The run of its file, or a new one, written whole or not at all."""
    path = folder / f"{family.replace(' ', '-')}_{seed}_{finder}.json"
    if path.exists():
        return json.loads(path.read_text())
    run = run_once(generate(family, seed), finder, longest)
    folder.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(run))
    os.replace(part, path)
    print(line(run), flush=True)
    forget_programs()
    return run


def line(run: Run) -> str:
    """One run for whoever watches."""
    head = f"{run['family']} {run['seed']} {run['finder']}: D {run['dimension']}, V {run['log_volume_spread']:.1f}, "
    if run["status"] != "finished":
        return head + f"{run['status']} after {run['seconds']:.1f} s {run.get('message', '')}"
    tail = f"lost {run['num_lost']} of {run['num_modes']}, share {run['share']:.2f}, z {run['z']:+.1f}, "
    return head + tail + f"{run['evaluations']:,} evaluations, {run['seconds']:.1f} s"


def forget_programs() -> None:
    maps = Path("/proc/self/maps")
    if maps.exists() and len(maps.read_text().splitlines()) > MOST_MEMORY_MAPS:
        jax.clear_caches()


def main(given: list[str] | None = None) -> None:
    options = arguments(given)
    print(table(list(runs(options)), finders_of(options)))


if __name__ == "__main__":
    main()
