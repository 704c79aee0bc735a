"""UltraNest: reactive nested sampling; above ten dimensions with slice steps, twice as many as there are dimensions."""

import importlib
import logging
from typing import Any

import numpy as np

from benchmarks.peers.record import NUMPY, Answer, Problem

ENVIRONMENT, REQUIREMENTS = "ultranest", ("ultranest==4.6.3", "scipy")


def answer(problem: Problem, seed: int) -> Answer:
    ultranest: Any = importlib.import_module("ultranest")
    stepsampler: Any = importlib.import_module("ultranest.stepsampler")

    np.random.seed(seed)  # where it takes its numbers from
    logging.getLogger("ultranest").setLevel(logging.ERROR)

    def log_likelihood(rows):
        values = problem.log_likelihood(rows, NUMPY)
        return np.where(np.isfinite(values), values, -1e300)

    def from_unit(unit):
        return problem.prior.inverse(unit, NUMPY)

    names = [f"x{i}" for i in range(problem.dimension)]
    sampler = ultranest.ReactiveNestedSampler(names, log_likelihood, from_unit, vectorized=True)
    if problem.dimension > 10:
        directions = stepsampler.generate_mixture_random_direction
        sampler.stepsampler = stepsampler.SliceSampler(2 * problem.dimension, generate_direction=directions)
    found = sampler.run(show_status=False, viz_callback=False)
    return Answer(float(found["logz"]), float(found["logzerr"]), int(found["ncall"]), np.asarray(found["samples"]))
