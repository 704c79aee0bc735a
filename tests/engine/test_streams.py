"""Random streams: Threefry on the host as JAX has it, and the short hash within a step against exact laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from thermocline.engine.streams import folded, hashed, key_of, keys_of_step, mixed, run_keys, threefry, within_step

MANY = 2**14
KNOWN = [0, 0x688990C0, 0xD1132181]  # of 0, 1 and 2
BITS = [3493780794, 2162769320, 1209511260, 1212992644, 4167794143, 2182880292, 3427537864, 1545472366, 3813622651]


def step_keys(num_chains: int, num_steps: int, seed: int = 3) -> jax.Array:
    """Keys (step, chain) as a run has them."""
    data = run_keys(np.array([seed, 0]), np.array([[seed, 0]], np.uint32), np.arange(num_chains, dtype=np.uint32)).steps
    return jax.jit(jax.vmap(lambda step: keys_of_step(data[0], step)))(jnp.arange(num_steps))


@pytest.mark.parametrize(
    ("key", "counter", "words"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_has_its_known_answers(key, counter, words):
    """Those that its authors publish with Random123."""
    assert tuple(map(int, threefry(np.array(key, np.uint32), *np.array(counter, np.uint32)))) == words


def test_keys_are_those_of_jax():
    numbers = np.array([0, 1, 2, 77, 2**31, 2**32 - 1], np.uint32)
    for seed in (0, 5, 2**32 - 1):
        key = jax.random.key(np.uint32(seed))
        expected = [jax.random.key_data(jax.random.fold_in(jax.random.fold_in(key, 9), number)) for number in numbers]
        assert np.array_equal(folded(key_of(np.array([seed, 9])), numbers), expected)
    keys = run_keys(np.array([4, 1]), np.array([[7, 16]], np.uint32), numbers)
    own = jax.random.fold_in(jax.random.fold_in(jax.random.key(7), 16), 1)
    assert np.array_equal(keys.steps[0, 3], jax.random.key_data(jax.random.fold_in(own, 77)))
    step = jax.random.fold_in(jax.random.wrap_key_data(jnp.asarray(keys.steps[0, 3])), 12)
    assert np.array_equal(jax.random.key_data(keys_of_step(keys.steps, 12))[0, 3], jax.random.key_data(step))


def as_integers(key: tuple[int, int], counter: int) -> tuple[int, int]:
    """The short hash by Python's integers."""

    def mix(word: int) -> int:
        word = ((word ^ word >> 16) * 0x7FEB352D) % 2**32
        word = ((word ^ word >> 15) * 0x846CA68B) % 2**32
        return word ^ word >> 16

    first = mix(counter ^ key[0])
    second = mix((first + key[1]) % 2**32)
    return second, mix(first ^ second)


