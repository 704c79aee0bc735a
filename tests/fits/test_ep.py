"""Expectation propagation against its known answers: probit factors in closed form, exact evidences, and sentences."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm
from scipy import stats

import thermocline as tc
from thermocline.fits.ep import fit_ep
from thermocline.fits.tilted import groups_of

WIDTH = 2.0  # of the prior


def probit(number, dimension, *, seed=0, power=1.0):
    """A regression with its data; factors as `tc.Target` takes them."""
    generator = np.random.default_rng(seed)
    x, weights = generator.normal(size=(number, dimension)), 1.5 * generator.normal(size=dimension)
    y = np.where(generator.uniform(size=number) < stats.norm.cdf(x @ weights), 1.0, -1.0)

    def factors(position, data):
        return norm.logcdf(data["y"] * (data["x"] @ position))

    def log_density(position, data):
        return jnp.sum(factors(position, data)) + jnp.sum(norm.logpdf(position, 0, WIDTH))

    prior = tc.Gaussian.diagonal(np.zeros(dimension), WIDTH)
    return tc.Target(log_density, np.zeros(dimension), {"x": x, "y": y}, prior=prior, factors=factors)


def serial_ep(x, y):
    """EP one factor after another with the closed form of a probit factor's tilted moments: mean, covariance, log Z.

    Rasmussen and Williams 2006, equations 3.56 to 3.59 and 3.65, for weights in place of a latent function.
    """
    dimension = x.shape[1]
    curvature, slope, log_scale = np.zeros(len(y)), np.zeros(len(y)), np.zeros(len(y))
    for _ in range(200):
        before = slope.copy()
        for i, row in enumerate(x):
            covariance = np.linalg.inv(np.eye(dimension) / WIDTH**2 + (x.T * curvature) @ x)
            variance, mean = row @ covariance @ row, row @ covariance @ (slope @ x)
            cavity = 1 / (1 / variance - curvature[i])
            centre = cavity * (mean / variance - slope[i])
            z = y[i] * centre / np.sqrt(1 + cavity)
            log_norm = stats.norm.logcdf(z)
            ratio = np.exp(stats.norm.logpdf(z) - log_norm)
            tilted_mean = centre + y[i] * cavity * ratio / np.sqrt(1 + cavity)
            tilted = cavity - cavity**2 * ratio * (z + ratio) / (1 + cavity)
            curvature[i], slope[i] = 1 / tilted - 1 / cavity, tilted_mean / tilted - centre / cavity
            log_scale[i] = log_norm + 0.5 * (np.log(cavity / tilted) + centre**2 / cavity - tilted_mean**2 / tilted)
        if np.max(np.abs(slope - before)) < 1e-12:
            break
    covariance = np.linalg.inv(np.eye(dimension) / WIDTH**2 + (x.T * curvature) @ x)
    mean = covariance @ (slope @ x)
    determinant = np.linalg.slogdet(covariance)[1] - 2 * dimension * np.log(WIDTH)
    return mean, covariance, np.sum(log_scale) + 0.5 * (determinant + mean @ (slope @ x))


def exact_two(log_density):
    """Log Z, mean and covariance of two parameters by the trapezoidal rule."""
    axis = np.linspace(-16.0, 16.0, 801)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    heights = log_density(points)
    weights = np.exp(heights - heights.max())
    log_evidence = heights.max() + np.log(weights.sum() * (axis[1] - axis[0]) ** 2)
    mean = weights @ points / weights.sum()
    return log_evidence, mean, (points - mean).T @ (weights[:, None] * (points - mean)) / weights.sum()


def posterior_of(target):
    """The log density of a probit target at many points, in NumPy."""
    x, y = target.data["x"], target.data["y"]

    def log_density(points):
        return stats.norm.logcdf(points @ (x.T * y)).sum(axis=1) + stats.norm.logpdf(points, 0, WIDTH).sum(axis=1)

    return log_density


@pytest.mark.parametrize(("number", "dimension"), [(25, 3), (80, 6)])
def test_a_probit_regression_has_the_moments_and_the_evidence_of_serial_ep(number, dimension):
    target = probit(number, dimension)
    mean, covariance, log_evidence = serial_ep(target.data["x"], target.data["y"])
    fit = fit_ep(target)
    deviations = np.sqrt(np.diagonal(covariance))
    assert np.all(np.abs(fit.base.mean - mean) < 1e-5 * deviations)
    np.testing.assert_allclose(fit.base.covariance(), covariance, atol=1e-5 * np.outer(deviations, deviations).max())
    assert fit.log_zeta == pytest.approx(log_evidence, abs=1e-5)
    assert "agreed" in fit.notes[0]


@pytest.mark.parametrize(("number", "seed"), [(4, 3), (8, 3), (8, 1)])
def test_a_small_probit_regression_beside_quadrature(number, seed):
    """Moments are all but exact, where Laplace's are off; the evidence is as near as EP's is by its closed form."""
    target = probit(number, 2, seed=seed)
    log_evidence, mean, covariance = exact_two(posterior_of(target))
    fit, laplace = fit_ep(target), tc.fit_laplace(target)
    deviations = np.sqrt(np.diagonal(covariance))
    errors = [np.max(np.abs(one.base.mean - mean) / deviations) for one in (fit, laplace)]
    assert errors[0] < 0.1 * errors[1]
    assert abs(fit.log_zeta - log_evidence) < 0.05
    assert fit.log_zeta == pytest.approx(serial_ep(target.data["x"], target.data["y"])[2], abs=1e-6)


def test_factors_at_right_angles_are_exact():
    """Under a round prior they have nothing to do with one another: the evidence is a product of integrals."""
    generator = np.random.default_rng(6)
    turned, sizes = np.linalg.qr(generator.normal(size=(3, 3)))[0], np.array([0.3, 1.0, 4.0])
    x, offsets = turned * sizes[:, None], np.array([0.5, -1.0, 2.0])

    def factors(position):
        return norm.logcdf(x @ position + offsets)

    prior = tc.Gaussian.diagonal(np.zeros(3), WIDTH)
    target = tc.Target(
        lambda p: jnp.sum(factors(p)) + jnp.sum(norm.logpdf(p, 0, WIDTH)), np.zeros(3), prior=prior, factors=factors
    )
    exact = stats.norm.logcdf(offsets / np.sqrt(1 + (WIDTH * sizes) ** 2)).sum()
    assert fit_ep(target).log_zeta == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_one_factor_is_exact(power):
    """With one factor the tilted density of EP is the posterior; power EP's fixed point is another."""
    target = probit(1, 2, seed=1)
    log_evidence, mean, covariance = exact_two(posterior_of(target))
    fit = fit_ep(target, power=power)
    is_exact = power == 1.0
    assert (abs(fit.log_zeta - log_evidence) < 1e-6) == is_exact
    assert np.allclose(fit.base.mean, mean, atol=1e-5) == is_exact
    assert np.allclose(fit.base.covariance(), covariance, rtol=1e-4) == is_exact
    assert abs(fit.log_zeta - log_evidence) < 0.05


