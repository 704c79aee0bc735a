"""Mixtures of any family of bases."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.bases.base import NormalisedDensity
from thermocline.support.pytree import pytree

SIZES = (1, 4, 16, 64)  # numbers of components to which mixtures are padded, so that sizes share programs


@pytree
class Mixture:
    """A mixture of bases of one family, whose leaves have a leading axis over the components.

    A component of log weight -inf is padding: `Mixture.of` pads, so that mixtures of similar size share
    compiled programs. Such a base is multimodal; give it to a method that jumps.
    """

    components: Any
    log_weights: Any

    @classmethod
    def of(cls, components: Sequence[NormalisedDensity], log_weights: Any, *, at_least: int = 1) -> "Mixture":
        """From a list of bases and their log weights, which are normalised here; with room for so many."""
        padded = _padded(components, at_least)
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *padded)
        log_weights = np.asarray(log_weights, float)
        room = np.full(len(padded), -np.inf)
        room[: len(components)] = log_weights - np.logaddexp.reduce(log_weights)
        return cls(stacked, room)

    @property
    def num_components(self) -> int:
        """Components that are not padding."""
        return int(np.sum(np.isfinite(self.log_weights)))

    def component(self, index: Any) -> Any:
        """One component, as a base."""
        return jax.tree.map(
            lambda leaf: (jnp.asarray(leaf) if isinstance(index, jax.Array) else leaf)[index], self.components
        )

    def log_densities(self, position: Any) -> jax.Array:
        """Log of weight times density, by component."""
        return jnp.asarray(self.log_weights) + jax.vmap(lambda base: base.log_density(position))(self.components)

    def log_density(self, position: Any) -> jax.Array:
        return jax.nn.logsumexp(self.log_densities(position))

    def sample(self, key: jax.Array) -> Any:
        key_component, key_draw = jax.random.split(key)
        index = jax.random.categorical(key_component, jnp.asarray(self.log_weights))
        return self.component(index).sample(key_draw)

    def moments(self) -> tuple[jax.Array, jax.Array]:
        """Exact mean and variances of the ravelled position."""
        means, variances = jax.vmap(lambda base: base.moments())(self.components)
        weights = jnp.exp(jnp.asarray(self.log_weights))
        mean = weights @ means
        return mean, weights @ (variances + (means - mean) ** 2)

    @property
    def scale_tril(self) -> jax.Array | None:
        """The scale within components, pooled by their weights; None where they state none."""
        scales = getattr(self.components, "scale_tril", None)
        if scales is None:
            return None
        weights = jnp.exp(jnp.asarray(self.log_weights))
        if jnp.ndim(scales) == 2:
            return jnp.sqrt(weights @ jnp.asarray(scales) ** 2)
        return jnp.linalg.cholesky(jnp.einsum("k,kij,klj->il", weights, scales, scales))

    def centres(self) -> jax.Array:
        """The components' means, ravelled, one a row."""
        return jax.vmap(lambda base: ravel_pytree(base.mean)[0])(self.components)


def _padded(components: Sequence[Any], at_least: int) -> list[Any]:
    """Repeats of the first component make up the next size."""
    number = len(components)
    size = next((size for size in SIZES if size >= max(number, at_least)), number)
    return [*components, *[components[0]] * (size - number)]
