"""jaxns, with which NumPyro's nested sampler is made: everything its default, on the unit cube."""

from benchmarks.peers.record import Answer, Problem, jax_in_double

ENVIRONMENT, REQUIREMENTS = "jaxns", ("jaxns==3.0.0", "jax==0.10.2", "scipy")


def answer(problem: Problem, seed: int) -> Answer:
    library = jax_in_double()
    import jax
    import numpy as np
    from jaxns.core import NestedSampler
    from jaxns.model import Model
    from jaxns.priors import Prior
    from tensorflow_probability.substrates.jax import distributions

    def model():
        zeros = library.np.zeros(problem.dimension)
        unit = Prior(distributions.Uniform(low=zeros, high=zeros + 1), name="unit").realise()
        inside = library.np.clip(unit, 1e-15, 1 - 1e-15)
        return problem.log_likelihood(problem.prior.inverse(inside, library), library)

    state = NestedSampler(model=Model(prior_model=model)).run(key=jax.random.PRNGKey(seed))
    found = state.to_result().trim()
    unit = np.asarray(found.resample(2000, key=jax.random.PRNGKey(seed + 1)).X_samples["unit"])
    draws = np.asarray(problem.prior.inverse(library.np.clip(unit, 1e-15, 1 - 1e-15), library))
    evaluations = int(found.total_num_likelihood_evaluations)
    return Answer(float(found.log_Z_mean), float(found.log_Z_uncert), evaluations, draws)
