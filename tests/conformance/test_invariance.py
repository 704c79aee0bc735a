"""From exact draws of a method's stationary law, one step leaves the law unchanged; mutants do not."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

import thermocline as tc
from thermocline.methods.gibbs import GibbsState
from thermocline.movers import Keys, Metric, Move, leapfrog
from thermocline.paths import Extended, ExtendedPoint, Path, control_at, tempered
from thermocline.precision import cast

NUM_DRAWS = 100_000
LIMIT = 4.5  # standard errors
LOG_ZETA = 0.4
CONSTANT = 1.3

MEANS = np.array([[-0.6, 0.4], [0.9, -0.3]])  # base, target
FACTORS = np.array([[[1.5, 0.0], [0.3, 1.0]], [[0.6, 0.0], [-0.35, 0.7]]])  # lower triangular, of the covariances
COVARIANCES = FACTORS @ FACTORS.transpose(0, 2, 1)
PRECISIONS = np.linalg.inv(COVARIANCES)

BIASED = tc.Continuous(np.array([0.0, -0.8, 0.5, 0.1, 1.2]), np.array([0.0, 0.07, 0.3, 0.8, 1.0]))
LADDER = tc.Ladder(np.array([0.0, 0.1, 0.35, 1.0]), np.array([0.2, -0.7, 0.5, 0.0]))
CONTROL = tc.Monotone(lambda u: norm.cdf(u / 1.5 - 0.3))


def log_target(x, data):
    centred = x - data["mean"]
    return CONSTANT - 0.5 * centred @ data["precision"] @ centred


def make_path():
    target = tc.Target(log_target, np.zeros(2), {"mean": MEANS[1], "precision": PRECISIONS[1]})
    return cast(Path(target, tc.Gaussian(MEANS[0], FACTORS[0]), LOG_ZETA), "float64")


def conditional(beta):
    """Precision, mean and log partition function (with zeta^-beta) of the Gaussian x | beta, a row for each beta."""
    share = np.stack([1 - beta, beta], axis=-1)
    precision = np.einsum("bk,kij->bij", share, PRECISIONS)
    force = np.einsum("bk,kij,kj->bi", share, PRECISIONS, MEANS)
    mean = np.linalg.solve(precision, force[..., None])[..., 0]
    square = share @ np.einsum("ki,kij,kj->k", MEANS, PRECISIONS, MEANS) - np.sum(force * mean, axis=-1)
    log_base_constant = 0.5 * np.linalg.slogdet(PRECISIONS[0])[1] - np.log(2 * np.pi)
    log_normaliser = np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(precision)[1]
    log_partition = (1 - beta) * log_base_constant + beta * (CONSTANT - LOG_ZETA) + log_normaliser - 0.5 * square
    return precision, mean, log_partition


def draw_betas(generator, law):
    """Exact draws of beta from its marginal, and the log of that marginal's normalising constant."""
    if law is None:
        return np.ones(NUM_DRAWS), 0.0
    betas = np.asarray(law.betas) if isinstance(law, tc.Ladder) else np.linspace(0, 1, 100_001)
    log_density = conditional(betas)[2] + np.asarray(jax.vmap(law.log_weight)(betas))
    if isinstance(law, tc.Ladder):
        mass = np.exp(log_density)
        return generator.choice(betas, NUM_DRAWS, p=mass / mass.sum()), np.log(mass.sum())
    density = np.exp(log_density)
    cumulative = np.append(0, np.cumsum(0.5 * (density[1:] + density[:-1]))) * betas[1]
    return np.interp(generator.uniform(size=NUM_DRAWS) * cumulative[-1], cumulative, betas), np.log(cumulative[-1])


def draw_positions(generator, beta):
    precision, mean, _ = conditional(beta)
    factor = np.linalg.cholesky(precision)
    white = generator.normal(size=(*mean.shape, 1))
    return mean + np.linalg.solve(factor.transpose(0, 2, 1), white)[..., 0]


