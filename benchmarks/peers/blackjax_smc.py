"""BlackJAX's adaptive tempered SMC: HMC whose metric is the particles' covariance and whose step follows acceptance.

BlackJAX gives log Z without an error. Metric and step are tuned from stage to stage, as its `inner_kernel_tuning` does;
all stages are one compiled loop.
"""

import sys
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.record import Answer, Problem, jax_in_double

ENVIRONMENT, REQUIREMENTS = "blackjax", ("blackjax==1.7.1", "jax==0.10.2", "scipy")
NUM_PARTICLES, NUM_MOVES, NUM_LEAPS = 2000, 5, 8
WANTED_ACCEPTANCE, EFFECTIVE_SHARE, MOST_STAGES = 0.75, 0.5, 500


class Progress(NamedTuple):
    smc: Any
    log_evidence: Any
    step_size: Any
    num_stages: Any


def parameters(particles: Any, weights: Any, step_size: Any) -> dict[str, Any]:
    """Those of HMC, shared by all particles."""
    jnp = sys.modules["jax.numpy"]
    covariance = jnp.cov(particles.T, aweights=weights, bias=True).reshape(2 * particles.shape[1:])
    ridge = 1e-9 * jnp.diag(jnp.diagonal(covariance))
    return {"step_size": step_size[None], "inverse_mass_matrix": (covariance + ridge)[None]}


def sampled(problem: Problem, seed: int, num_particles: int = NUM_PARTICLES) -> Answer:
    library = jax_in_double()
    import blackjax
    import jax
    import jax.numpy as jnp
    from blackjax.smc import adaptive_tempered, resampling, tempered

    def move(key, state, log_density, step_size, inverse_mass_matrix):
        return blackjax.hmc.build_kernel()(key, state, log_density, step_size, inverse_mass_matrix, NUM_LEAPS)

    def log_prior(x):
        return problem.prior.log_density(x, library)

    def log_likelihood(x):
        value = problem.log_likelihood(x, library)
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    kernel: Any = adaptive_tempered.build_kernel(
        log_prior, log_likelihood, move, blackjax.hmc.init, resampling.systematic, EFFECTIVE_SHARE
    )

    def stage(now: Progress, key: Any) -> Progress:
        tuned = parameters(now.smc.particles, now.smc.weights, now.step_size)
        smc, info = kernel(jax.random.fold_in(key, now.num_stages), now.smc, NUM_MOVES, tuned)
        acceptance = jnp.mean(info.update_info.acceptance_rate)
        step_size = now.step_size * jnp.exp(acceptance - WANTED_ACCEPTANCE)
        return Progress(smc, now.log_evidence + info.log_likelihood_increment, step_size, now.num_stages + 1)

    @jax.jit
    def run(key):
        unit = jax.random.uniform(key, (num_particles, problem.dimension), minval=1e-12)
        particles = problem.prior.inverse(unit, library)
        even: Any = tempered.TemperedSMCState(particles, jnp.full(num_particles, 1 / num_particles), jnp.zeros(()))
        begin = Progress(even, jnp.zeros(()), jnp.asarray(problem.dimension**-0.25), jnp.zeros((), int))

        def goes_on(now):
            return (now.smc.tempering_param < 1) & (now.num_stages < MOST_STAGES)

        end = jax.lax.while_loop(goes_on, lambda now: stage(now, key), begin)
        index = resampling.systematic(jax.random.fold_in(key, MOST_STAGES), end.smc.weights, num_particles)
        return end, end.smc.particles[index]

    end, draws = run(jax.random.key(seed))
    evaluations = int(end.num_stages) * num_particles * (NUM_MOVES * NUM_LEAPS + 2)
    said = "" if end.smc.tempering_param >= 1 else f"at {float(end.smc.tempering_param):.3f} after {MOST_STAGES} stages"
    return Answer(float(end.log_evidence), float("nan"), evaluations, np.asarray(draws), said)


def answer(problem: Problem, seed: int) -> Answer:
    return sampled(problem, seed)
