"""NUTS (BlackJAX, four chains of 1000 after a warm-up of 1000) and bridge sampling from a Gaussian."""

import numpy as np

from benchmarks.peers.bridge import bridge
from benchmarks.peers.record import Answer, Problem, jax_in_double

ENVIRONMENT, REQUIREMENTS = "blackjax", ("blackjax==1.7.1", "jax==0.10.2", "scipy")
NUM_CHAINS, NUM_WARMUP, NUM_DRAWS = 4, 1000, 1000


def answer(problem: Problem, seed: int) -> Answer:
    library = jax_in_double()
    import blackjax
    import jax

    def density(x):
        return problem.log_density(x, library)

    def chain(key, start):
        warm_key, draw_key = jax.random.split(key)
        (state, tuned), warm = blackjax.window_adaptation(blackjax.nuts, density).run(warm_key, start, NUM_WARMUP)
        step = blackjax.nuts(density, **tuned).step

        def one(state, key):
            state, info = step(key, state)
            return state, (state.position, state.logdensity, info.num_integration_steps, info.is_divergent)

        warm_steps = warm.info.num_integration_steps.sum()
        return *jax.lax.scan(one, state, jax.random.split(draw_key, NUM_DRAWS))[1], warm_steps

    keys = jax.random.split(jax.random.key(seed), NUM_CHAINS + 1)
    starts = jax.random.uniform(keys[0], (NUM_CHAINS, problem.dimension), minval=-2.0, maxval=2.0)
    draws, heights, steps, divergent, warm = map(np.asarray, jax.jit(jax.vmap(chain))(keys[1:], starts))
    many = jax.jit(jax.vmap(density))
    found = bridge(draws, heights, lambda rows: np.asarray(many(rows)), np.random.default_rng(seed))
    evaluations = int(steps.sum() + warm.sum()) + found.evaluations
    share = r_hat(draws)
    said = f"R-hat {share:.2f}, {divergent.sum()} divergent"
    return Answer(found.log_evidence, found.error, evaluations, draws.reshape(-1, problem.dimension), said)


def r_hat(draws: np.ndarray) -> float:
    """The largest split R-hat of a coordinate."""
    halves = np.concatenate(np.split(draws, 2, axis=1))
    within, between = halves.var(axis=1, ddof=1).mean(axis=0), halves.mean(axis=1).var(axis=0, ddof=1)
    return float(np.sqrt(1 + between / within).max())
