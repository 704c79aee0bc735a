"""A few bases of different families as one: a mixture that keeps something broad in reserve."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.bases.base import NormalisedDensity, base_name
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

    def sample(self, key: jax.Array) -> Any:
        key_choice, *keys = jax.random.split(key, 1 + len(self.bases))
        index = jax.random.categorical(key_choice, jnp.asarray(self.log_weights))
        draws = [base.sample(key) for base, key in zip(self.bases, keys, strict=True)]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves)[index], *draws)

    @property
    def description(self) -> str:
        return " and ".join(map(base_name, self.bases))

    @property
    def scale_tril(self) -> Any:
        return getattr(self.bases[0], "scale_tril", None)

    def centres(self) -> jax.Array:
        return self.bases[0].centres()
