"""Base jumps leave the joint of x and beta unchanged, whatever the base and the law; mutants do not."""

import jax
import jax.numpy as jnp
import pytest
from jax.flatten_util import ravel_pytree

import thermocline as tc
from tests.conformance.exact import BIASED, GAUSSIANS, LADDER, MIXTURES, invariance
from thermocline.methods.continuous import GibbsState, jump

LIMIT = 4.5  # standard errors
HMC = tc.HMC(num_steps=3)
SETTINGS = {"gaussian": (GAUSSIANS, 1.1, 0.5), "mixture": (MIXTURES, 0.9, 0.45)}  # with step sizes, Gibbs and joint
GIBBS = {"continuous": tc.Continuous(), "bias": BIASED, "ladder": LADDER}
JOINT = {"continuous": tc.Continuous(), "bias": BIASED}


def assert_unchanged(scores):
    assert 0.6 < scores.acceptance < 0.97  # both Metropolis tests have work to do
    assert 0.2 < scores.jump_acceptance < 0.9
    assert scores.recorded < LIMIT
    assert scores.following < LIMIT
    assert scores.weights < LIMIT


@pytest.mark.parametrize("law", GIBBS)
@pytest.mark.parametrize("base", SETTINGS)
def test_gibbs_with_jumps_leaves_the_law_unchanged(base, law, double):
    setting, step_size, _ = SETTINGS[base]
    assert_unchanged(invariance(tc.GibbsTempering(HMC), GIBBS[law], step_size, setting=setting, seed=1))


@pytest.mark.parametrize("law", JOINT)
@pytest.mark.parametrize("base", SETTINGS)
def test_joint_with_jumps_leaves_the_law_unchanged(base, law, double):
    setting, _, step_size = SETTINGS[base]
    assert_unchanged(invariance(tc.JointTempering(HMC), JOINT[law], step_size, setting=setting, seed=1))


def test_without_jumps_there_is_no_acceptance_to_report(double):
    assert invariance(tc.GibbsTempering(HMC, jumps=False), BIASED, 1.1).jump_acceptance == 0


def jump_by(gain_of):
    """`jump` with another rule of acceptance: gain_of(law, new ratio, old ratio)."""

    def mutant(key, path, law, point):
        key_draw, key_accept = jax.random.split(key)
        proposal = path.evaluate(ravel_pytree(path.base.sample(key_draw))[0])
        gain = gain_of(law, proposal.log_ratio, point.log_ratio)
        accept = jnp.log(jax.random.uniform(key_accept)) < gain
        chosen = jax.tree.map(lambda new, old: jnp.where(accept, new, old), proposal, point)
        return chosen, accept, jnp.exp(jnp.minimum(gain, 0.0))

    return mutant


def by_mass(law, new, old):
    return law.log_mass(new) - law.log_mass(old)


def by_ratio(law, new, old):
    return new - old


def by_mass_without_bias(law, new, old):
    return tc.Continuous().log_mass(new) - tc.Continuous().log_mass(old)


def always(law, new, old):
    return jnp.zeros_like(new)


def test_a_copy_of_the_rule_passes_so_that_mutants_differ_in_it_alone(double, monkeypatch):
    monkeypatch.setattr("thermocline.methods.continuous.jump", jump_by(by_mass))
    assert_unchanged(invariance(tc.GibbsTempering(HMC), BIASED, 0.9, setting=MIXTURES, seed=2))


@pytest.mark.parametrize("rule", [by_ratio, by_mass_without_bias, always])
@pytest.mark.parametrize("method", ["gibbs", "joint"])
def test_a_wrong_rule_of_acceptance_is_caught(method, rule, double, monkeypatch):
    monkeypatch.setattr("thermocline.methods.continuous.jump", jump_by(rule))
    mutant, step_size = {"gibbs": (tc.GibbsTempering(HMC), 0.9), "joint": (tc.JointTempering(HMC), 0.45)}[method]
    scores = invariance(mutant, BIASED, step_size, setting=MIXTURES, seed=2)
    assert scores.recorded < LIMIT  # the move before the jump was right
    assert scores.following > LIMIT


class GibbsThatKeepsBeta(tc.GibbsTempering):
    """Jumps after beta was drawn for the point it leaves."""

    def step(self, keys, path, tuning, state):
        state, draw = tc.GibbsTempering(self.mover, self.law, jumps=False).step(keys, path, tuning, state)
        point, _, _ = jump(jax.random.fold_in(keys.own, 1), path, tuning.law, state.point)
        return GibbsState(point, state.inverse_temperature), draw


def jump_in_silence(key, path, law, point):
    """A jump that does not tell, so that the control variable stays."""
    point, _, probability = jump(key, path, law, point)
    return point, jnp.asarray(False), probability


@pytest.mark.parametrize("base", SETTINGS)
def test_gibbs_that_keeps_beta_over_a_jump_is_caught(base, double):
    setting, step_size, _ = SETTINGS[base]
    assert invariance(GibbsThatKeepsBeta(HMC), BIASED, step_size, setting=setting).following > LIMIT


@pytest.mark.parametrize("base", SETTINGS)
def test_joint_that_keeps_beta_over_a_jump_is_caught(base, double, monkeypatch):
    setting, _, step_size = SETTINGS[base]
    monkeypatch.setattr("thermocline.methods.continuous.jump", jump_in_silence)
    assert invariance(tc.JointTempering(HMC), BIASED, step_size, setting=setting).following > LIMIT
