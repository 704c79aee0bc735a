"""BlackJAX's adaptive persistent sampling: 500 particles a stage, all stages weighed together; its defaults otherwise.

The moves are those of `blackjax_smc`, with a metric from the particles of the last stage. It gives log Z without an
error.
"""

from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.blackjax_smc import NUM_LEAPS, NUM_MOVES, WANTED_ACCEPTANCE, parameters
from benchmarks.peers.record import Answer, Problem, jax_in_double

ENVIRONMENT, REQUIREMENTS = "blackjax", ("blackjax==1.7.1", "jax==0.10.2", "scipy")
NUM_PARTICLES, EFFECTIVE_STAGES, MOST_STAGES = 500, 3, 300


class Progress(NamedTuple):
    sampling: Any
    step_size: Any


def answer(problem: Problem, seed: int) -> Answer:
    library = jax_in_double()
    import blackjax
    import jax
    import jax.numpy as jnp
    from blackjax.smc import adaptive_persistent_sampling as persistent
    from blackjax.smc import resampling

    def move(key, state, log_density, step_size, inverse_mass_matrix):
        return blackjax.hmc.build_kernel()(key, state, log_density, step_size, inverse_mass_matrix, NUM_LEAPS)

    def log_prior(x):
        return problem.prior.log_density(x, library)

    def log_likelihood(x):
        value = problem.log_likelihood(x, library)
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    kernel: Any = persistent.build_kernel(
        log_prior, log_likelihood, move, blackjax.hmc.init, resampling.systematic, EFFECTIVE_STAGES
    )

    def stage(now: Progress, key: Any) -> Progress:
        last = now.sampling.persistent_particles[now.sampling.iteration]
        tuned = parameters(last, jnp.ones(NUM_PARTICLES), now.step_size)
        sampling, info = kernel(jax.random.fold_in(key, now.sampling.iteration), now.sampling, NUM_MOVES, tuned)
        acceptance = jnp.mean(info.update_info.acceptance_rate)
        return Progress(sampling, now.step_size * jnp.exp(acceptance - WANTED_ACCEPTANCE))

    @jax.jit
    def run(key):
        unit = jax.random.uniform(key, (NUM_PARTICLES, problem.dimension), minval=1e-12)
        state = persistent.init(problem.prior.inverse(unit, library), log_likelihood, MOST_STAGES)

        def goes_on(now):
            return (now.sampling.tempering_param < 1) & (now.sampling.iteration < MOST_STAGES)

        begin = Progress(state, jnp.asarray(problem.dimension**-0.25))
        end = jax.lax.while_loop(goes_on, lambda now: stage(now, key), begin).sampling
        weights = end.persistent_weights.ravel()
        index = resampling.systematic(jax.random.fold_in(key, MOST_STAGES), weights / weights.sum(), 4000)
        return end, end.persistent_particles.reshape(-1, problem.dimension)[index]

    end, draws = run(jax.random.key(seed))
    evaluations = int(end.iteration) * NUM_PARTICLES * (NUM_MOVES * NUM_LEAPS + 2)
    reached = float(end.tempering_param)
    said = "" if reached >= 1 else f"at {reached:.3f} after {MOST_STAGES} stages"
    return Answer(float(end.log_Z), float("nan"), evaluations, np.asarray(draws), said)
