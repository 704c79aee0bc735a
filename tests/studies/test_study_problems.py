"""The truths of the study, each found a second way: quadrature, importance sampling, closed forms."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import gammaln, logit, logsumexp

from studies import study_problems as problems
from studies.study_problems import HARD, STUDY

pytestmark = pytest.mark.usefixtures("double")

NUM_DRAWS = 40_000
FINEST = 0.02  # the standard error of log Z that importance sampling must reach to count as a check


def evaluate(problem, position):
    """The log density and the problem's function at many positions."""
    shown = (lambda x: x) if problem.target.constrain is None else problem.target.constrain
    both = jax.jit(jax.vmap(lambda x: (problem.target(x), problem.function(shown(x)))))
    return tuple(np.asarray(values, float) for values in both(position))


def check_by_importance(problem, position, log_proposal):
    """The log evidence and the expectation within four standard errors of a self-normalised estimate."""
    log_density, values = evaluate(problem, position)
    log_weight = log_density - log_proposal
    weight = np.exp(log_weight - log_weight.max())
    mean, size = weight.mean(), weight.size
    error = weight.std() / mean / np.sqrt(size)
    assert error < FINEST, error
    assert abs(np.log(mean) + log_weight.max() - problem.log_evidence) < 4 * error + 1e-6
    expectation = np.sum(weight * values) / weight.sum()
    spread = np.sqrt(np.mean((weight * (values - expectation)) ** 2)) / mean / np.sqrt(size)
    assert spread > 0
    assert abs(expectation - problem.mean) < 4 * spread


def check_by_grid(problem, first, second, *, tolerance):
    """The same by the trapezoidal rule in two dimensions; the expectation to the width of a cell."""
    grid = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2)
    log_density, values = evaluate(problem, grid)
    log_cell = np.log((first[1] - first[0]) * (second[1] - second[0]))
    assert abs(logsumexp(log_density) + log_cell - problem.log_evidence) < tolerance
    assert abs(np.exp(log_density - logsumexp(log_density)) @ values - problem.mean) < 1e-3


def test_every_start_is_finite_and_no_mode():
    targets = {name: make().target for name, make in (STUDY | HARD).items()}
    at_start = jax.jit(lambda: {name: jax.value_and_grad(t)(t.initial_position) for name, t in targets.items()})()
    for name, (value, gradient) in at_start.items():
        slopes = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(gradient)])
        assert np.isfinite(value), name
        assert np.all(np.isfinite(slopes)), name
        assert np.max(np.abs(slopes)) > 1e-3, name


@pytest.mark.parametrize("dimension", [2, 5, 10])
def test_shells_by_the_radius_and_by_draws_on_them(dimension):
    problem = STUDY[f"shells {dimension}-D"]()
    log_area = np.log(2) + dimension / 2 * np.log(np.pi) - gammaln(dimension / 2)
    radius, _ = integrate.quad(lambda r: stats.norm.pdf(r, 2, 0.1) * r ** (dimension - 1), 1, 3, epsabs=1e-12)
    assert abs(np.log(2 * radius) + log_area - dimension * np.log(12) - problem.log_evidence) < 2e-6

    generator = np.random.default_rng(dimension)
    distance = generator.normal(2, 0.11, NUM_DRAWS)
    centre = np.zeros((NUM_DRAWS, dimension))
    centre[:, 0] = generator.choice([-3.5, 3.5], NUM_DRAWS)
    inside = centre + distance[:, None] * problems.random_directions(generator, NUM_DRAWS, dimension)
    keep = np.all(np.abs(inside) < 6, axis=1)  # none beyond the box: the proposal's mass there is 1e-6
    unit = (inside[keep] + 6) / 12
    offset = np.stack([inside[keep], inside[keep]])
    offset[:, :, 0] += np.array([[3.5], [-3.5]])
    radii = np.linalg.norm(offset, axis=-1)
    log_shells = stats.norm.logpdf(radii, 2, 0.11) - (dimension - 1) * np.log(radii) - log_area
    log_jacobian = dimension * np.log(12) + np.sum(np.log(unit) + np.log1p(-unit), axis=1)
    check_by_importance(problem, logit(unit), logsumexp(log_shells, axis=0) - np.log(2) + log_jacobian)