def fixed_tuning(method, law, step_size):
    """A tuning no warm-up would find: uneven step sizes, a metric that is neither the base's nor the target's."""
    tuning = method.initial_tuning(jnp.asarray(FACTORS[0]), jnp.linspace(-1.0, 1.0, 64))
    steps = step_size * jnp.linspace(1.2, 0.8, tuning.step_size.size)
    basis = FACTORS[0] @ np.array([[0.8, -0.6], [0.6, 0.8]])
    metric = Metric(jnp.asarray(FACTORS[0]), jnp.asarray(basis), jnp.array([0.25, 0.5]))
    return tuning._replace(step_size=steps, metric=metric, law=cast(law, "float64"))


def observe(path, law, position, beta, log_ratio):
    """Functions of one state whose means must not change."""
    log_prior = 0.0 if law is None else law.log_weight(beta)
    energy = -path.log_base(position) - tempered(beta, log_ratio) - log_prior
    x, y = position
    return jnp.stack([x, y, x**2, y**2, x * y, beta, beta**2, log_ratio, log_ratio**2, energy, x * beta, y * beta,
                      x**2 * beta, log_ratio * beta, jnp.exp(-jnp.abs(x)), jnp.cos(3 * beta)])


def z_score(values, expected=0.0):
    """Largest distance of a column's mean from its expectation, in standard errors; a constant 0 is no distance."""
    error = values.std(axis=0) / np.sqrt(len(values))
    distance = np.abs(values.mean(axis=0) - expected)
    return float(np.max(np.where(distance > 0, distance / np.where(error > 0, error, 1e-300), 0.0)))


def state_at(method, point, beta):
    """The state of a chain at this point and beta."""
    if isinstance(method, tc.GibbsTempering):
        return GibbsState(point, beta)
    if isinstance(method, tc.JointTempering):
        return ExtendedPoint(point, control_at(method.control_map, beta))
    return point


def parts_of(method, state):
    """The point and the beta of a chain's state."""
    if isinstance(method, tc.GibbsTempering):
        return state
    if isinstance(method, tc.JointTempering):
        return state.point, method.control_map(state.control)
    return state, jnp.ones_like(state.log_ratio)


def invariance(method, law, step_size, *, stepped_with=None, seed=0):
    """z scores of the paired differences for the record and for the state, the weights and the acceptance.

    The draws are exact for `law`; the step may be taken with another one.
    """
    generator, path = np.random.default_rng(seed), make_path()
    tuning = fixed_tuning(method, stepped_with or law, step_size)
    beta, log_constant = draw_betas(generator, law)
    position = draw_positions(generator, beta)

    def one(key, position, beta):
        point = path.evaluate(position)
        state, draw = method.step(Keys(*jax.random.split(key)), path, tuning, state_at(method, point, beta))
        before = observe(path, law, position, beta, point.log_ratio)
        recorded = observe(path, law, draw.position, draw.inverse_temperature, draw.log_ratio)
        point, following = parts_of(method, state)
        after = observe(path, law, point.position, following, point.log_ratio)
        weights = jnp.exp(jnp.stack([draw.log_weight_target, draw.log_weight_base]))
        return recorded - before, after - before, weights, draw.acceptance

    keys = jax.random.split(jax.random.key(seed), NUM_DRAWS)
    step = jax.jit(jax.vmap(one), compiler_options={"xla_backend_optimization_level": 0})  # it runs once: compile fast
    recorded, following, weights, acceptance = map(np.asarray, step(keys, position, beta))
    ends = np.exp(conditional(np.array([1.0, 0.0]))[2] - log_constant)  # what w1 and w0 must be on average
    return z_score(recorded), z_score(following), weights, ends, acceptance.mean()


