"""Exact draws of (x, beta) from the joint of a path, one step of a method from them, and what it changed.

Two paths, both asymmetric: between Gaussians, where x | beta is Gaussian, and between mixtures, by rejection.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import thermocline as tc
from thermocline.bases import Mixture
from thermocline.methods.continuous import GibbsState
from thermocline.movers import Keys, Metric, metric_of
from thermocline.paths import ExtendedPoint, Path, TemperatureSchedule, control_at, tempered
from thermocline.support.precision import cast

NUM_DRAWS = 100_000
NUM_PROPOSALS = 2**18  # at once, where draws are made by rejection
LOG_ZETA = 0.4
CONSTANT = 1.3

MEANS = np.array([[-0.6, 0.4], [0.9, -0.3]])  # base, target
FACTORS = np.array([[[1.5, 0.0], [0.3, 1.0]], [[0.6, 0.0], [-0.35, 0.7]]])  # lower triangular, of the covariances
PRECISIONS = np.linalg.inv(FACTORS @ FACTORS.transpose(0, 2, 1))

WEIGHTS = np.array([[0.35, 0.65], [0.7, 0.3]])  # of the components, of base and target
CENTRES = np.array([[[-1.6, 0.9], [1.3, -0.7]], [[-1.1, 0.5], [1.6, -1.2]]])
WIDTHS = np.array(
    [[[[1.0, 0.0], [0.5, 0.8]], [[0.9, 0.0], [-0.4, 1.1]]], [[[0.6, 0.0], [0.2, 0.5]], [[0.5, 0.0], [0.1, 0.6]]]]
)

BIASED = tc.Continuous(np.array([0.0, -0.8, 0.5, 0.1, 1.2]), np.array([0.0, 0.07, 0.3, 0.8, 1.0]))
LADDER = tc.Ladder(np.array([0.0, 0.1, 0.35, 1.0]), np.array([0.2, -0.7, 0.5, 0.0]))
NEIGHBOURS = tc.Neighbours(LADDER.betas, LADDER.log_weights)
RUNGS = np.array([0.0, 0.1, 0.35, 1.0])


class Setting(NamedTuple):
    """A path; exact draws of its joint under a law; what the weights' mean tells apart from zero if they are wrong."""

    make_path: Callable[[], Path]
    draw: Callable[[np.random.Generator, Any], tuple[np.ndarray, np.ndarray]]
    excess: Callable[[Any, np.ndarray], np.ndarray]


class Scores(NamedTuple):
    """Largest z scores of paired differences, for the record and for the state, and of the weights; acceptances."""

    recorded: float
    following: float
    weights: float
    acceptance: float
    jump_acceptance: float


def log_gaussian(x, data):
    centred = x - data["mean"]
    return CONSTANT - 0.5 * centred @ data["precision"] @ centred


def path_between_gaussians() -> Path:
    target = tc.Target(log_gaussian, np.zeros(2), {"mean": MEANS[1], "precision": PRECISIONS[1]})
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


def marginal_of_beta(law):
    """A grid of betas, or the rungs, the cumulative mass there, and its total."""
    is_ladder = isinstance(law, tc.Ladder)
    betas = np.asarray(law.betas) if is_ladder else np.linspace(0, 1, 100_001)
    density = np.exp(conditional(betas)[2] + np.asarray(jax.vmap(law.log_weight)(betas)))
    steps = density if is_ladder else np.append(0, 0.5 * (density[1:] + density[:-1]) * betas[1])
    return betas, np.cumsum(steps), steps.sum()


def draw_between_gaussians(generator, law):
    """Beta from its marginal, then x | beta."""
    beta = np.ones(NUM_DRAWS)
    if law is not None:
        betas, cumulative, total = marginal_of_beta(law)
        level = generator.uniform(size=NUM_DRAWS) * total
        is_ladder = isinstance(law, tc.Ladder)
        beta = betas[np.searchsorted(cumulative, level)] if is_ladder else np.interp(level, cumulative, betas)
    precision, mean, _ = conditional(beta)
    white = generator.normal(size=(*mean.shape, 1))
    return mean + np.linalg.solve(np.linalg.cholesky(precision).transpose(0, 2, 1), white)[..., 0], beta


def excess_between_gaussians(law, weights):
    """Both weights less their exact means, z(1)/zeta and z(0) over the joint's constant."""
    if law is None:
        return np.zeros((1, 1))
    return weights - np.exp(conditional(np.array([1.0, 0.0]))[2]) / marginal_of_beta(law)[2]


def mixture_of(end: int) -> Mixture:
    components = [tc.Gaussian(centre, width) for centre, width in zip(CENTRES[end], WIDTHS[end], strict=True)]
    return Mixture.of(components, np.log(WEIGHTS[end]))


def log_mixture(x, data):
    return data.log_density(x) + CONSTANT


def path_between_mixtures() -> Path:
    """Two modes at either end, of other masses, places and shapes: r is bounded, as the target's are the narrower."""
    return cast(Path(tc.Target(log_mixture, np.zeros(2), mixture_of(1)), mixture_of(0), LOG_ZETA), "float64")


