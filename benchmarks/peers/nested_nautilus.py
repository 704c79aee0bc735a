"""nautilus: importance nested sampling with neural networks, 2000 live points, everything else its default.

Its log Z comes with no error; its documentation takes 1/√(effective number of draws), and so do we.
"""

import importlib
from typing import Any

import numpy as np

from benchmarks.peers.record import NUMPY, Answer, Problem

ENVIRONMENT, REQUIREMENTS = "nautilus", ("nautilus-sampler==1.0.6", "scipy")


def answer(problem: Problem, seed: int) -> Answer:
    nautilus: Any = importlib.import_module("nautilus")

    def log_likelihood(rows):
        values = problem.log_likelihood(rows, NUMPY)
        return np.where(np.isfinite(values), values, -1e300)

    def from_unit(unit):
        return problem.prior.inverse(unit, NUMPY)

    sampler = nautilus.Sampler(
        from_unit, log_likelihood, problem.dimension, vectorized=True, pass_dict=False, seed=seed
    )
    sampler.run(verbose=False)
    draws, _, _ = sampler.posterior(equal_weight=True)
    return Answer(float(sampler.log_z), float(sampler.n_eff) ** -0.5, int(sampler.n_like), draws)
