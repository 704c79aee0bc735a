"""Natural ascents: exact for Gaussians, from any first guess, sound at kinks, and led by mass and not by height."""

import jax.numpy as jnp
import numpy as np

import thermocline as tc
from thermocline.evaluator import Evaluator
from thermocline.fits.gaussian_ascent import LocationScale
from thermocline.fits.natural import natural_ascent


def test_a_gaussian_is_found_from_a_guess_off_by_orders_of_magnitude():
    generator = np.random.default_rng(0)
    factor, mean = np.tril(generator.normal(size=(6, 6))) + 3 * np.eye(6), 100 * generator.normal(size=6)
    precision = np.linalg.inv(factor @ factor.T)
    target = tc.Target(lambda x, data: -0.5 * (x - data[0]) @ data[1] @ (x - data[0]), np.zeros(6), (mean, precision))
    root = np.diag(10.0 ** generator.uniform(-3, 1, 6))
    location, found = natural_ascent(np.random.default_rng(1), Evaluator(target), LocationScale(mean + 3.0, root), 12)
    white = np.linalg.solve(factor, found)
    assert np.linalg.norm(np.linalg.solve(factor, location - mean)) < 1e-3
    np.testing.assert_allclose(white @ white.T, np.eye(6), atol=1e-2)


def test_a_kink_has_a_width():
    """Laplace margins of width b, rotated: the ELBO, log s - s E|z| / b + const, is highest at s = b √(π/2)."""
    generator = np.random.default_rng(0)
    rotation = np.linalg.qr(generator.normal(size=(5, 5)))[0]
    widths = np.array([0.1, 0.5, 1.0, 2.0, 10.0])
    target = tc.Target(lambda x, data: -jnp.sum(jnp.abs(data[0] @ x) / data[1]), np.ones(5), (rotation, widths))
    start = LocationScale(np.ones(5), 1e-3 * np.eye(5))
    location, root = natural_ascent(np.random.default_rng(1), Evaluator(target), start, 20)
    deviations = np.sqrt(np.diag(rotation @ root @ root.T @ rotation.T))
    assert np.all(np.abs(rotation @ location) < widths)
    relative = np.abs(deviations / (np.sqrt(np.pi / 2) * widths) - 1)
    spread, number = np.sqrt(np.pi / 2 - 1), 200  # of |z| over its mean; pairs of draws in the averaged steps
    assert np.all(relative < 4 * 0.5 * spread / np.sqrt(number))


def test_a_fit_that_stands_in_nothing_stays_where_it_is():
    target = tc.Target(lambda x: jnp.where(x[0] > 0, -x[0], -jnp.inf), np.ones(1))
    start = LocationScale(np.array([-5.0]), np.eye(1))
    location, root = natural_ascent(np.random.default_rng(0), Evaluator(target), start, 5)
    assert location == -5.0
    assert root == 1.0
