"""Generated targets: their evidences found a second way, their exact draws, their maps and their seeds."""

from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

from studies.targets import FAMILIES, AffineMap, Modes, generate, log_volume_spread, mapped, random_map, seeds_of_commit
from thermocline.evaluator import Evaluator

SEEDS = range(3)
NUM_DRAWS = 4096
FINEST = 0.06  # the standard error of log Z that importance sampling must reach to count as a check
MOST_SIGMAS = 4.5  # of the largest of up to 120 identities
CASES = [(family, seed) for family in FAMILIES for seed in SEEDS]


def values_of(generated, rows):
    return Evaluator(generated.target).values(rows)


def by_importance(generated, canonical_rows, log_proposal):
    """Log Z and its standard error, from draws and log densities in canonical coordinates."""
    log_jacobian = generated.map.log_determinant
    log_weight = values_of(generated, generated.map.forward(canonical_rows)) + log_jacobian - log_proposal
    weight = np.exp(log_weight - log_weight.max())
    error = weight.std() / weight.mean() / np.sqrt(weight.size)
    assert error < FINEST, error
    return np.log(weight.mean()) + log_weight.max(), error


def by_wider_components(generated, freedom):
    """Student's t about every mode that the record names, and one about all draws for what it does not name."""
    generator, modes = np.random.default_rng(7), generated.modes
    centres, factors = generated.map.backward(modes.centres), np.linalg.inv(modes.whiteners @ generated.map.matrix)
    cloud = generated.map.backward(generated.exact_draws(generator, 2000))
    centres = np.concatenate([centres, cloud.mean(axis=0)[None]])
    factors = np.concatenate([1.05 * factors, np.linalg.cholesky(np.atleast_2d(np.cov(cloud.T)))[None]])
    component = np.arange(NUM_DRAWS) % len(centres)
    noise = generator.normal(size=(NUM_DRAWS, generated.dimension))
    noise /= np.sqrt(generator.chisquare(freedom, NUM_DRAWS) / freedom)[:, None]
    rows = centres[component] + np.einsum("nij,nj->ni", factors[component], noise)
    log_parts = [
        stats.multivariate_t.logpdf(rows, centre, factor @ factor.T, freedom)
        for centre, factor in zip(centres, factors, strict=True)
    ]
    return by_importance(
        generated, rows, logsumexp(np.reshape(log_parts, (len(centres), -1)), 0) - np.log(len(centres))
    )


def margin_grids(generated):
    """Nodes and log weights of a rule on each canonical axis: Gauss's between edges, else the sinh rule."""
    if generated.family == "bounded":
        nodes, weights = np.polynomial.legendre.leggauss(256)
        lower = np.maximum(generated.target.data["own"]["lower"], -12.0)
        upper = np.minimum(generated.target.data["own"]["upper"], 40.0)
        upper = np.where(generated.target.data["own"]["laws"] == 0, np.minimum(upper, 12.0), upper)
        half = (upper - lower)[:, None] / 2
        return (upper + lower)[:, None] / 2 + half * nodes, np.log(half * weights)
    nodes = np.linspace(-12, 12, 2049)[:-1]
    scales = generated.target.data["own"]["scales"][:, None]
    return scales * np.sinh(nodes), np.log(scales * np.cosh(nodes) * (nodes[1] - nodes[0]))


def margins(generated):
    """Log densities along each canonical axis through a point inside, relative to it; and the value there."""
    nodes, log_weights = margin_grids(generated)
    inside = generated.map.backward(generated.exact_draws(np.random.default_rng(3), 1))[0]
    rows = np.broadcast_to(inside, (*nodes.shape, nodes.shape[0])).copy()
    for axis in range(len(nodes)):
        rows[axis, :, axis] = nodes[axis]
    middle = float(values_of(generated, generated.map.forward(inside[None]))[0])
    return nodes, values_of(generated, generated.map.forward(rows)) - middle + log_weights, middle


def by_margins(generated):
    """Where log densities are sums over canonical coordinates, the integral is a product."""
    _, log_cells, middle = margins(generated)
    log_evidence = middle + float(np.sum(logsumexp(log_cells, axis=1))) + generated.map.log_determinant
    return log_evidence, 1e-5 * generated.dimension  # the rule's own, at Laplace's edge


def by_wider_funnel(generated):
    own, generator = generated.target.data["own"], np.random.default_rng(2)
    log_variance = 1.2 * own["spread"] * generator.normal(size=NUM_DRAWS)
    scales = 1.1 * own["units"] * np.exp(0.5 * own["slopes"] * log_variance[:, None])
    others = scales * generator.normal(size=scales.shape)
    log_proposal = stats.norm.logpdf(log_variance, 0, 1.2 * own["spread"]) + stats.norm.logpdf(others, 0, scales).sum(1)
    return by_importance(generated, np.column_stack([log_variance, others]), log_proposal)