def test_the_hash_has_its_known_answers():
    for key, counter in (((0, 0), 0), ((1, 2), 3), ((0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFF), ((0x13198A2E, 5), 1 << 31)):
        found = hashed(jnp.array(key, jnp.uint32), jnp.uint32(counter))
        assert tuple(map(int, found)) == as_integers(key, counter)
    assert [int(mixed(jnp.uint32(word))) for word in (0, 1, 2)] == KNOWN


def test_uniforms_and_normals_have_their_laws():
    """Over chains and steps, and over the numbers of one step: each alone, neighbours, and those of split keys."""
    with jax.enable_x64(True):
        keys = step_keys(16, 1024).reshape(-1)
        uniforms = np.asarray(jax.vmap(lambda key: jax.random.uniform(key, (8,)))(keys))
        left, right = jax.vmap(jax.random.split, out_axes=1)(keys)
        normals = np.asarray(jax.vmap(lambda key: jax.random.normal(key, (8,)))(left))
        others = np.asarray(jax.vmap(lambda key: jax.random.normal(key, (8,)))(right))
    assert stats.kstest(uniforms.ravel(), "uniform").pvalue > 1e-3
    assert stats.kstest(normals.ravel(), "norm").pvalue > 1e-3
    for power, exact, variance in ((1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)):
        assert abs(np.mean(normals**power) - exact) < 4 * np.sqrt(variance / normals.size)
    around = normals.reshape(1024, 16, 8)
    pairs = {
        "numbers": (normals[:, 1:], normals[:, :-1]),
        "chains": (around[:, 1:], around[:, :-1]),
        "steps": (around[1:], around[:-1]),
        "keys split": (normals, others),
        "key and its child": (stats.norm.ppf(uniforms), normals),
    }
    for name, (one, other) in pairs.items():
        for values in (one * other, (one**2 - 1) * (other**2 - 1) / 2):  # of variance 1 where they are independent
            assert abs(values.mean()) < 4 / np.sqrt(values.size), name


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_every_bit_is_even_and_none_goes_with_another(bits):
    with jax.enable_x64(True):
        words = np.asarray(jax.vmap(lambda key: jax.random.bits(key, (4,), f"uint{bits}"))(step_keys(16, 1024).ravel()))
    words = words.reshape(-1, 1).astype(np.uint64)
    flips = 2.0 * ((words >> np.arange(bits, dtype=np.uint64)) & np.uint64(1)) - 1  # of variance 1
    together = flips.T @ flips / np.sqrt(len(flips))
    together[np.diag_indices(bits)] = flips.sum(axis=0) / np.sqrt(len(flips))
    assert np.abs(together).max() < 5.5  # of at most 64 * 65 / 2 standard normals
    assert stats.kstest(together[np.tril_indices(bits)], "norm").pvalue > 1e-3


def test_each_bit_of_key_and_counter_flips_half_of_the_words():
    generator = np.random.default_rng(0)
    keys, counters = generator.integers(2**32, size=(MANY, 2), dtype=np.uint32), np.arange(MANY, dtype=np.uint32)
    words = np.stack(jax.vmap(hashed)(keys, counters), axis=-1)
    for place in range(96):
        flipped = np.concatenate([keys, counters[:, None]], axis=1)
        flipped[:, place // 32] ^= np.uint32(1 << place % 32)
        change = np.stack(jax.vmap(hashed)(flipped[:, :2], flipped[:, 2]), axis=-1) ^ words
        share = np.mean((change[..., None] >> np.arange(32, dtype=np.uint32)) & 1, axis=0)
        assert np.abs(share - 0.5).max() < 6 * 0.5 / np.sqrt(MANY), place  # 96 * 64 of them


def test_words_collide_as_often_as_chance_has_it():
    keys = step_keys(16, 2**12).ravel()
    words = np.asarray(jax.vmap(lambda key: jax.random.bits(key, (4,), jnp.uint32))(keys)).ravel()
    expected = words.size**2 / 2**33
    assert abs(words.size - len(np.unique(words)) - expected) < 4 * np.sqrt(expected)


def test_no_two_streams_share_a_key():
    """Runs of one seed, targets, uses, chains, steps, and keys split from those."""
    streams = np.array([[seed, number] for seed in range(4) for number in (0, 1, 16, 17)], np.uint32)
    keys = run_keys(np.array([0, 0]), streams, np.arange(8, dtype=np.uint32))
    of_steps = jax.vmap(lambda step: keys_of_step(keys.steps, step))(jnp.arange(64)).ravel()
    of_beginning = within_step(jax.random.wrap_key_data(jnp.asarray(keys.beginning))).ravel()
    every = [of_steps, of_beginning, jax.vmap(lambda key: jax.random.split(key, 3))(of_steps).ravel()]
    every += [jax.vmap(lambda key: jax.random.fold_in(key, 1))(of_steps), keys_of_step(keys.shared, 5)[None]]
    data = np.concatenate([np.asarray(jax.random.key_data(some)) for some in every])
    assert len(np.unique(data, axis=0)) == len(data)


def test_a_key_gives_the_same_in_any_company_and_precision():
    keys = step_keys(4, 3)
    for function in (jax.random.normal, lambda key: jax.random.permutation(key, 10), jax.random.split):
        together, alone = jax.vmap(jax.vmap(function))(keys), function(keys[2, 1])
        if jnp.issubdtype(alone.dtype, jax.dtypes.prng_key):
            together, alone = jax.random.key_data(together), jax.random.key_data(alone)
        assert np.array_equal(together[2, 1], alone)
    with jax.enable_x64(True):
        assert np.array_equal(jax.random.bits(keys[0, 0], (9,), jnp.uint32), BITS)
    assert np.array_equal(jax.random.bits(keys[0, 0], (9,), jnp.uint32), BITS)
