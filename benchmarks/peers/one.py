"""One peer on one problem, in an environment that has it; prints what came of it as JSON.

Called as `python -m benchmarks.peers.one PEER PROBLEM SEED`.
"""

import importlib
import json
import resource
import sys

import numpy as np

from benchmarks.peers.problems import PROBLEMS
from benchmarks.peers.record import Problem

EXACT_DRAWS = 100_000


def spent() -> float:
    """Seconds of the processor since this process began, its children's included."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def modes_found(problem: Problem, draws: np.ndarray) -> int:
    if problem.num_modes == 1:
        return 1
    return problem.found(draws, problem.shares(problem.draws(np.random.default_rng(0), EXACT_DRAWS)))


def main() -> None:
    peer, name, seed = sys.argv[1:]
    problem = PROBLEMS[name]()
    answer = importlib.import_module(f"benchmarks.peers.{peer}").answer(problem, int(seed))
    seconds = spent()
    measured = answer._asdict() | {"draws": len(answer.draws), "seconds": seconds, "num_modes": problem.num_modes}
    print(json.dumps(measured | {"truth": problem.log_evidence(), "modes": modes_found(problem, answer.draws)}))


if __name__ == "__main__":
    main()