def by_wider_banana(generated):
    own, generator = generated.target.data["own"], np.random.default_rng(2)
    straight = 1.08 * own["scales"] * generator.normal(size=(NUM_DRAWS, generated.dimension))
    rows = straight.copy()
    for index, (bend, middle) in enumerate(zip(own["bends"], own["middles"], strict=True)):
        rows[:, 2 * index + 1] += bend * (straight[:, 2 * index] - middle) ** 2
    return by_importance(generated, rows, stats.norm.logpdf(straight, 0, 1.08 * own["scales"]).sum(axis=1))


def by_a_ray(generated):
    """The integral over radii along one random ray; as many random directions at one radius say it is round."""
    generator, dimension = np.random.default_rng(2), generated.dimension
    directions = generator.normal(size=(256, dimension))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    assert np.ptp(values_of(generated, generated.map.forward(3.0 * directions))) < 1e-6
    radii = (np.arange(4096) + 0.5) * 15 / 4096
    log_density = values_of(generated, generated.map.forward(radii[:, None] * directions[0]))
    log_area = np.log(dimension) + 0.5 * dimension * np.log(np.pi) - gammaln(0.5 * dimension + 1)
    log_integral = logsumexp(log_density + (dimension - 1) * np.log(radii)) + np.log(radii[1] - radii[0])
    return log_integral + log_area + generated.map.log_determinant, 1e-5


def by_the_law_of_data(generated):
    """What was observed is Gaussian, or Student's t, with a covariance of its own."""
    own = generated.target.data["own"]
    explained = (own["covariates"] * own["prior"] ** 2) @ own["covariates"].T
    around = float(generated.target.data["constant"]) + generated.map.log_determinant
    if "noise" in own:
        covariance = explained + own["noise"] ** 2 * np.eye(len(own["y"]))
        return stats.multivariate_normal.logpdf(own["y"], np.zeros(len(own["y"])), covariance) + around, 1e-7
    shape: Any = own["rate"] / own["shape"] * (explained + np.eye(len(own["y"])))
    return stats.multivariate_t.logpdf(own["y"], np.zeros(len(own["y"])), shape, 2 * own["shape"]) + around, 1e-7


SECOND_WAY = {
    "gaussian mixture": lambda generated: by_wider_components(generated, 10.0),
    "t mixture": lambda generated: by_wider_components(generated, 3.0),
    "skewed product": by_margins,
    "heavy-tailed product": by_margins,
    "bounded": by_margins,
    "funnel": by_wider_funnel,
    "banana and ring": lambda generated: (by_a_ray if generated.modes is None else by_wider_banana)(generated),
    "spike and slab": lambda generated: by_wider_components(generated, 3.0),
    "regression": by_the_law_of_data,
    "label switching": lambda generated: by_wider_components(generated, 3.0),
}


@pytest.mark.parametrize(("family", "seed"), CASES)
def test_log_evidence_a_second_way(family, seed):
    generated = generate(family, seed)
    estimate, error = SECOND_WAY[family](generated)
    assert abs(estimate - generated.log_evidence) < 4 * error


@pytest.mark.parametrize("seed", SEEDS)
def test_regressions_are_their_evidence_times_their_posterior(seed):
    """So the density that is sampled, and not only the model of the data, has this evidence."""
    generated = generate("regression", seed)
    estimate, error = by_wider_components(generated, 10.0)
    assert abs(estimate - generated.log_evidence) < 4 * error


@pytest.mark.parametrize(("family", "seed"), [case for case in CASES if case[0] != "bounded"])
def test_exact_draws_obey_steins_identities(family, seed):
    """The mean slope is 0 and that of (u - c) times the slope -1 on every canonical axis, under the law itself only."""
    generated = generate(family, seed)
    rows = generated.exact_draws(np.random.default_rng(11), NUM_DRAWS)
    slopes = Evaluator(generated.target)(rows)[1] @ generated.map.matrix
    offsets = generated.map.backward(rows)
    offsets -= np.median(offsets, axis=0)
    identities = np.concatenate([slopes, offsets * slopes + 1], axis=1)
    sigmas = identities.mean(axis=0) / identities.std(axis=0) * np.sqrt(NUM_DRAWS)
    assert np.max(np.abs(sigmas)) < MOST_SIGMAS


@pytest.mark.parametrize("seed", SEEDS)
def test_bounded_draws_have_their_margins(seed):
    generated = generate("bounded", seed)
    nodes, log_cells, _ = margins(generated)
    draws = generated.map.backward(generated.exact_draws(np.random.default_rng(5), 1000))
    assert np.all(np.isfinite(values_of(generated, generated.map.forward(draws))))
    for axis, cells in enumerate(np.exp(log_cells)):
        cumulative = np.cumsum(cells) / cells.sum() - 0.5 * cells / cells.sum()
        fit = stats.kstest(np.interp(draws[:, axis], nodes[axis], cumulative), "uniform")
        assert fit.pvalue > 1e-4, axis


