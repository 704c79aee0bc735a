"""dynesty: static nested sampling, 500 live points, everything else its default."""

import importlib
from typing import Any

import numpy as np

from benchmarks.peers.record import NUMPY, Answer, Problem

ENVIRONMENT, REQUIREMENTS = "dynesty", ("dynesty==3.1.0", "scipy")


def answer(problem: Problem, seed: int) -> Answer:
    dynesty: Any = importlib.import_module("dynesty")

    def log_likelihood(x):
        value = float(problem.log_likelihood(x, NUMPY))
        return value if np.isfinite(value) else -1e300

    def from_unit(unit):
        return problem.prior.inverse(unit, NUMPY)

    generator = np.random.default_rng(seed)
    sampler = dynesty.NestedSampler(log_likelihood, from_unit, problem.dimension, nlive=500, rstate=generator)
    sampler.run_nested(print_progress=False)
    found = sampler.results
    draws = found.samples_equal(rstate=generator)
    return Answer(float(found.logz[-1]), float(found.logzerr[-1]), int(np.sum(found.ncall)), draws)