def test_gaussian_factors_are_exact_whatever_the_power_and_the_units():
    generator = np.random.default_rng(2)
    x, scales = generator.normal(size=(12, 3)), np.array([1e-4, 1.0, 1e5])
    y = x @ np.array([1.0, -2.0, 0.5]) + 0.3 * generator.normal(size=12)

    def factors(position, data):
        return {"rows": norm.logpdf(data["y"], data["x"] @ (position / scales), 0.3), "constant": jnp.asarray(7.0)}

    def log_density(position, data):
        parts = factors(position, data)
        return jnp.sum(parts["rows"]) + parts["constant"] + jnp.sum(norm.logpdf(position, 0, WIDTH * scales))

    prior = tc.Gaussian(np.zeros(3), WIDTH * scales)
    target = tc.Target(log_density, 0.1 * scales, {"x": x, "y": y}, prior=prior, factors=factors)
    marginal = stats.multivariate_normal(np.zeros(12), 0.09 * np.eye(12) + WIDTH**2 * x @ x.T)
    precision = x.T @ x / 0.09 + np.eye(3) / WIDTH**2
    for power in (1.0, 0.3):
        fit = fit_ep(target, power=power)
        assert fit.log_zeta == pytest.approx(7.0 + marginal.logpdf(y), abs=1e-6)
        np.testing.assert_allclose(fit.base.mean / scales, np.linalg.solve(precision, x.T @ y / 0.09), rtol=1e-6)


def unknown_noise(factor_of_data):
    """A mean and a log scale with normal priors, and ten data."""
    data = np.random.default_rng(5).normal(1.0, 2.0, 10)

    def rows(position, data):
        return norm.logpdf(data, position[0], jnp.exp(position[1]))

    def log_density(position, data):
        return jnp.sum(rows(position, data)) + jnp.sum(norm.logpdf(position))

    prior = tc.Gaussian.diagonal(np.zeros(2), 1.0)
    return tc.Target(log_density, np.zeros(2), data, prior=prior, factors=lambda p, d: factor_of_data(rows(p, d)))


def exact_unknown_noise(data):
    def log_density(points):
        rows = stats.norm.logpdf(data, points[:, :1], np.exp(np.clip(points[:, 1:], -12.0, 12.0)))
        return rows.sum(axis=1) + stats.norm.logpdf(points).sum(axis=1)

    return exact_two(log_density)


