"""thermocline: `tc.sample` with nothing but the density and a start that tells nothing."""

import warnings

import numpy as np

from benchmarks.peers.record import Answer, Problem, jax_library

ENVIRONMENT, REQUIREMENTS = "", ()  # that of this Python


def answer(problem: Problem, seed: int) -> Answer:
    import thermocline as tc

    library = jax_library()
    target = tc.Target(lambda x: problem.log_density(x, library), np.full(problem.dimension, 0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the verdict is kept
        result = tc.sample(target, seed=seed, progress=False)
        said, estimate = result.verdict, result.log_evidence
        assert estimate is not None
    failed = [check.name for check in result.checks if not check.passed]
    drawn = [values.reshape(len(values), -1) for values in result.posterior(4000).values()]
    evaluations = int(result.cost.evaluations.total)
    said = "; ".join([said, *failed])
    return Answer(estimate.value, estimate.standard_error, evaluations, np.hstack(drawn), said)