def draw_between_mixtures(generator, law):
    """Rejection: x from the base, beta flat, kept with probability exp(beta r - f(beta)) over its maximum."""
    log_ratio, log_weight = jax.jit(jax.vmap(path_between_mixtures().log_ratio)), jax.jit(jax.vmap(law.log_weight))
    grid = np.stack(np.meshgrid(*[np.linspace(-5, 5, 501)] * 2), axis=-1).reshape(-1, 2)
    highest = float(log_ratio(grid).max()) + 0.01
    support = np.asarray(law.betas) if isinstance(law, tc.Ladder) else np.linspace(0, 1, 1001)
    bound = float(np.max(support * highest + np.asarray(log_weight(support)))) + 0.01
    kept = []
    while sum(map(len, kept)) < NUM_DRAWS:
        component = generator.choice(2, NUM_PROPOSALS, p=WEIGHTS[0])
        white = generator.normal(size=(NUM_PROPOSALS, 2, 1))
        position = CENTRES[0][component] + (WIDTHS[0][component] @ white)[..., 0]
        is_ladder = isinstance(law, tc.Ladder)
        beta = generator.choice(support, NUM_PROPOSALS) if is_ladder else generator.uniform(size=NUM_PROPOSALS)
        ratio = np.asarray(log_ratio(position))
        assert ratio.max() < highest
        accepted = np.log(generator.uniform(size=NUM_PROPOSALS)) < beta * ratio + np.asarray(log_weight(beta)) - bound
        kept.append(np.column_stack([position, beta])[accepted])
    drawn = np.concatenate(kept)[:NUM_DRAWS]
    return drawn[:, :2], drawn[:, 2]


def excess_between_mixtures(law, weights):
    """The weight for the target less that for the base times Z/zeta: what does not need the joint's constant."""
    return weights[:, :1] - np.exp(CONSTANT - LOG_ZETA) * weights[:, 1:]


GAUSSIANS = Setting(path_between_gaussians, draw_between_gaussians, excess_between_gaussians)
MIXTURES = Setting(path_between_mixtures, draw_between_mixtures, excess_between_mixtures)


def fixed_tuning(method, law_or_schedule, step_size):
    """A tuning no warm-up would find: uneven step sizes, a metric that is neither the base's nor the target's."""
    tuning = method.initial_tuning(metric_of(FACTORS[0]), np.linspace(-1.0, 1.0, 64))
    steps = step_size * jnp.linspace(1.2, 0.8, tuning.step_size.size)
    basis = FACTORS[0] @ np.array([[0.8, -0.6], [0.6, 0.8]])
    metric = Metric(jnp.asarray(FACTORS[0]), jnp.asarray(basis), jnp.array([0.25, 0.5]))
    slot = "schedule" if isinstance(law_or_schedule, TemperatureSchedule) else "law"
    return tuning._replace(step_size=steps, metric=metric, **{slot: cast(law_or_schedule, "float64")})


def observe(path, law, position, beta, log_ratio):
    """Functions of one state whose means must not change."""
    log_prior = 0.0 if law is None else law.log_weight(beta)
    energy = -path.log_base(position) - tempered(beta, log_ratio) - log_prior
    x, y = position
    alone = [x, y, x**2, y**2, x * y, beta, beta**2, log_ratio, log_ratio**2, energy]
    together = [x * beta, y * beta, x**2 * beta, log_ratio * beta, jnp.exp(-jnp.abs(x)), jnp.cos(3 * beta)]
    return jnp.stack([*alone, *together])


def z_score(values):
    """Largest distance of a column's mean from zero, in standard errors; a constant 0 is no distance."""
    error = values.std(axis=0) / np.sqrt(len(values))
    distance = np.abs(values.mean(axis=0))
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


def invariance(method, law, step_size, *, setting=GAUSSIANS, stepped_with=None, seed=0) -> Scores:
    """One step from exact draws for `law`; it may be taken with another law, which must then be noticed."""
    generator, path = np.random.default_rng(seed), setting.make_path()
    tuning = fixed_tuning(method, stepped_with or law, step_size)
    position, beta = setting.draw(generator, law)

    def one(key, position, beta):
        point = path.evaluate(position)
        state, draw = method.step(Keys(*jax.random.split(key)), path, tuning, state_at(method, point, beta))
        before = observe(path, law, position, beta, point.log_ratio)
        recorded = observe(path, law, draw.position, draw.inverse_temperature, draw.log_ratio)
        point, following = parts_of(method, state)
        after = observe(path, law, point.position, following, point.log_ratio)
        weights = jnp.exp(jnp.stack([draw.log_weight_target, draw.log_weight_base]))
        return recorded - before, after - before, weights, draw.acceptance, draw.jump_acceptance

    keys = jax.random.split(jax.random.key(seed), NUM_DRAWS)
    step = jax.jit(jax.vmap(one), compiler_options={"xla_backend_optimization_level": 0})  # it runs once: compile fast
    recorded, following, weights, acceptance, jumped = map(np.asarray, step(keys, position, beta))
    excess = z_score(setting.excess(law, weights))
    return Scores(z_score(recorded), z_score(following), excess, float(acceptance.mean()), float(jumped.mean()))
