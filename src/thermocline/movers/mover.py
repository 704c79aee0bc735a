"""What a mover is: a transition that leaves one density of the path invariant."""

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from thermocline.movers.metric import Scale


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
