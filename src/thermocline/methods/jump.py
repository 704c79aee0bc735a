"""Base jumps: an independence Metropolis move from the base, collapsed over beta.

The marginal of x is base(x) N(r(x)) up to a constant, so that a fresh draw x' of the base is accepted with
probability min(1, N(r')/N(r)), whatever beta was; beta is then drawn given x'. With such a move the base may be
multimodal: chains need not walk between its modes.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from thermocline.paths import Law, Path, Point


def jump(key: jax.Array, path: Path, law: Law, point: Point) -> tuple[Point, jax.Array, jax.Array]:
    """The point after the move, whether it jumped, and the probability that it would."""
    key_draw, key_accept = jax.random.split(key)
    proposal = path.evaluate(ravel_pytree(path.base.sample(key_draw))[0])
    usable = ~(jnp.isnan(proposal.log_ratio) | jnp.isposinf(proposal.log_ratio))
    gain = law.log_mass(jnp.where(usable, proposal.log_ratio, -jnp.inf)) - law.log_mass(point.log_ratio)
    gain = jnp.where(usable & ~jnp.isnan(gain), gain, -jnp.inf)
    accept = jnp.log(jax.random.uniform(key_accept, (), gain.dtype)) < gain
    chosen = jax.tree.map(lambda new, old: jnp.where(accept, new, old), proposal, point)
    return chosen, accept, jnp.exp(jnp.minimum(gain, 0.0))
