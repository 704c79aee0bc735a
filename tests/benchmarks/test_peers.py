"""The problems that peers are compared on: their evidences, priors and modes; and the bridge beside NUTS."""

import jax
import numpy as np
import pytest

from benchmarks.peers.bridge import bridge
from benchmarks.peers.problems import PROBLEMS
from benchmarks.peers.record import NUMPY, jax_library

NUM_DRAWS = 40_000


def gaussian_within(rows):
    """A Gaussian about the median of draws, narrower than they are: its root, and its log density."""
    middle, quartiles = np.median(rows, axis=0), np.quantile(rows, [0.25, 0.75], axis=0)
    correlation, widths = np.corrcoef(rows.T), (quartiles[1] - quartiles[0]) / 1.349
    root = np.linalg.cholesky(correlation * np.outer(widths, widths)) * (0.6 if len(middle) < 20 else 0.95)

    def log_density(points):
        white = np.linalg.solve(root, (points - middle).T)
        constant = np.log(np.diag(root)).sum() + len(middle) / 2 * np.log(2 * np.pi)
        return -0.5 * np.sum(white**2, axis=0) - constant

    return middle, root, log_density


@pytest.mark.parametrize("name", [name for name in PROBLEMS if not name.startswith(("ring", "von Mises"))])
def test_evidence_by_the_reciprocal_of_exact_draws(name):
    """E[g(x)/f(x)] under the target is ∫g / Z, for a g inside the heaviest mode."""
    problem, generator = PROBLEMS[name](), np.random.default_rng(0)
    rows = problem.draws(generator, NUM_DRAWS)
    label = problem.label(rows)
    heaviest = np.argmax(np.bincount(label))
    fitted, kept = rows[: NUM_DRAWS // 2], rows[NUM_DRAWS // 2 :]
    middle, root, log_gaussian = gaussian_within(fitted[label[: NUM_DRAWS // 2] == heaviest])
    ratio = np.exp(log_gaussian(kept) - problem.log_density(kept, NUMPY) + problem.log_evidence())
    ratio[label[NUM_DRAWS // 2 :] != heaviest] = 0.0
    inside = problem.label(middle + generator.normal(size=kept.shape) @ root.T) == heaviest
    error = np.hypot(ratio.std(), inside.std()) / np.sqrt(len(kept))
    assert abs(ratio.mean() - inside.mean()) < 4 * error


@pytest.mark.parametrize("name", ["asymmetric 2-D", "ring 3-D", "von Mises 5-D", "Poisson mixture 5-D"])
def test_evidence_by_draws_of_the_prior(name):
    problem = PROBLEMS[name]()
    unit = np.random.default_rng(1).uniform(size=(100_000, problem.dimension))
    rows = problem.prior.inverse(unit, NUMPY)
    ratio = np.exp(problem.log_likelihood(rows, NUMPY) - problem.log_evidence())
    assert abs(ratio.mean() - 1) < 4 * ratio.std() / np.sqrt(len(rows))


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_density_of_a_prior_is_that_of_its_map(name):
    """Each coordinate hangs on its own unit variable, or on the last's too: the Jacobian is that of its diagonal."""
    problem = PROBLEMS[name]()
    unit, step = np.random.default_rng(2).uniform(0.05, 0.95, (20, problem.dimension)), 1e-6
    log_jacobian = np.zeros(len(unit))
    for i in range(problem.dimension):
        shift = step * np.eye(problem.dimension)[i]
        rise = problem.prior.inverse(unit + shift, NUMPY) - problem.prior.inverse(unit - shift, NUMPY)
        log_jacobian += np.log(np.abs(rise[:, i]) / (2 * step))
    assert np.allclose(problem.prior.log_density(problem.prior.inverse(unit, NUMPY), NUMPY), -log_jacobian, atol=1e-5)


@pytest.mark.long
@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", PROBLEMS)
def test_numpy_and_jax_agree(name):
    problem, library = PROBLEMS[name](), jax_library()
    rows = problem.draws(np.random.default_rng(3), 50)
    values, gradients = jax.vmap(jax.value_and_grad(lambda x: problem.log_likelihood(x, library)))(rows)
    assert np.allclose(values, problem.log_likelihood(rows, NUMPY))
    assert np.isfinite(gradients).all()
    unit = np.random.default_rng(4).uniform(size=rows.shape)
    assert np.allclose(problem.prior.inverse(unit, library), problem.prior.inverse(unit, NUMPY))


@pytest.mark.parametrize(("name", "least"), [("Poisson mixture 5-D", 6), ("von Mises 5-D", 243), ("asymmetric 2-D", 3)])
def test_exact_draws_find_all_modes(name, least):
    problem = PROBLEMS[name]()
    exact = problem.shares(problem.draws(np.random.default_rng(5), 100_000))
    assert problem.num_modes == least == np.sum(exact > 0)
    draws = problem.draws(np.random.default_rng(6), 20_000)
    assert problem.found(draws, exact) == least
    assert problem.found(draws[problem.label(draws) > 0], exact) == least - 1


def test_names_of_components_are_alike():
    problem = PROBLEMS["Poisson mixture 5-D"]()
    shares = problem.shares(problem.draws(np.random.default_rng(7), NUM_DRAWS))
    assert np.all(np.abs(shares - 1 / 6) < 4 * np.sqrt(1 / 6 * 5 / 6 / NUM_DRAWS))


def test_a_bridge_finds_the_constant_of_a_gaussian():
    generator, constant = np.random.default_rng(8), 3.7
    errors, offs = [], []
    for _ in range(20):
        draws = generator.normal(size=(4, 500, 3)) * [0.1, 1.0, 10.0]

        def density(rows):
            return constant - 0.5 * np.sum((rows / [0.1, 1.0, 10.0]) ** 2, axis=-1) - 1.5 * np.log(2 * np.pi)

        found = bridge(draws, density(draws), density, generator)
        offs.append(found.log_evidence - constant)
        errors.append(found.error)
    assert abs(np.mean(offs)) < 4 * np.std(offs) / np.sqrt(20)
    assert 0.4 < np.std(offs) / np.mean(errors) < 1.8  # twenty seeds tell a deviation to a sixth
