"""nutpie: NUTS with its own adaptation, four chains of 1000 after its default warm-up. Posterior draws, no log Z."""

import numpy as np

from benchmarks.peers.record import Answer, Problem, jax_in_double

ENVIRONMENT, REQUIREMENTS = "nutpie", ("nutpie==0.16.8", "jax==0.10.2", "scipy")


def answer(problem: Problem, seed: int) -> Answer:
    library = jax_in_double()
    import jax
    import nutpie

    both, calls = jax.jit(jax.value_and_grad(lambda x: problem.log_density(x, library))), [0]

    def make_density():
        def density(x, **_):
            calls[0] += 1
            value, gradient = both(x)
            return float(value), np.asarray(gradient)

        return density

    def make_expand(*_):
        return lambda x, **_: {"x": np.asarray(x, dtype=np.float64)}

    size, kinds = [(problem.dimension,)], [np.dtype(np.float64)]
    model = nutpie.compiled_pyfunc.from_pyfunc(problem.dimension, make_density, make_expand, kinds, size, ["x"])
    trace = nutpie.sample(model, draws=1000, chains=4, cores=1, seed=seed, progress_bar=False)
    draws = trace.posterior["x"].to_numpy().reshape(-1, problem.dimension)
    return Answer(float("nan"), float("nan"), calls[0], draws)