def test_eggbox_by_quadrature_in_the_box():
    """The Jacobian of the logistic map is the only difference between the two integrals."""
    problem = STUDY["eggbox"]()
    unit = (np.arange(1000) + 0.5) / 1000
    grid = np.stack(np.meshgrid(unit, unit, indexing="ij"), axis=-1).reshape(-1, 2)
    log_density, values = evaluate(problem, logit(grid))
    log_likelihood = log_density - np.sum(np.log(grid) + np.log1p(-grid), axis=1)
    assert abs(logsumexp(log_likelihood) - np.log(len(grid)) - problem.log_evidence) < 1e-6
    assert abs(np.exp(log_likelihood - logsumexp(log_likelihood)) @ values - problem.mean) < 1e-6
    x = np.array([1.3, 20.0])
    expected = (2 + np.cos(x[0] / 2) * np.cos(x[1] / 2)) ** 5
    fraction = x / (10 * np.pi)
    jacobian = np.sum(np.log(fraction) + np.log1p(-fraction))
    assert abs(float(problem.target(jnp.asarray(logit(fraction)))) - expected - jacobian) < 1e-9


@pytest.mark.parametrize("name", [name for name in STUDY if name.split()[0] in ("two", "five")])
def test_mixtures_by_importance_from_wider_components(name):
    problem = STUDY[name]()
    data = problem.target.data
    number, dimension = data["means"].shape
    generator, stretch = np.random.default_rng(1), 1.15
    component = generator.integers(number, size=NUM_DRAWS)
    scales = np.linalg.inv(data["whiteners"])
    noise = stretch * generator.normal(size=(NUM_DRAWS, dimension))
    draws = data["means"][component] + np.einsum("nij,nj->ni", scales[component], noise)
    log_parts = [
        stats.multivariate_normal.logpdf(draws, mean, stretch**2 * scale @ scale.T)
        for mean, scale in zip(data["means"], scales, strict=True)
    ]
    check_by_importance(problem, draws, logsumexp(log_parts, axis=0) - np.log(number))


def test_the_two_components_are_those_of_the_issue():
    data = STUDY["two 20-D"]().target.data
    assert np.allclose(np.linalg.norm(data["means"], axis=1), 6)
    assert np.allclose(data["means"][0], -data["means"][1])
    assert np.allclose(data["whiteners"], [np.eye(20), 2 * np.eye(20)])
    heights = data["log_heights"] - 37.2 + 10 * np.log(2 * np.pi) - np.array([0, 20 * np.log(2)])
    assert np.allclose(np.exp(heights), [0.8, 0.2])


@pytest.mark.parametrize("dimension", [2, 10, 20])
def test_the_five_components_are_apart_and_of_different_shape(dimension):
    data = STUDY[f"five {dimension}-D"]().target.data
    roots = np.linalg.inv(data["whiteners"])
    covariances = roots @ roots.transpose(0, 2, 1)
    assert problems.smallest_gap(data["means"], covariances) >= problems.SEPARATION
    volumes = np.linalg.slogdet(covariances)[1] / dimension / 2
    assert np.min(np.abs(np.diff(np.sort(volumes)))) > 0.05
    correlations = covariances / np.sqrt(np.einsum("kii,kjj->kij", covariances, covariances))
    assert np.sum(np.max(np.abs(correlations - np.eye(dimension)), axis=(1, 2)) > 0.1) == 3


def test_beta_bernoulli_by_quadrature():
    problem = STUDY["beta-bernoulli"]()
    grid = np.linspace(-3, 3, 6001)
    log_density, values = evaluate(problem, grid)
    assert abs(logsumexp(log_density) + np.log(1e-3) - problem.log_evidence) < 1e-6
    assert abs(np.exp(log_density - logsumexp(log_density)) @ values - problem.mean) < 1e-9


def test_banana_by_quadrature():
    check_by_grid(STUDY["banana"](), np.linspace(-20, 22, 841), np.linspace(-4, 120, 1241), tolerance=1e-6)


