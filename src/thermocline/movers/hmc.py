"""Movers, which leave one density of the path invariant: Hamiltonian Monte Carlo, Langevin dynamics and NUTS.

The leapfrog is our own, because a point carries base and target apart; NUTS is BlackJAX's, adapted at this one seam.
"""

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from thermocline.movers.metric import Scale
from thermocline.support.pytree import pytree, static

DIVERGENCE_THRESHOLD = 1000.0
RARELY, SHORTEST = 0.1, 1 / 30  # moves with shorter steps, and the shortest
SHORTER = 1  # what a key shared by all is for, besides the number of steps


class Keys(NamedTuple):
    """Randomness of one step: `own` to one chain, `shared` by all, so that all take equally many steps."""

    own: jax.Array
    shared: jax.Array


class Density(Protocol):
    """A density that evaluates base and target once a point (`AtTemperature`, `Extended`)."""

    def evaluate(self, position: jax.Array) -> Any: ...
    def position(self, point: Any) -> jax.Array: ...
    def log_density(self, point: Any) -> jax.Array: ...
    def gradient(self, point: Any) -> jax.Array: ...
    def log_density_at(self, position: jax.Array) -> jax.Array: ...


class Move(NamedTuple):
    """How one transition went: numbers of JAX, one of each."""

    acceptance: Any
    is_divergent: Any
    is_nonfinite: Any
    num_gradients: Any


class Mover(Protocol):
    """`step_size` None means that warm-up tunes it to `target_acceptance`."""

    @property
    def step_size(self) -> float | None: ...
    @property
    def target_acceptance(self) -> float: ...

    def move(
        self, keys: Keys, density: Density, step_size: jax.Array, scale: Scale, point: Any
    ) -> tuple[Any, Move]: ...


def metropolis(key: jax.Array, gain: jax.Array, proposal: Any, point: Any) -> tuple[Any, jax.Array, jax.Array]:
    """The proposal with probability min(1, e^gain), else the point; whether it was accepted, and that probability."""
    accept = jnp.log(jax.random.uniform(key, (), gain.dtype)) < gain
    chosen = jax.tree.map(lambda new, old: jnp.where(accept, new, old), proposal, point)
    return chosen, accept, jnp.exp(jnp.minimum(gain, 0.0))


@pytree
class HMC:
    """Leapfrog trajectories of about `num_steps` steps and a Metropolis test (paper, section 2).

    The number of steps is uniform between `num_steps * (1 - jitter)` and `num_steps * (1 + jitter)`
    and common to all chains, which otherwise would wait for the longest. `step_size` is in units
    of the metric; left out, warm-up tunes it, at each inverse temperature, to `target_acceptance`.
    `scale` fixes that metric at every inverse temperature, where warm-up would learn it: standard deviations of the
    ravelled position, or one for all. With 1 the mass matrix is the identity and steps are in the position's own units.
    """

    step_size: float | None = None
    num_steps: int = static(default=8)
    jitter: float = static(default=0.5)
    target_acceptance: float = static(default=0.9)
    scale: Any = None

    def move(self, keys: Keys, density: Density, step_size: jax.Array, scale: Scale, point: Any) -> tuple[Any, Move]:
        key_momentum, key_accept = jax.random.split(keys.own)
        position = density.position(point)
        momentum = jax.random.normal(key_momentum, position.shape, position.dtype)
        num_steps, step_size = self._draw_num_steps(keys.shared), step_size * draw_share(keys.shared)
        proposal, end = leapfrog(density, step_size, scale, num_steps, point, momentum)
        gain = density.log_density(proposal) - 0.5 * end @ end - density.log_density(point) + 0.5 * momentum @ momentum
        return decided(key_accept, density, gain, proposal, point, num_steps)

    def _draw_num_steps(self, key: jax.Array) -> jax.Array:
        shortest = max(1, round(self.num_steps * (1 - self.jitter)))
        longest = max(shortest, round(self.num_steps * (1 + self.jitter)))
        return jax.random.randint(key, (), shortest, longest + 1)


def draw_share(key: jax.Array) -> jax.Array:
    """Of the step size that is taken: all of it, but once in ten moves less, down to a thirtieth.

    A corner too stiff for the step that suits the rest is then left again; the share does not depend on the position.
    """
    uniform = jax.random.uniform(jax.random.fold_in(key, SHORTER))
    return jnp.where(uniform < RARELY, SHORTEST ** (uniform / RARELY), 1.0)


