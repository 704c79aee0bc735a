"""Is BlackJAX's persistent sampling SMC sound? Many seeds of it and of its tempered SMC, against an exact answer.

From a standard normal in four dimensions to a Gaussian of other places and widths, times a constant; the same moves
(its own HMC) for both. Printed: the mean of Z-hat over Z, which is 1 for an unbiased estimate; the bias and the
deviation of log Z-hat; and the largest distance of the weighted means of x and x² from theirs, in standard errors.

    python benchmarks/persistent.py [--seeds 1000]
"""

import argparse
from functools import partial
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.smc import adaptive_persistent_sampling, adaptive_tempered, resampling, tempered
from jax.scipy.stats import norm

PLACES, WIDTHS, CONSTANT = np.array([1.2, -0.8, 0.5, 0.3]), np.array([0.35, 0.5, 0.7, 1.3]), 1.3
STEP_SIZE, NUM_STEPS, NUM_MOVES = 0.35, 4, 2
MOST_STAGES = 40


class Outcome(NamedTuple):
    log_evidence: jax.Array
    mean: jax.Array
    square: jax.Array
    num_stages: jax.Array
    has_arrived: jax.Array


def log_base(x: jax.Array) -> jax.Array:
    return jnp.sum(norm.logpdf(x))


def log_ratio(x: jax.Array) -> jax.Array:
    return jnp.sum(norm.logpdf(x, PLACES, WIDTHS)) + CONSTANT - log_base(x)


def move(key: jax.Array, state: Any, log_density: Any) -> Any:
    return blackjax.hmc.build_kernel()(key, state, log_density, STEP_SIZE, jnp.ones(PLACES.size), NUM_STEPS)


def persistent(num_particles: int, size: float, key: jax.Array) -> Outcome:
    """All particles of all stages, weighted together; `size` is the effective number to keep, in particles a stage."""
    start, rest = jax.random.split(key)
    particles = jax.random.normal(start, (num_particles, PLACES.size))
    kernel: Any = adaptive_persistent_sampling.build_kernel(
        log_base, log_ratio, move, blackjax.hmc.init, resampling.systematic, size
    )

    def goes_on(state: Any) -> jax.Array:
        return (state.tempering_param < 1) & (state.iteration < MOST_STAGES)

    def stage(state: Any) -> Any:
        return kernel(jax.random.fold_in(rest, state.iteration), state, NUM_MOVES, {})[0]

    state = adaptive_persistent_sampling.init(particles, log_ratio, MOST_STAGES)
    state = jax.lax.while_loop(goes_on, stage, state)
    weights = state.persistent_weights / jnp.sum(state.persistent_weights)
    first, second = (jnp.einsum("ti,tid->d", weights, state.persistent_particles**power) for power in (1, 2))
    return Outcome(state.log_Z, first, second, state.iteration, state.tempering_param >= 1)


def usual(num_particles: int, share: float, key: jax.Array) -> Outcome:
    """Tempered SMC: `share` is the effective share of the particles to keep."""
    start, rest = jax.random.split(key)
    kernel: Any = adaptive_tempered.build_kernel(
        log_base, log_ratio, move, blackjax.hmc.init, resampling.systematic, share
    )

    def stage(carry: tuple[Any, jax.Array, jax.Array]) -> tuple[Any, jax.Array, jax.Array]:
        state, log_evidence, number = carry
        state, info = kernel(jax.random.fold_in(rest, number), state, NUM_MOVES, {})
        return state, log_evidence + info.log_likelihood_increment, number + 1

    particles = jax.random.normal(start, (num_particles, PLACES.size))
    even: Any = tempered.TemperedSMCState(particles, jnp.full(num_particles, 1 / num_particles), jnp.zeros(()))
    carry = even, jnp.zeros(()), jnp.zeros((), int)
    state, log_evidence, number = jax.lax.while_loop(lambda carry: carry[0].tempering_param < 1, stage, carry)
    first, second = (state.weights @ state.particles**power for power in (1, 2))
    return Outcome(log_evidence, first, second, number, jnp.asarray(True))


def describe(outcome: Outcome) -> str:
    number = outcome.log_evidence.size
    off = outcome.log_evidence - CONSTANT
    ratio = np.exp(off)
    excess = np.column_stack([outcome.mean - PLACES, outcome.square - PLACES**2 - WIDTHS**2])
    distance = np.max(np.abs(excess.mean(axis=0)) / (excess.std(axis=0) / np.sqrt(number)))
    return (
        f"stages {outcome.num_stages.mean():4.1f}, arrived {outcome.has_arrived.mean():.3f}, mean of Z-hat/Z "
        f"{ratio.mean():.4f} ± {ratio.std() / np.sqrt(number):.4f}, bias of log Z {off.mean():+.4f} ± "
        f"{off.std() / np.sqrt(number):.4f}, deviation {off.std():.4f}, moments off by {distance:.1f} errors"
    )


def main(num_seeds: int) -> None:
    algorithms = {"tempered, share 0.5": partial(usual, share=0.5), "persistent, size 1": partial(persistent, size=1.0)}
    with jax.enable_x64(True):
        for num_particles in (32, 128):
            for name, algorithm in algorithms.items():
                keys = jax.random.split(jax.random.key(num_particles), num_seeds)
                run = jax.jit(jax.vmap(lambda key: algorithm(num_particles, key=key)))  # noqa: B023
                outcome = jax.tree.map(np.asarray, run(keys))
                print(f"{name:20s} {num_particles:4d} particles: {describe(outcome)}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    main(parser.parse_args().seeds)
