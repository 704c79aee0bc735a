"""parismc: parallel adaptive reweighted importance sampling, with the settings of its own benchmark.

10,000 points of a Latin hypercube, 100 seeds, until log Z moves by less than 0.01 in a thousand iterations. It gives
log Z without an error.
"""

import contextlib
import importlib
import io
import tempfile
from typing import Any

import numpy as np

from benchmarks.peers.record import NUMPY, Answer, Problem

ENVIRONMENT, REQUIREMENTS = "parismc", ("parismc==0.1.1", "scipy")
NUM_POINTS, NUM_SEEDS, MOST_ITERATIONS, WANTED = 10_000, 100, 20_000, 0.01


def answer(problem: Problem, seed: int) -> Answer:
    parismc: Any = importlib.import_module("parismc")

    def from_unit(unit):
        return problem.prior.inverse(np.clip(unit, 1e-15, 1 - 1e-15), NUMPY)

    def log_likelihood(rows):
        values = problem.log_likelihood(np.atleast_2d(rows), NUMPY)
        return np.where(np.isfinite(values), values, -1e300)

    width = 0.01 * np.eye(problem.dimension)
    config = parismc.SamplerConfig(seed=seed)
    sampler = parismc.Sampler(
        problem.dimension, NUM_SEEDS, log_likelihood, [width] * NUM_SEEDS, from_unit, config
    )  # fmt: skip
    quiet = contextlib.redirect_stderr(io.StringIO())
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), quiet:  # it writes where it is run
        sampler.prepare_lhs_samples(NUM_POINTS, NUM_POINTS)
        sampler.run_sampling(MOST_ITERATIONS, folder, print_iter=1000, stop_dlogZ=WANTED)
    draws, weights = sampler.get_samples_with_weights(flatten=True)
    last = sampler._last_logZ_for_stop  # as it is shown and stopped by; there is no public name for it
    log_evidence = float("nan") if last is None else float(last)
    index = np.random.default_rng(seed).choice(len(weights), 4000, p=weights / weights.sum())
    return Answer(log_evidence, float("nan"), int(sampler.total_evals), draws[index])
