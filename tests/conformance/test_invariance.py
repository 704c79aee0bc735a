"""From exact draws of a method's stationary law, one step leaves the law unchanged; mutants do not."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

import thermocline as tc
from tests.conformance.exact import BIASED, CONSTANT, FACTORS, LADDER, MEANS, NEIGHBOURS, RUNGS, invariance
from thermocline.movers import Move, leapfrog
from thermocline.paths import Extended, tempered

LIMIT = 4.5  # standard errors
CONTROL = tc.Monotone(lambda u: norm.cdf(u / 1.5 - 0.3))

HMC, NUTS = tc.HMC(num_steps=3), tc.NUTS(max_doublings=3)
ALONE = tc.GibbsTempering(HMC, jumps=False)
CASES = {
    "gibbs hmc": (tc.GibbsTempering(HMC), tc.Continuous(), 1.1),
    "gibbs hmc bias": (tc.GibbsTempering(HMC), BIASED, 1.1),
    "gibbs hmc ladder": (tc.GibbsTempering(HMC), LADDER, 1.1),
    "gibbs langevin bias": (tc.GibbsTempering(tc.experimental.Langevin(num_steps=3)), BIASED, 1.0),
    "gibbs nuts bias": (tc.GibbsTempering(NUTS), BIASED, 1.1),
    "gibbs nuts ladder": (tc.GibbsTempering(NUTS), LADDER, 1.1),
    "joint hmc": (tc.JointTempering(HMC), tc.Continuous(), 0.6),
    "joint hmc bias": (tc.JointTempering(HMC), BIASED, 0.48),
    "joint hmc scale mass": (tc.JointTempering(HMC, control_map=tc.Logistic(2.5), mass=0.3), BIASED, 0.6),
    "joint hmc monotone": (tc.JointTempering(HMC, control_map=CONTROL), BIASED, 0.48),
    "joint nuts bias": (tc.JointTempering(NUTS), BIASED, 0.48),
    "gibbs hmc bias alone": (ALONE, BIASED, 1.1),
    "joint hmc bias alone": (tc.JointTempering(HMC, jumps=False), BIASED, 0.48),
    "gibbs hmc neighbours": (tc.GibbsTempering(HMC), NEIGHBOURS, 1.1),
    "gibbs hmc neighbours alone": (ALONE, NEIGHBOURS, 1.1),
    "untempered hmc": (tc.Untempered(HMC), None, 0.9),
    "transitions hmc": (tc.TemperedTransitions(HMC, betas=RUNGS), None, 0.9),
}


@pytest.mark.parametrize("name", CASES)
def test_one_step_leaves_the_stationary_law_unchanged(name, double):
    scores = invariance(*CASES[name])
    assert 0.6 < scores.acceptance < 0.95  # the Metropolis test has work to do
    assert scores.recorded < LIMIT
    assert scores.following < LIMIT
    assert scores.weights < LIMIT


class Wrapped(NamedTuple):
    """A law that passes everything on; mutants change one method."""

    law: Any

    def log_weight(self, inverse_temperature):
        return self.law.log_weight(inverse_temperature)

    def log_mass(self, log_ratio):
        return self.law.log_mass(log_ratio)

    def sample(self, key, log_ratio):
        return self.law.sample(key, log_ratio)


class FlippedRatio(Wrapped):
    def sample(self, key, log_ratio):
        return self.law.sample(key, -log_ratio)


class ConditionalWithoutBias(Wrapped):
    def log_mass(self, log_ratio):
        return tc.Continuous().log_mass(log_ratio)

    def sample(self, key, log_ratio):
        return tc.Continuous().sample(key, log_ratio)


class DensityWithoutBias(Wrapped):
    def log_weight(self, inverse_temperature):
        return jnp.zeros_like(inverse_temperature)


class WithoutJacobian(Extended):
    def log_joint(self, control, log_base, log_ratio):
        beta = self.control_map(control)
        return log_base + tempered(beta, log_ratio) + self.law.log_weight(beta)


class WithoutKineticEnergy(tc.HMC):
    """HMC whose Metropolis test sees the potential energy alone."""

    def move(self, keys, density, step_size, scale, point):
        key_momentum, key_accept = jax.random.split(keys.own)
        momentum = jax.random.normal(key_momentum, density.position(point).shape)
        proposal, _ = leapfrog(density, step_size, scale, self.num_steps, point, momentum)
        gain = density.log_density(proposal) - density.log_density(point)
        accept = jnp.log(jax.random.uniform(key_accept)) < gain
        chosen = jax.tree.map(lambda new, old: jnp.where(accept, new, old), proposal, point)
        return chosen, Move(jnp.exp(jnp.minimum(gain, 0.0)), False, False, self.num_steps)


class WrongHalfKick(tc.HMC):
    """A leapfrog that begins with a whole kick, and whose every end is accepted."""

    def move(self, keys, density, step_size, scale, point):
        momentum = jax.random.normal(keys.own, density.position(point).shape)
        kicked = momentum + 0.5 * step_size * scale.multiply_transposed(density.gradient(point))
        proposal, _ = leapfrog(density, step_size, scale, self.num_steps, point, kicked)
        return proposal, Move(1.0, False, False, self.num_steps)


def test_gibbs_with_a_flipped_sign_of_r_is_caught(double):
    scores = invariance(ALONE, BIASED, 1.1, stepped_with=FlippedRatio(BIASED))
    assert scores.recorded < LIMIT  # x was still moved at its own beta
    assert scores.following > LIMIT


def test_gibbs_without_the_bias_is_caught_in_its_betas_and_in_its_weights(double):
    scores = invariance(ALONE, BIASED, 1.1, stepped_with=ConditionalWithoutBias(BIASED))
    assert scores.recorded < LIMIT
    assert scores.following > LIMIT
    assert scores.weights > LIMIT


def test_joint_without_the_bias_is_caught(double):
    assert invariance(tc.JointTempering(HMC), BIASED, 0.48, stepped_with=DensityWithoutBias(BIASED)).recorded > LIMIT


def test_joint_without_the_jacobian_is_caught(double, monkeypatch):
    monkeypatch.setattr("thermocline.methods.continuous.Extended", WithoutJacobian)
    assert invariance(tc.JointTempering(HMC), BIASED, 0.48).recorded > LIMIT


@pytest.mark.parametrize("mutant", [WithoutKineticEnergy, WrongHalfKick])
@pytest.mark.parametrize(("method", "step_size"), [(tc.GibbsTempering, 1.1), (tc.JointTempering, 0.48)])
def test_a_wrong_mover_is_caught(mutant, method, step_size, double):
    assert invariance(method(mutant(num_steps=3)), BIASED, step_size).recorded > LIMIT


def log_gaussian(x, data):
    return data["gaussian"].log_density(x) + data["constant"]


def swapped_runs(method):
    """log Z of a Gaussian times e^1.3 from another one, and of that one times e^-1.3 from the first."""
    first, second = (tc.Gaussian(mean, factor) for mean, factor in zip(MEANS, FACTORS, strict=True))
    for gaussian, base, constant in ((second, first, CONSTANT), (first, second, -CONSTANT)):
        target = tc.Target(log_gaussian, np.zeros(2), {"gaussian": gaussian, "constant": constant})
        yield tc.sample(
            target, base=base, method=method, seed=5, num_warmup=200, num_draws=500, progress=False, search=False
        )


@pytest.mark.parametrize("method", [tc.GibbsTempering(), tc.JointTempering()])
def test_swapping_base_and_target_flips_the_sign_of_log_evidence(method):
    forward, backward = (result.log_evidence for result in swapped_runs(method))
    assert 0 < max(forward.standard_error, backward.standard_error) < 0.1
    assert abs(forward.z_score(CONSTANT)) < 4
    assert abs(backward.z_score(-CONSTANT)) < 4
    assert abs(forward.value + backward.value) < 4 * np.hypot(forward.standard_error, backward.standard_error)