def leapfrog(
    density: Density, step_size: jax.Array, scale: Scale, num_steps: jax.Array, point: Any, momentum: jax.Array
) -> tuple[Any, jax.Array]:
    """Stoermer-Verlet in white momenta z: the kinetic energy is z'z/2, where p = S^-T z.

    The metric then costs one product with S and one with its transpose; each step evaluates the path once.
    """

    def kick(point: Any, momentum: jax.Array, share: float) -> jax.Array:
        return momentum + share * step_size * scale.multiply_transposed(density.gradient(point))

    def step(_: int, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
        point, momentum = carry
        point = density.evaluate(density.position(point) + step_size * scale.multiply(momentum))
        return point, kick(point, momentum, 1.0)

    start = point, kick(point, momentum, 0.5)
    end, momentum = jax.lax.fori_loop(0, num_steps, step, start)
    return end, kick(end, momentum, -0.5)


def decided(
    key: jax.Array, density: Density, gain: jax.Array, proposal: Any, point: Any, steps: jax.Array, tests: bool = True
) -> tuple[Any, Move]:
    """The end of a trajectory whose total log density has gained so much, or its start; without a test, if finite."""
    is_nonfinite = jnp.isnan(gain) | jnp.isposinf(density.log_density(proposal))
    gain = jnp.where(is_nonfinite, -jnp.inf, gain)
    chosen, _, _ = metropolis(key, gain if tests else jnp.where(jnp.isfinite(gain), jnp.inf, gain), proposal, point)
    is_divergent = (gain < -DIVERGENCE_THRESHOLD) & jnp.isfinite(gain)
    return chosen, Move(jnp.exp(jnp.minimum(gain, 0.0)), is_divergent, is_nonfinite, steps)


@pytree
class Langevin:
    """`num_steps` leapfrog steps, with friction and noise on the momentum before and after each.

    Noise and friction leave the momentum's own law unchanged, so that only the energy that leapfrog steps gain
    matters: the trajectory is accepted with the probability of their sum (Bussi and Parrinello 2007). With
    `is_adjusted=False` it is always accepted, as in molecular dynamics, and the law is then off by a bias of the
    order of the squared step size; the acceptance recorded is still what the test would have given.
    """

    step_size: float | None = None
    num_steps: int = static(default=8)
    friction: float = static(default=0.5)
    is_adjusted: bool = static(default=True)
    target_acceptance: float = static(default=0.9)

    def move(self, keys: Keys, density: Density, step_size: jax.Array, scale: Scale, point: Any) -> tuple[Any, Move]:
        key_momentum, key_noise, key_accept = jax.random.split(keys.own, 3)
        position = density.position(point)
        kept = jnp.exp(-0.5 * self.friction * step_size)

        def refreshed(key: jax.Array, momentum: jax.Array) -> jax.Array:
            return kept * momentum + jnp.sqrt(1 - kept**2) * jax.random.normal(key, momentum.shape, momentum.dtype)

        def step(i: jax.Array, carry: tuple[Any, jax.Array, jax.Array]) -> tuple[Any, jax.Array, jax.Array]:
            point, momentum, gain = carry
            before, after = jax.random.split(jax.random.fold_in(key_noise, i))
            start = refreshed(before, momentum)
            moved, end = leapfrog(density, step_size, scale, jnp.asarray(1), point, start)
            gain += density.log_density(moved) - density.log_density(point) - 0.5 * (end @ end - start @ start)
            return moved, refreshed(after, end), gain

        momentum = jax.random.normal(key_momentum, position.shape, position.dtype)
        proposal, _, gain = jax.lax.fori_loop(0, self.num_steps, step, (point, momentum, jnp.zeros((), position.dtype)))
        return decided(key_accept, density, gain, proposal, point, jnp.asarray(self.num_steps), self.is_adjusted)


@pytree
class NUTS:
    """BlackJAX's iterative NUTS, run in coordinates whitened by the metric.

    Every chain takes its own number of steps, so chains run side by side wait for the
    longest: fewer chains than with HMC, and longer, suit it.
    """

    step_size: float | None = None
    max_doublings: int = static(default=8)
    target_acceptance: float = static(default=0.8)

    def move(self, keys: Keys, density: Density, step_size: jax.Array, scale: Scale, point: Any) -> tuple[Any, Move]:
        from blackjax.mcmc import hmc, nuts

        origin = density.position(point)
        white = jnp.zeros_like(origin)  # the current point is the origin of the white coordinates

        def log_density(white: jax.Array) -> jax.Array:
            value = density.log_density_at(origin + scale.multiply(white))
            return jnp.where(jnp.isposinf(value), jnp.nan, value)  # BlackJAX counts NaN as a divergence

        state: Any = hmc.HMCState  # its annotations say float where it takes arrays
        start = state(white, density.log_density(point), scale.multiply_transposed(density.gradient(point)))
        kernel: Any = nuts.build_kernel()
        end, info = kernel(keys.own, start, log_density, step_size, jnp.ones_like(white), self.max_doublings)
        proposal = density.evaluate(origin + scale.multiply(end.position))
        usable = jnp.isfinite(density.log_density(proposal))
        chosen = jax.tree.map(lambda new, old: jnp.where(usable, new, old), proposal, point)
        ends = info.trajectory_leftmost_state, info.trajectory_rightmost_state  # where it stops if it meets a NaN
        met_nan = [jnp.isnan(end.logdensity) | jnp.any(jnp.isnan(end.momentum)) for end in ends]
        is_nonfinite, num_gradients = ~usable | jnp.any(jnp.stack(met_nan)), info.num_integration_steps + 1
        return chosen, Move(jnp.nan_to_num(info.acceptance_rate), info.is_divergent, is_nonfinite, num_gradients)
