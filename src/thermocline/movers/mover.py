"""What a mover is: a transition that leaves one density of the path invariant."""

from typing import Any, NamedTuple, Protocol

import jax

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
