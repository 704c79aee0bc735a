"""Interpolation of many tables at once is NumPy's of each."""

import numpy as np

from thermocline.paths.reweighting import interpolate


def test_it_is_numpys_of_every_table():
    generator = np.random.default_rng(0)
    grid, values = np.sort(generator.normal(size=(2, 3, 9)), axis=-1), generator.normal(size=(2, 3, 9))
    places = generator.normal(scale=2.0, size=(2, 3, 20))  # beyond both ends too
    actual = interpolate(places, grid, values)
    for index in np.ndindex(2, 3):
        np.testing.assert_allclose(actual[index], np.interp(places[index], grid[index], values[index]), atol=1e-14)


def test_leading_axes_broadcast():
    values = np.arange(12.0).reshape(3, 4)
    actual = interpolate(np.array([0.5, 2.5]), np.arange(4.0), values)
    np.testing.assert_allclose(actual, [[0.5, 2.5], [4.5, 6.5], [8.5, 10.5]])


def test_of_a_repeated_point_the_last_value_counts():
    grid, values = np.array([0.0, 0.0, 0.5, 1.0, 1.0]), np.array([7.0, 1.0, 2.0, 3.0, 9.0])
    np.testing.assert_array_equal(interpolate(np.array([0.0, 0.25, 0.75]), grid, values), [1.0, 1.5, 2.5])
    assert np.isfinite(interpolate(np.array([1.0]), grid, values)).all()
