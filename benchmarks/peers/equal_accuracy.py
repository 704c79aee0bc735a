"""Seconds to the same accuracy of log Z: `tc.sample` beside BlackJAX's adaptive tempered SMC.

On a pair of modes in 20 dimensions and on the paper's ten Boltzmann machines. Both are run with the same seeds, each in
a process of its own on one core, with seconds of the processor from its start. The particles of SMC are doubled until
the root mean square of its errors is no larger than ours, or a run of it takes twenty times as long; ours counts as no
smaller than the errors that it states, lest a few lucky seeds ask for too much. SMC starts from a Gaussian with the
variances that the relaxation would have if its units were independent and even.

    python -m benchmarks.peers.equal_accuracy [--targets NAME ...] [--seeds 3] [--minutes 7] [--store]
"""

import argparse
import json
import os
import subprocess
import sys
import time
from functools import partial
from typing import Any

import numpy as np

from benchmarks.peers import blackjax_smc, ours
from benchmarks.peers.environment import FOLDER, REPOSITORY
from benchmarks.peers.one import spent
from benchmarks.peers.record import Array, Library, Prior, Problem
from benchmarks.peers.run import ONE_THREAD, idlest_core
from benchmarks.peers.synthetic import asymmetric
from studies.tables import store

PAIR, FIRST_PARTICLES, LONGEST_RATIO = "pair 20-D", 500, 20
TARGETS = [PAIR, *(f"Boltzmann machine {i}" for i in range(10))]
HEADER = "target", "our seconds", "our error", "SMC's particles", "its seconds", "its error", "its seconds / ours"


def boltzmann(index: int) -> Problem:
    """The relaxation of one of the paper's machines; its root and its truth are kept under build/."""
    kept = FOLDER / f"boltzmann_{index}.npz"
    if not kept.exists():
        from studies.study_boltzmann import authors_relaxation, problem_of

        relaxation = authors_relaxation(index)
        truth = problem_of("", relaxation).log_evidence
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.savez(kept, root=relaxation.root, biases=relaxation.machine.biases, truth=truth)
    with np.load(kept) as stored:
        root, biases, truth = stored["root"], stored["biases"], float(stored["truth"])
    dimension, wide = root.shape[1], np.sqrt(1 + np.sum(root**2, axis=0))

    def log_density(x: Array, library: Library) -> Array:
        size = library.np.abs(x @ root.T + biases)
        log_cosh = size + library.np.log1p(library.np.exp(-2 * size)) - np.log(2.0)
        return library.np.sum(log_cosh, axis=-1) - 0.5 * library.np.sum(x**2, axis=-1)

    def log_prior(x: Array, library: Library) -> Array:
        return library.np.sum(-0.5 * (x / wide) ** 2 - np.log(wide * np.sqrt(2 * np.pi)), axis=-1)

    def no_draws(generator: np.random.Generator, number: int) -> np.ndarray:
        raise NotImplementedError("exact draws of a relaxation are in experiments.boltzmann.machine")

    prior = Prior(lambda unit, library: wide * library.special.ndtri(unit), log_prior)
    return Problem(f"Boltzmann machine {index}", dimension, log_density, lambda: truth, prior, no_draws)


def problem_named(name: str) -> Problem:
    if name == PAIR:
        return asymmetric(PAIR, [0.65, 0.35], [0.8, 1.0], 12.0, 20, 5)
    return boltzmann(int(name.rsplit(" ", 1)[1]))


def one(target: str, seed: int, num_particles: int) -> None:
    """No particles: ours. Prints what came of it."""
    problem = problem_named(target)
    answer = blackjax_smc.sampled(problem, seed, num_particles) if num_particles else ours.answer(problem, seed)
    seconds = spent()
    found = {"off": answer.log_evidence - problem.log_evidence(), "seconds": seconds, "said": answer.said}
    print(json.dumps(found | {"error": answer.error, "evaluations": answer.evaluations}))


def kept(target: str, seed: int, num_particles: int) -> dict[str, Any]:
    """The run of its file, or a new one."""
    place = FOLDER / "equal_accuracy" / f"{target}_{seed}_{num_particles or 'ours'}.json"
    if not place.exists():
        environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")} | ONE_THREAD
        environment["PYTHONPATH"] = f"{REPOSITORY / 'src'}:{REPOSITORY}"
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.peers.equal_accuracy", "--one", target]
        done = subprocess.run(
            [*command, str(seed), str(num_particles)], cwd=REPOSITORY, env=environment, capture_output=True, text=True,
            check=False, preexec_fn=partial(os.sched_setaffinity, 0, {idlest_core()}),
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(done.stderr[-2000:])
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(done.stdout.splitlines()[-1])
        print(target, seed, num_particles or "ours", done.stdout.splitlines()[-1], flush=True)
    return json.loads(place.read_text())


def root_mean_square(runs: list[dict[str, Any]], of: str = "off") -> float:
    return float(np.sqrt(np.mean([run[of] ** 2 for run in runs])))


def mean_seconds(runs: list[dict[str, Any]]) -> float:
    return float(np.mean([run["seconds"] for run in runs]))


def row(target: str, num_seeds: int, ends: float) -> list[str] | None:
    """One target; None where the time was over before its last run."""

    def all_seeds(num_particles: int) -> list[dict[str, Any]]:
        return [kept(target, seed, num_particles) for seed in range(num_seeds) if time.monotonic() < ends]

    own, num_particles = all_seeds(0), FIRST_PARTICLES
    if len(own) < num_seeds:
        return None
    accuracy = max(root_mean_square(own), root_mean_square(own, "error"))
    while len(theirs := all_seeds(num_particles)) == num_seeds:
        longer = mean_seconds(theirs) / mean_seconds(own)
        is_as_good = root_mean_square(theirs) <= accuracy
        if is_as_good or longer > LONGEST_RATIO:
            ratio = f"{longer:.1f}" if is_as_good else f"more than {longer:.0f}"
            ours_shown = f"{mean_seconds(own):.1f}", f"{accuracy:.4f}"
            theirs_shown = f"{mean_seconds(theirs):.1f}", f"{root_mean_square(theirs):.4f}"
            return [target, *ours_shown, f"{num_particles:,}", *theirs_shown, ratio]
        num_particles *= 2
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--targets", nargs="+", default=TARGETS, choices=TARGETS, metavar="NAME")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run after these")
    parser.add_argument("--store", action="store_true", help="the table, for docs/peers.md (`make tables`)")
    parser.add_argument("--one", nargs=3, metavar=("TARGET", "SEED", "PARTICLES"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one[0], int(options.one[1]), int(options.one[2]))
        return
    ends = time.monotonic() + 60 * options.minutes
    rows = [made for target in options.targets if (made := row(target, options.seeds, ends))]
    print("\n".join(" | ".join(each) for each in rows))
    if options.store:
        store("equal-accuracy", f"python -m benchmarks.peers.equal_accuracy --seeds {options.seeds}", HEADER, rows)


if __name__ == "__main__":
    main()
