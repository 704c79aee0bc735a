"""Random streams: a key for every use of every chain, made on the host; and cheap keys within one step.

Keys are JAX's own (Threefry, Salmon et al. 2011) down to the one of a chain and a step: seed, number of the run, use,
chain, step. What a step draws is made from that key by a short hash instead, because each of the thirty or so uses of
Threefry in a step would compile for as long as a density does.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import define_prng_impl

from thermocline.records import Array

BEGINNING, STEPS, SHARED = range(3)  # what keys of a stream are for
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


class RunKeys(NamedTuple):
    """Data of keys: of the beginning and of the steps of each chain (target, chain, 2), and what all chains share."""

    beginning: Array
    steps: Array
    shared: Array


def run_keys(shared: np.ndarray, streams: np.ndarray, chains: np.ndarray) -> RunKeys:
    """From (seed, number) of what is shared and of each target, and the numbers of the chains.

    Runs that learn, pilots and the run itself have numbers of their own.
    """
    own = key_of(streams)
    beginning, steps = (folded(folded(own, use)[:, None], chains) for use in (BEGINNING, STEPS))
    return RunKeys(beginning, steps, folded(key_of(shared), SHARED))


def key_of(stream: np.ndarray) -> np.ndarray:
    """`fold_in(key(seed), number)` of (seed, number), along the last axis."""
    seed = np.asarray(stream, np.uint32)
    return folded(np.stack([np.zeros_like(seed[..., 0]), seed[..., 0]], axis=-1), seed[..., 1])


def folded(key: np.ndarray, number: Array | int) -> np.ndarray:
    """`jax.random.fold_in`, bit for bit, of key data (..., 2) in NumPy."""
    return np.stack(threefry(key, np.zeros((), np.uint32), np.asarray(number, np.uint32)), axis=-1)


def threefry(key: np.ndarray, high: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Threefry-2x32 of twenty rounds: two words from a key (..., 2) and a counter of two words."""
    words = key[..., 0], key[..., 1], key[..., 0] ^ key[..., 1] ^ np.uint32(PARITY)
    with np.errstate(over="ignore"):  # NumPy tells of it where arrays are single numbers
        high, low = np.broadcast_arrays(high + words[0], low + words[1])
        for block in range(5):
            for rotation in ROTATIONS[block % 2]:
                high = high + low
                low = high ^ (low << np.uint32(rotation) | low >> np.uint32(32 - rotation))
            high, low = high + words[(block + 1) % 3], low + words[(block + 2) % 3] + np.uint32(block + 1)
    return high, low


def keys_of_step(data: jax.Array, step: jax.Array) -> jax.Array:
    """From data of keys (..., 2), the keys of one step, which hash cheaply from there on."""
    fold = jnp.vectorize(jax.random.fold_in, excluded=(1,))
    return within_step(fold(jax.random.wrap_key_data(jnp.asarray(data), impl="threefry2x32"), step))


def within_step(keys: jax.Array) -> jax.Array:
    """Keys that hash cheaply, of keys of Threefry: each of these must be used for nothing else."""
    return jax.random.wrap_key_data(jax.random.key_data(keys), impl=SHORT)


def mixed(word: jax.Array) -> jax.Array:
    """A permutation of 32-bit words in which each bit of the outcome depends evenly on all (Wellons's lowbias32)."""
    word = (word ^ (word >> 16)) * np.uint32(0x7FEB352D)
    word = (word ^ (word >> 15)) * np.uint32(0x846CA68B)
    return word ^ (word >> 16)


def hashed(key: jax.Array, counter: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Two words from a key (2,) that is random itself, and a counter; at most 2^32 counters differ."""
    first = mixed(counter ^ key[0])
    second = mixed(first + key[1])
    return second, mixed(first ^ second)


def _counted(key: jax.Array, shape: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    high, low = hashed(key, jnp.arange(int(np.prod(shape)), dtype=jnp.uint32))
    return high.reshape(shape), low.reshape(shape)


def _seed(seed: jax.Array) -> jax.Array:
    return jax.random.key_data(jax.random.key(seed, impl="threefry2x32"))


def _split(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    return jnp.stack(_counted(key, shape), axis=-1)


def _fold_in(key: jax.Array, data: Any) -> jax.Array:
    """Counted down from the last counter, so that none is a key that `split` gives."""
    return jnp.stack(hashed(key, ~jnp.asarray(data).astype(jnp.uint32)))


def _random_bits(key: jax.Array, width: int, shape: tuple[int, ...]) -> jax.Array:
    high, low = _counted(key, shape)
    if width == 64:
        return high.astype(jnp.uint64) << 32 | low.astype(jnp.uint64)
    return high.astype(jnp.dtype(f"uint{width}"))


SHORT = define_prng_impl(
    key_shape=(2,), seed=_seed, split=_split, random_bits=_random_bits, fold_in=_fold_in, name="short", tag="short"
)
