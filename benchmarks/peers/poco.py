"""pocoMC: preconditioned Monte Carlo with a normalising flow, everything its default, on the unit cube."""

import importlib
from typing import Any

import numpy as np
from scipy.stats import uniform

from benchmarks.peers.record import NUMPY, Answer, Problem

ENVIRONMENT, REQUIREMENTS = "pocomc", ("pocomc==1.2.6", "torch==2.13.0", "scipy")


def answer(problem: Problem, seed: int) -> Answer:
    pocomc: Any = importlib.import_module("pocomc")

    def from_unit(unit):
        return problem.prior.inverse(np.clip(unit, 1e-15, 1 - 1e-15), NUMPY)

    def log_likelihood(rows):
        values = problem.log_likelihood(from_unit(rows), NUMPY)
        return np.where(np.isfinite(values), values, -1e300)

    prior = pocomc.Prior([uniform(0.0, 1.0)] * problem.dimension)
    sampler = pocomc.Sampler(prior, log_likelihood, vectorize=True, random_state=seed)
    sampler.run(progress=False)
    draws = sampler.posterior(resample=True)[0]
    log_evidence, error = sampler.evidence()
    error = float("nan") if error is None else float(error)
    return Answer(float(log_evidence), error, int(sampler.calls), from_unit(draws))
