"""jaxns, with which NumPyro's nested sampler is made: everything its default, on the unit cube."""

import importlib
from typing import Any

import numpy as np

from benchmarks.peers.record import Answer, Problem, jax_in_double

ENVIRONMENT, REQUIREMENTS = "jaxns", ("jaxns==3.0.0", "jax==0.10.2", "scipy")


def answer(problem: Problem, seed: int) -> Answer:
    library = jax_in_double()
    import jax

    core, models, priors = (importlib.import_module(f"jaxns.{part}") for part in ("core", "model", "priors"))
    distributions: Any = importlib.import_module("tensorflow_probability.substrates.jax").distributions

    def model():
        zeros = library.np.zeros(problem.dimension)
        unit = priors.Prior(distributions.Uniform(low=zeros, high=zeros + 1), name="unit").realise()
        inside = library.np.clip(unit, 1e-15, 1 - 1e-15)
        return problem.log_likelihood(problem.prior.inverse(inside, library), library)

    state = core.NestedSampler(model=models.Model(prior_model=model)).run(key=jax.random.PRNGKey(seed))
    found = state.to_result().trim()
    unit = np.asarray(found.resample(2000, key=jax.random.PRNGKey(seed + 1)).X_samples["unit"])
    draws = np.asarray(problem.prior.inverse(library.np.clip(unit, 1e-15, 1 - 1e-15), library))
    evaluations = int(found.total_num_likelihood_evaluations)
    return Answer(float(found.log_Z_mean), float(found.log_Z_uncert), evaluations, draws)