def test_funnel_by_importance_from_a_wider_one():
    problem = STUDY["funnel"]()
    generator = np.random.default_rng(2)
    log_variance = generator.normal(0, 1.8, NUM_DRAWS)
    scale = 1.15 * np.exp(log_variance / 2)[:, None]
    others = scale * generator.normal(size=(NUM_DRAWS, 4))
    log_proposal = stats.norm.logpdf(log_variance, 0, 1.8) + stats.norm.logpdf(others, 0, scale).sum(axis=1)
    check_by_importance(problem, np.column_stack([log_variance, others]), log_proposal)


def test_hierarchy_by_the_dense_covariance():
    """The log evidence and the mean of log tau once more, by adaptive quadrature over tau itself."""
    effects, errors = problems.SCHOOLS["effects"], problems.SCHOOLS["errors"]

    def density(tau):
        covariance: Any = np.diag(errors**2 + tau**2) + 25.0
        log_likelihood = stats.multivariate_normal.logpdf(effects, np.zeros(8), covariance)
        return np.exp(log_likelihood + 30) * stats.halfcauchy.pdf(tau, scale=5)

    pieces = ((0, 1), (1, 10), (10, 100), (100, np.inf))
    mass = sum(integrate.quad(density, *piece, epsabs=1e-10)[0] for piece in pieces)
    moment = sum(integrate.quad(lambda tau: density(tau) * np.log(tau), *piece, epsabs=1e-10)[0] for piece in pieces)
    log_evidence, mean = problems.hierarchy_truth()
    assert abs(np.log(mass) - 30 - log_evidence) < 1e-6
    assert abs(moment / mass - mean) < 1e-6


def test_hierarchy_by_importance_from_its_prior():
    generator = np.random.default_rng(3)
    mu, offset = generator.normal(0, 5, NUM_DRAWS), generator.normal(size=(NUM_DRAWS, 8))
    tau = np.abs(5 * generator.standard_cauchy(NUM_DRAWS))
    log_prior = stats.norm.logpdf(mu, 0, 5) + stats.halfcauchy.logpdf(tau, scale=5) + np.log(tau)
    log_proposal = log_prior + stats.norm.logpdf(offset).sum(axis=1)
    position = {"mu": mu, "log_tau": np.log(tau), "offset": offset}
    check_by_importance(STUDY["hierarchical (non-centred)"](), position, log_proposal)
    theta = mu[:, None] + tau[:, None] * offset
    centred = {"mu": mu, "log_tau": np.log(tau), "theta": theta}
    check_by_importance(STUDY["hierarchical (centred)"](), centred, log_proposal - 8 * np.log(tau))


def test_the_centred_hierarchy_is_unbounded():
    target = STUDY["hierarchical (centred)"]().target
    log_tau = jnp.array([-5.0, -10.0, -50.0])
    heights = jax.jit(jax.vmap(lambda u: target({"mu": 5.0, "log_tau": u, "theta": jnp.full(8, 5.0)})))(log_tau)
    assert np.allclose(np.diff(heights) / np.diff(log_tau), 1 - 8)  # the prior of log tau, and eight groups


@pytest.mark.parametrize(
    ("name", "rarest", "likeliest"),
    [("needle 2-D", 1e-6, 1e-4), ("needle 10-D", 1e-6, 1e-4), ("needle 10-D, out of reach", 0.0, 1e-18)],
)
def test_needles_can_be_hit(name, rarest, likeliest):
    """The chance that a draw of the wide half lands where the needle is the higher of the two."""
    data = HARD[name]().target.data
    dimension, distance = data["means"].shape[1], np.linalg.norm(data["means"][1])
    scale = 1 / data["whiteners"][1, 0, 0]
    radius_squared = 2 * scale**2 * (dimension * np.log(1 / scale) + distance**2 / 2)
    assert rarest < stats.ncx2.cdf(radius_squared, dimension, distance**2) < likeliest


def test_an_unresolved_target_lies_between_two_floats():
    assert np.spacing(1e8) > 10 * 1e-9
