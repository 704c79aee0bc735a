"""Operations and sizes of small functions, counted by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.modes.find import FEWEST_LOOKS, fewest_looks
from thermocline.support.counting import LONG, largest_array, operations

MATRIX = np.ones((7, 5))


def test_a_product_counts_what_it_sums():
    assert operations(lambda x: MATRIX @ x, np.zeros(5)) == 7 * 5
    assert operations(lambda x: jnp.sum(MATRIX @ x), np.zeros(5)) == 7 * 5 + 1


def test_a_loop_of_known_length_counts_as_often():
    def looped(x):
        return jax.lax.scan(lambda total, _: (total * x, None), x, None, length=30)[0]

    assert operations(looped, np.zeros(4)) == 30 * 4


def test_a_loop_of_unknown_length_is_taken_for_a_long_one():
    def searched(x):
        return jax.lax.while_loop(lambda y: jnp.max(y) < 9.0, lambda y: 2 * y, x)

    assert 4 * LONG < operations(searched, np.ones(4)) < 20 * LONG


def test_the_largest_array_is_found_inside_of_what_is_called():
    assert largest_array(jax.jit(lambda x: jnp.sum(jnp.outer(x, x))), np.zeros(6)) == 36


def test_a_cheap_density_is_looked_at_more_than_a_dear_one_within_limits():
    looks = [fewest_looks(number) for number in (10, 10_000, 10**9)]
    assert looks == sorted(looks, reverse=True)
    assert looks[0] == 2**29 // (10 + 2**11)
    assert looks[1] == 2**29 // (10_000 + 2**11)
    assert looks[2] == FEWEST_LOOKS // 8
    assert fewest_looks(None) == FEWEST_LOOKS