HMC, NUTS = tc.HMC(num_steps=3), tc.NUTS(max_doublings=3)
CASES = {
    "gibbs hmc": (tc.GibbsTempering(HMC), tc.Continuous(), 1.1),
    "gibbs hmc bias": (tc.GibbsTempering(HMC), BIASED, 1.1),
    "gibbs hmc ladder": (tc.GibbsTempering(HMC), LADDER, 1.1),
    "gibbs nuts bias": (tc.GibbsTempering(NUTS), BIASED, 1.1),
    "gibbs nuts ladder": (tc.GibbsTempering(NUTS), LADDER, 1.1),
    "joint hmc": (tc.JointTempering(HMC), tc.Continuous(), 0.6),
    "joint hmc bias": (tc.JointTempering(HMC), BIASED, 0.48),
    "joint hmc scale mass": (tc.JointTempering(HMC, control_map=tc.Logistic(2.5), mass=0.3), BIASED, 0.6),
    "joint hmc monotone": (tc.JointTempering(HMC, control_map=CONTROL), BIASED, 0.48),
    "joint nuts bias": (tc.JointTempering(NUTS), BIASED, 0.48),
    "untempered hmc": (tc.Untempered(HMC), None, 0.9),
}


@pytest.mark.parametrize("name", CASES)
def test_one_step_leaves_the_stationary_law_unchanged(name, double):
    method, law, step_size = CASES[name]
    recorded, following, weights, ends, acceptance = invariance(method, law, step_size)
    assert 0.6 < acceptance < 0.95  # the Metropolis test has work to do
    assert recorded < LIMIT
    assert following < LIMIT
    if law is not None:
        assert z_score(weights, ends) < LIMIT


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
    def _log_control(self, control, log_ratio):
        beta = self.control_map(control)
        return tempered(beta, log_ratio) + self.law.log_weight(beta)


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
    recorded, following, *_ = invariance(tc.GibbsTempering(HMC), BIASED, 1.1, stepped_with=FlippedRatio(BIASED))
    assert recorded < LIMIT  # x was still moved at its own beta
    assert following > LIMIT


def test_gibbs_without_the_bias_is_caught_in_its_betas_and_in_its_weights(double):
    mutant = ConditionalWithoutBias(BIASED)
    recorded, following, weights, ends, _ = invariance(tc.GibbsTempering(HMC), BIASED, 1.1, stepped_with=mutant)
    assert recorded < LIMIT
    assert following > LIMIT
    assert z_score(weights, ends) > LIMIT


def test_joint_without_the_bias_is_caught(double):
    assert invariance(tc.JointTempering(HMC), BIASED, 0.48, stepped_with=DensityWithoutBias(BIASED))[0] > LIMIT


def test_joint_without_the_jacobian_is_caught(double, monkeypatch):
    monkeypatch.setattr("thermocline.methods.joint.Extended", WithoutJacobian)
    assert invariance(tc.JointTempering(HMC), BIASED, 0.48)[0] > LIMIT


@pytest.mark.parametrize("mutant", [WithoutKineticEnergy, WrongHalfKick])
@pytest.mark.parametrize(("method", "step_size"), [(tc.GibbsTempering, 1.1), (tc.JointTempering, 0.48)])
def test_a_wrong_mover_is_caught(mutant, method, step_size, double):
    assert invariance(method(mutant(num_steps=3)), BIASED, step_size)[0] > LIMIT


def log_gaussian(x, data):
    return data["gaussian"].log_density(x) + data["constant"]


def swapped_runs(method):
    """log Z of a Gaussian times e^1.3 from another one, and of that one times e^-1.3 from the first."""
    first, second = (tc.Gaussian(mean, factor) for mean, factor in zip(MEANS, FACTORS, strict=True))
    for gaussian, base, constant in ((second, first, CONSTANT), (first, second, -CONSTANT)):
        target = tc.Target(log_gaussian, np.zeros(2), {"gaussian": gaussian, "constant": constant})
        yield tc.sample(target, base=base, method=method, seed=5, num_warmup=200, num_draws=500, progress=False)


@pytest.mark.parametrize("method", [tc.GibbsTempering(), tc.JointTempering()])
def test_swapping_base_and_target_flips_the_sign_of_log_evidence(method):
    forward, backward = (result.log_evidence for result in swapped_runs(method))
    assert 0 < max(forward.standard_error, backward.standard_error) < 0.1
    assert abs(forward.z_score(CONSTANT)) < 4
    assert abs(backward.z_score(-CONSTANT)) < 4
    assert abs(forward.value + backward.value) < 4 * np.hypot(forward.standard_error, backward.standard_error)