def test_a_factor_of_two_directions_has_the_moments_of_weighted_draws():
    """All data in one factor: its tilted density is the posterior, known to the error of 4096 weighted draws."""
    target = unknown_noise(jnp.sum)
    log_evidence, mean, covariance = exact_unknown_noise(target.data)
    fits = [fit_ep(target, seed=seed) for seed in range(4)]
    deviations = np.sqrt(np.diagonal(covariance))
    errors = [[*(fit.base.mean - mean) / deviations, fit.log_zeta - log_evidence] for fit in fits]
    standard_error = 1 / np.sqrt(4096 * len(fits) / 2)  # at weights of which half count
    assert np.all(np.abs(np.mean(errors, axis=0)) < 4 * standard_error)
    for fit in fits:
        np.testing.assert_allclose(fit.base.covariance(), covariance, atol=8 * covariance.max() / np.sqrt(4096))


def test_many_factors_of_two_directions_come_near_the_posterior():
    target = unknown_noise(lambda rows: rows)
    log_evidence, mean, covariance = exact_unknown_noise(target.data)
    fit = fit_ep(target)
    assert "agreed" in fit.notes[0]
    assert abs(fit.log_zeta - log_evidence) < 0.05
    assert np.all(np.abs(fit.base.mean - mean) < 0.1 * np.sqrt(np.diagonal(covariance)))


def test_a_prior_that_is_no_gaussian_is_a_factor_itself():
    """A logistic prior of one parameter and a Gaussian likelihood: two factors, exact by quadrature."""

    def log_prior(position):
        return -position - 2 * jnp.log1p(jnp.exp(-position))

    def factors(position):
        return norm.logpdf(2.0, position, 1.5)

    prior = tc.Base(log_prior, lambda key: jnp.zeros(()))
    target = tc.Target(lambda x: log_prior(x) + factors(x), np.float64(0.0), prior=prior, factors=factors)
    grid = np.linspace(-30, 30, 20_001)
    weights = stats.logistic.pdf(grid) * stats.norm.pdf(2.0, grid, 1.5) * (grid[1] - grid[0])
    evidence, mean = weights.sum(), weights @ grid / weights.sum()
    deviation = np.sqrt(weights @ (grid - mean) ** 2 / evidence)
    fit = fit_ep(target)
    assert abs(fit.log_zeta - np.log(evidence)) < 4 / np.sqrt(4096)
    assert abs(float(fit.base.mean) - mean) < 4 * deviation / np.sqrt(4096)


def test_single_precision_is_near():
    target = probit(25, 3)
    double, single = fit_ep(target), fit_ep(target, precision="float32")
    assert single.log_zeta == pytest.approx(double.log_zeta, abs=0.02)
    assert np.all(np.abs(single.base.mean - double.base.mean) < 0.05)


def test_directions_share_rows_if_they_are_equal_or_far_from_dependent():
    unit = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.9995, 0.0316]])
    groups = [sorted(group.members.tolist()) for group in groups_of(unit / np.linalg.norm(unit, axis=1)[:, None])]
    assert sorted(groups, key=len) == [[0, 2], [1, 3]] or sorted(map(len, groups)) == [1, 3]
    for group in groups_of(unit):
        np.testing.assert_allclose(unit[group.leaders] @ group.inverse, np.eye(len(group.leaders)), atol=1e-12)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"factors": None}, "needs the target's factors: give tc.Target"),
        ({"prior": None}, "needs the target's prior: give tc.Target"),
        ({"factors": lambda p, d: norm.logcdf(d["x"] @ p)}, "do not multiply to the density"),
        ({"factors": lambda p, d: d["z"]}, "factors of the target could not be called"),
    ],
)
def test_what_is_missing_or_wrong_gets_a_sentence(change, sentence):
    with pytest.raises(tc.ThermoclineError, match=sentence):
        fit_ep(replace(probit(8, 2), **change))


def test_a_power_out_of_range_gets_a_sentence():
    with pytest.raises(tc.ThermoclineError, match=r"power is 1\.5; give a number above 0 and up to 1"):
        fit_ep(probit(8, 2), power=1.5)


def test_one_factor_of_everything_gets_a_sentence():
    def factors(position):
        return -jnp.sum(position**4) - 0.5 * jnp.prod(position[:2])

    prior = tc.Gaussian.diagonal(np.zeros(30), 1.0)
    target = tc.Target(lambda p: factors(p) + jnp.sum(norm.logpdf(p)), np.full(30, 0.1), prior=prior, factors=factors)
    with pytest.raises(tc.ThermoclineError, match="EP is for factors that each depend on few"):
        fit_ep(target)
