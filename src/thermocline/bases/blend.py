"""A few bases of different families as one: a mixture that keeps something broad in reserve."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.bases.base import NormalisedDensity, base_name
from thermocline.support import linear
from thermocline.support.pytree import pytree


@pytree
class Blend:
    """A mixture of any bases; the first is the one whose scale and centres moves are made for."""

    bases: Any
    log_weights: Any

    @classmethod
    def of(cls, bases: Sequence[NormalisedDensity], log_weights: Any) -> "Blend":
        """From a list of bases and their log weights, which are normalised here."""
        log_weights = np.asarray(log_weights, float)
        return cls(tuple(bases), log_weights - np.logaddexp.reduce(log_weights))

    def log_density(self, position: Any) -> jax.Array:
        heights = jnp.stack([base.log_density(position) for base in self.bases])
        return jax.nn.logsumexp(jnp.asarray(self.log_weights) + heights)

    def log_density_of_rows(self, rows: np.ndarray) -> np.ndarray:
        """At ravelled positions along the last axis, in NumPy."""
        heights = np.stack([base.log_density_of_rows(rows) for base in self.bases], axis=-1)
        return linear.log_sum_exp(np.asarray(self.log_weights) + heights, np)

    def sample_rows(self, generator: np.random.Generator, number: int) -> np.ndarray:
        """Exact draws, ravelled, one a row, in random order, in NumPy."""
        counts = generator.multinomial(number, np.exp(self.log_weights))
        return generator.permutation(
            np.concatenate([base.sample_rows(generator, n) for base, n in zip(self.bases, counts, strict=True)])
        )

    def sample(self, key: jax.Array) -> Any:
        key_choice, *keys = jax.random.split(key, 1 + len(self.bases))
        index = jax.random.categorical(key_choice, jnp.asarray(self.log_weights))
        draws = [base.sample(key) for base, key in zip(self.bases, keys, strict=True)]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves)[index], *draws)

    @property
    def description(self) -> str:
        return " and ".join(map(base_name, self.bases))

    def pooled_scale(self, namespace: Any = np) -> Any:
        return getattr(self.bases[0], "scale_tril", None)

    def centres(self, namespace: Any = np) -> Any:
        return self.bases[0].centres(namespace)
