"""Mixtures of any family of bases."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.bases.base import NormalisedDensity
from thermocline.support import linear
from thermocline.support.flat import ravelled_rows
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
        log_weights = np.asarray(log_weights, float)
        room = np.full(len(padded), -np.inf)
        room[: len(components)] = log_weights - np.logaddexp.reduce(log_weights)
        return cls.stacked(padded, room)

    @classmethod
    def stacked(cls, components: Sequence[NormalisedDensity], log_weights: Any) -> "Mixture":
        """From as many bases as log weights, taken as they are."""
        return cls(jax.tree.map(lambda *leaves: np.stack(leaves), *components), log_weights)

    @property
    def num_components(self) -> int:
        """Components that are not padding."""
        return int(np.sum(np.isfinite(self.log_weights)))

    def component(self, index: Any) -> Any:
        """One component, as a base."""
        return jax.tree.map(
            lambda leaf: (jnp.asarray(leaf) if isinstance(index, jax.Array) else leaf)[index], self.components
        )

    def log_density(self, position: Any) -> jax.Array:
        heights = jax.vmap(lambda base: base.log_density(position))(self.components)
        return jax.nn.logsumexp(jnp.asarray(self.log_weights) + heights)

    def log_density_of_rows(self, rows: np.ndarray) -> np.ndarray:
        """At ravelled positions along the last axis, in NumPy."""
        return linear.log_sum_exp(self.log_densities_of_rows(rows), np)

    def log_densities_of_rows(self, rows: np.ndarray) -> np.ndarray:
        """Log of weight times density, by component along the last axis, in NumPy; padding is left out."""
        places = np.flatnonzero(np.isfinite(self.log_weights))
        return np.stack(
            [np.asarray(self.log_weights)[k] + self.component(k).log_density_of_rows(rows) for k in places], axis=-1
        )

    def sample_rows(self, generator: np.random.Generator, number: int) -> np.ndarray:
        """Exact draws, ravelled, one a row, in random order, in NumPy."""
        weights = np.exp(np.asarray(self.log_weights, float))
        counts = generator.multinomial(number, weights / weights.sum())
        parts = [self.component(k).sample_rows(generator, count) for k, count in enumerate(counts) if count]
        return generator.permutation(np.concatenate(parts))

    def sample(self, key: jax.Array) -> Any:
        key_component, key_draw = jax.random.split(key)
        index = jax.random.categorical(key_component, jnp.asarray(self.log_weights))
        return self.component(index).sample(key_draw)

    def prepared(self, namespace: Any = np) -> "Mixture":
        """The same, with components that have at hand what their densities need."""
        if not hasattr(self.components, "prepared"):
            return self
        if namespace is not np:
            return Mixture(jax.vmap(lambda base: base.prepared(namespace))(self.components), self.log_weights)
        return self.mapped(lambda base: base.prepared())

    def mapped(self, function: Callable[[Any], Any]) -> "Mixture":
        """The mixture of what a function makes of each component, padding included."""
        return Mixture.stacked([function(base) for base in self.each()], self.log_weights)

    def each(self) -> list[Any]:
        """The components as bases, padding included."""
        return [self.component(k) for k in range(np.shape(self.log_weights)[0])]

    def moments(self, namespace: Any = np) -> tuple[Any, Any]:
        """Exact mean and variances of the ravelled position."""
        if namespace is np:
            pairs = zip(*(base.moments() for base in self.each()), strict=True)
            means, variances = (np.stack(leaves) for leaves in pairs)
        else:
            means, variances = jax.vmap(lambda base: base.moments(namespace))(self.components)
        weights = namespace.exp(namespace.asarray(self.log_weights))
        mean = weights @ means
        return mean, weights @ (variances + (means - mean) ** 2)

    def pooled_scale(self, namespace: Any = np) -> Any:
        """The scale within components, pooled by their weights; None where they state none."""
        scales = getattr(self.components, "scale_tril", None)
        if scales is None:
            return None
        weights, scales = namespace.exp(namespace.asarray(self.log_weights)), namespace.asarray(scales)
        if scales.ndim == 2:
            return namespace.sqrt(weights @ scales**2)
        return linear.triangular(namespace.hstack(namespace.sqrt(weights)[:, None, None] * scales), namespace)

    def centres(self, namespace: Any = np) -> Any:
        """The components' means, ravelled, one a row."""
        if namespace is np:
            return ravelled_rows(self.components.mean)
        return jax.vmap(lambda base: ravel_pytree(base.mean)[0])(self.components)


def _padded(components: Sequence[Any], at_least: int) -> list[Any]:
    """Repeats of the first component make up the next size."""
    number = len(components)
    size = next((size for size in SIZES if size >= max(number, at_least)), number)
    return [*components, *[components[0]] * (size - number)]