@pytest.mark.parametrize("family", ["gaussian mixture", "t mixture", "spike and slab"])
def test_shares_of_draws_are_the_masses(family):
    """The mean chance that a draw is of a component is that component's mass, also where components overlap."""
    for seed in SEEDS:
        generated = generate(family, seed)
        modes, own = generated.modes, generated.target.data["own"]
        rows = generated.map.backward(generated.exact_draws(np.random.default_rng(6), NUM_DRAWS))
        log_parts = []
        for mean, whitener, log_height in zip(own["means"], own["whiteners"], own["log_heights"], strict=True):
            squared = np.sum(((rows - mean) @ whitener.T) ** 2, axis=1)
            index = len(log_parts)
            if "degrees_of_freedom" in own:
                freedom = own["degrees_of_freedom"][index]
                squared = (freedom + generated.dimension) * np.log1p(squared / freedom)
            log_parts.append(log_height - 0.5 * squared)
        chances = np.exp(np.array(log_parts) - logsumexp(log_parts, axis=0))[: len(modes.centres)]
        error = chances.std(axis=1) / np.sqrt(NUM_DRAWS) + 1e-9
        assert np.all(np.abs(chances.mean(axis=1) - np.exp(modes.log_masses)) < 4.5 * error)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_seed_one_target(family):
    first, again, other = generate(family, 5), generate(family, 5), generate(family, 6)
    assert first.log_evidence == again.log_evidence != other.log_evidence
    for one, two in zip(jax.tree.leaves(first.target), jax.tree.leaves(again.target), strict=True):
        assert np.array_equal(one, two)
    assert first.target.log_density in {generate(family, seed).target.log_density for seed in range(7, 17)}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_map_changes_the_log_evidence_by_its_log_determinant(family):
    generator = np.random.default_rng(8)
    core = FAMILIES[family](generator)
    dimension = len(core.start)
    plain = mapped(core, AffineMap(np.eye(dimension), np.zeros(dimension)), 0.0)
    moved = mapped(core, random_map(generator, dimension), 3.0)
    assert plain.log_evidence == core.log_evidence
    expected = np.linalg.slogdet(moved.map.matrix)[1] + 3.0
    assert abs(moved.log_evidence - plain.log_evidence - expected) < 1e-9
    draws = core.exact_draws(generator, 64)
    shift = values_of(moved, moved.map.forward(draws)) - values_of(plain, draws)
    assert np.allclose(shift, 3.0, atol=1e-5)
    assert abs(moved.log_volume_spread - plain.log_volume_spread) < 1e-6


def test_starts_are_finite_and_no_mode():
    for family, seed in CASES:
        generated = generate(family, seed)
        rows = np.tile(generated.target.initial_position, (256, 1))  # the width that is compiled already
        value, slope = Evaluator(generated.target)(rows)
        assert np.all(np.isfinite(value)), family
        assert np.all(np.isfinite(slope)), family
        assert np.max(np.abs(slope @ generated.map.matrix)) > 1e-3 or family == "bounded", family


def test_no_draw_is_higher_than_the_one_mode_of_a_family_with_one():
    for family, seed in CASES:
        generated = generate(family, seed)
        if generated.modes is None or len(generated.modes.centres) > 1:
            continue
        heights = values_of(generated, generated.exact_draws(np.random.default_rng(4), 256))
        peaks = values_of(generated, np.repeat(generated.modes.centres, 256, axis=0))
        assert np.isfinite(peaks[0]), family
        assert heights.max() <= peaks[0] + 1e-9, family


def test_log_volume_spread_is_that_of_the_modes_that_matter():
    whiteners = np.array([1.0, 0.1, 1e-4])[:, None, None] * np.eye(2)
    log_volumes = np.log(2 * np.pi) - np.linalg.slogdet(whiteners)[1]
    modes = Modes(np.zeros((3, 2)), np.log([0.9, 0.095, 0.005]), log_volumes, whiteners)
    assert abs(log_volume_spread(modes) - 2 * np.log(10)) < 1e-9
    assert log_volume_spread(None) == 0
    for seed in range(50):
        generated = generate("gaussian mixture", seed)
        own = generated.target.data["own"]
        heavy = own["whiteners"][: len(generated.modes.centres)]
        assert abs(generated.log_volume_spread - np.ptp(np.linalg.slogdet(heavy)[1])) < 1e-6
        assert generated.log_volume_spread <= 16


def test_maps_stay_within_their_condition_and_units():
    for seed in range(200):
        affine = random_map(np.random.default_rng(seed), 1 + seed % 20)
        scales = np.linalg.svd(affine.matrix, compute_uv=False)
        assert scales[0] / scales[-1] <= 1.001e3
        assert scales[0] * 10**1.5 >= 1e-3
        assert scales[-1] <= 1e3 * 10**1.5


def test_the_modes_of_label_switching_are_the_orders_of_one():
    generated = generate("label switching", 1)
    heights = values_of(generated, generated.modes.centres)
    assert len(heights) == 6
    assert np.ptp(heights) < 1e-6
    assert abs(np.exp(generated.modes.log_masses).sum() - 1) < 1e-12


def test_seeds_of_a_commit_are_its_own_and_unseen():
    seeds = seeds_of_commit("53d1c59", 100)
    assert seeds == seeds_of_commit("53d1c59", 100)
    assert len(set(seeds)) == 100
    assert min(seeds) >= 1000
    assert not set(seeds) & set(seeds_of_commit("53d1c58", 100))
    with pytest.raises(ValueError, match="choose one of"):
        generate("cauchy", 0)
