"""Bases in more dimensions than matrices are affordable in, looked at in fewer."""

import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from thermocline.auto import many_dimensions
from thermocline.auto.many_dimensions import NOT_LOOKED_FOR, fit_many_dimensions
from thermocline.bases import Gaussian, LowRankGaussian, Mixture
from thermocline.engine.progress import Silent
from thermocline.evaluator import Evaluator
from thermocline.support.precision import computing_in

SIZE = 60
MEAN, SCALES = np.linspace(-3, 3, SIZE), np.exp(np.linspace(-2, 2, SIZE))
LOG_TWO_PI = np.log(2 * np.pi)


def fitted(log_density, data=None, starts=None):
    with computing_in("float64"):
        evaluate = Evaluator(tc.Target(log_density, np.full(SIZE, 0.1), data))
        starts = evaluate.initial_position[None] if starts is None else starts
        return fit_many_dimensions(evaluate, starts, 0, 0.05, Silent())


def test_independent_coordinates_are_found_exactly():
    fit = fitted(lambda x, d: -0.5 * jnp.sum(((x - d[0]) / d[1]) ** 2), (MEAN, SCALES))
    assert isinstance(fit.base, Gaussian)
    assert fit.base.scale_tril.shape == (SIZE,)
    assert abs(fit.log_zeta - np.sum(np.log(SCALES)) - SIZE / 2 * LOG_TWO_PI) < 1e-3
    assert "100% of its own draws count" in fit.notes[-1]


def test_a_direction_that_is_wider_is_a_column():
    along = np.random.default_rng(0).normal(size=SIZE) * SCALES * 5
    covariance = np.diag(SCALES**2) + np.outer(along, along)
    fit = fitted(lambda x, d: -0.5 * (x - d[0]) @ d[1] @ (x - d[0]), (MEAN, np.linalg.inv(covariance)))
    assert isinstance(fit.base, LowRankGaussian)
    assert fit.base.factor.shape == (SIZE, 1)
    variance = along @ np.linalg.solve(covariance, along)
    reached = along @ np.linalg.solve(fit.base.covariance(), along)
    assert np.isclose(variance, reached, rtol=0.05)  # along the direction; the rest differ by one part in the size


def test_modes_that_starts_lead_to_are_weighted_by_their_mass():
    def two(x):
        return jnp.logaddexp(-0.5 * jnp.sum(x**2), -0.5 * jnp.sum((x - 8) ** 2) + np.log(3))

    fit = fitted(two, starts=np.stack([np.full(SIZE, 0.3), np.full(SIZE, 7.0), np.full(SIZE, 7.5)]))
    assert isinstance(fit.base, Mixture)
    weights = np.sort(np.exp(fit.base.log_weights[: fit.base.num_components]))
    assert np.allclose(weights, [0.25, 0.75], atol=1e-3)
    assert abs(fit.log_zeta - np.log(4) - SIZE / 2 * LOG_TWO_PI) < 4 / np.sqrt(512)


def test_where_nothing_is_finite_it_says_what_to_do():
    with pytest.raises(tc.ThermoclineError, match=r"no base could be fitted in 60 dimensions.*give base="):
        fitted(lambda x: jnp.where(jnp.all(x == 0.1), 0.0, jnp.nan) - 0.0 * jnp.sum(x))


@pytest.mark.long
def test_sample_takes_this_way_and_says_that_modes_were_not_looked_for(monkeypatch):
    for module in ("black_box", "mode_masses"):
        monkeypatch.setattr(f"thermocline.auto.{module}.MOST_DIMENSIONS", SIZE - 1)
    target = tc.Target(lambda x, d: -0.5 * jnp.sum(((x - d[0]) / d[1]) ** 2), np.zeros(SIZE), (MEAN, SCALES))
    result = tc.sample(target, progress=False)
    exact = np.sum(np.log(SCALES)) + SIZE / 2 * LOG_TWO_PI
    assert result.verdict == "ok"
    assert abs(result.log_evidence.value - exact) < 1e-3
    assert result.mode_table is None
    assert NOT_LOOKED_FOR in result.info.notes
    draws = result.posterior(2000)["x"]
    assert np.all(np.abs(draws.mean(axis=0) - MEAN) < 5 * SCALES / np.sqrt(2000))
    assert many_dimensions.MOST_DIMENSIONS == 1000
