"""Mixtures: of any family of bases, and of Gaussians that share a covariance, for targets with hundreds of modes."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from thermocline.bases.base import NormalisedDensity
from thermocline.bases.gaussian import OnRows
from thermocline.support import linear
from thermocline.support.flat import ravelled_rows, unravelled
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
        number, log_weights = len(components), np.asarray(log_weights, float)
        room = np.full(next((size for size in SIZES if size >= max(number, at_least)), number), -np.inf)
        room[:number] = log_weights - np.logaddexp.reduce(log_weights)
        return cls.stacked([*components, *[components[0]] * (len(room) - number)], room)

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
        return Mixture.stacked([base.prepared() for base in self.each()], self.log_weights)

    def each(self) -> list[Any]:
        """The components as bases, padding included."""
        return [self.component(k) for k in range(np.shape(self.log_weights)[0])]

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        means, variances = map(np.stack, zip(*(base.moments() for base in self.each()), strict=True))
        weights = np.exp(self.log_weights)
        mean = weights @ means
        return mean, weights @ (variances + (means - mean) ** 2)

    def pooled_scale(self) -> np.ndarray | None:
        """The scale within components, pooled by their weights; None where they state none."""
        scales = getattr(self.components, "scale_tril", None)
        if scales is None:
            return None
        weights, scales = np.exp(self.log_weights), np.asarray(scales)
        if scales.ndim == 2:
            return np.sqrt(weights @ scales**2)
        return linear.triangular(np.hstack(np.sqrt(weights)[:, None, None] * scales))

    def centres(self) -> np.ndarray:
        """The components' means, ravelled, one a row."""
        return ravelled_rows(self.components.mean)


@pytree
class TiedMixture(OnRows):
    r"""$(1 - b) \sum_k w_k N(c_k, LL^\top) + b\, N(m, S)$, with $m$ and $S$ the moments of the sum before it.

    A density costs one product with a matrix of centres, not one with a matrix for each component, so that thousands
    of modes are affordable; the broad Gaussian is there for modes that are not listed. Such a base is multimodal; give
    it to a method that jumps. Centres and the broad scale are whitened: in units of $L$, about $m$.
    """

    mean: Any  # a position of the target
    white_centres: Any  # (component, dimension)
    log_weights: Any  # of the components, the broad one last; -inf is padding
    scale_tril: Any
    whitening: Any
    broad_tril: Any
    broad_whitening: Any

    num_components = Mixture.num_components  # the broad one included

    @classmethod
    def of(
        cls, centres: Any, log_weights: Any, covariance: Any, like: Any, *, broad_weight: float = 0.1, room: int = 1
    ) -> "TiedMixture":
        """From ravelled centres, one a row, padded to a multiple of `room`; `like` is a position of the target."""
        centres, log_weights = np.asarray(centres, float), np.asarray(log_weights, float)
        weights = np.exp(log_weights - np.logaddexp.reduce(log_weights))
        mean, scale = weights @ centres, np.linalg.cholesky(covariance)
        whitening = linear.inverse(scale, np)
        number = len(centres)
        white = np.zeros((-(-number // room) * room, len(mean)))
        white[:number] = (centres - mean) @ whitening.T
        padded = np.full(len(white) + 1, -np.inf)
        padded[:number], padded[-1] = np.log1p(-broad_weight) + np.log(weights), np.log(broad_weight)
        broad = np.linalg.cholesky(np.eye(len(mean)) + (white[:number].T * weights) @ white[:number])
        return cls(unravelled(mean, like), white, padded, scale, whitening, broad, linear.inverse(broad, np))

    def log_density_of_rows(self, rows: Any, namespace: Any = np) -> Any:
        scale, broad, centres = map(namespace.asarray, (self.scale_tril, self.broad_tril, self.white_centres))
        white = (rows - linear.ravelled(self.mean, namespace)) @ namespace.asarray(self.whitening).T
        narrow = white @ centres.T - 0.5 * namespace.sum(centres**2, axis=1)
        narrow = narrow - 0.5 * namespace.sum(white**2, axis=-1, keepdims=True)
        wide = -0.5 * namespace.sum((white @ namespace.asarray(self.broad_whitening).T) ** 2, axis=-1, keepdims=True)
        heights = namespace.concatenate([narrow, wide - linear.log_determinant(broad, namespace)], axis=-1)
        constant = 0.5 * white.shape[-1] * np.log(2 * np.pi) + linear.log_determinant(scale, namespace)
        return linear.log_sum_exp(namespace.asarray(self.log_weights) + heights, namespace) - constant

    def sample(self, key: jax.Array) -> Any:
        key_component, key_draw = jax.random.split(key)
        mean, unravel = ravel_pytree(self.mean)
        centres = jnp.asarray(self.white_centres)
        index = jax.random.categorical(key_component, jnp.asarray(self.log_weights))
        noise = jax.random.normal(key_draw, mean.shape, mean.dtype)
        narrow = centres[jnp.minimum(index, len(centres) - 1)] + noise
        white = jnp.where(index == len(centres), jnp.asarray(self.broad_tril) @ noise, narrow)
        return unravel(mean + jnp.asarray(self.scale_tril) @ white)

    def sample_rows(self, generator: np.random.Generator, number: int) -> np.ndarray:
        weights, centres = np.exp(np.asarray(self.log_weights, float)), np.asarray(self.white_centres)
        index = generator.choice(len(weights), number, p=weights / weights.sum())
        noise, is_broad = generator.normal(size=(number, centres.shape[1])), index == len(centres)
        white = noise + centres[np.where(is_broad, 0, index)]
        white[is_broad] = noise[is_broad] @ np.asarray(self.broad_tril).T
        return linear.ravelled(self.mean, np) + white @ np.asarray(self.scale_tril).T

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Exact mean and variances of the ravelled position: those of the broad Gaussian."""
        root = np.asarray(self.scale_tril) @ np.asarray(self.broad_tril)
        return linear.ravelled(self.mean, np), np.sum(root**2, axis=1)

    def centres(self) -> np.ndarray:
        """The components' means, ravelled, one a row."""
        return linear.ravelled(self.mean, np) + np.asarray(self.white_centres) @ np.asarray(self.scale_tril).T
