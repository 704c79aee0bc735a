"""Where a base is thin its own draws say nothing: ascents lead there, and a component is put."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import thermocline as tc
from thermocline.auto.design import Designer
from thermocline.auto.thin import THIN, log_density_and_gradient, thin_places
from thermocline.engine.progress import reporter_for
from thermocline.evaluator import checked_evaluator
from thermocline.fits.student_mixture import StudentMixture
from thermocline.modes.find import Search
from thermocline.support.precision import computing_in

NUM_EXACT = 20_000


def banana(x: jax.Array) -> jax.Array:
    """Normalised; one arm is heavier than the other."""
    normal = jax.scipy.stats.norm.logpdf
    return normal(x[0], 1.0, 3.0) + normal(x[1], 0.3 * x[0] ** 2, 0.5)


def exact_share(mixture: StudentMixture) -> float:
    """One over the mean of target over mixture, over exact draws of the banana."""
    generator = np.random.default_rng(0)
    first = generator.normal(1.0, 3.0, NUM_EXACT)
    second = generator.normal(0.3 * first**2, 0.5)
    log_target = stats.norm.logpdf(first, 1.0, 3.0) + stats.norm.logpdf(second, 0.3 * first**2, 0.5)
    return float(1 / np.mean(np.exp(log_target - mixture.log_density_of_rows(np.stack([first, second], axis=1)))))


def designer(log_density, start: np.ndarray, seed: int) -> Designer:
    evaluate = checked_evaluator(tc.Target(log_density, start))
    search = Search(evaluate, np.random.default_rng(seed), reporter_for(False))
    search.first(start[None])
    return Designer(evaluate, np.random.default_rng([seed, 1]), search)


def test_gradient_is_that_of_the_density():
    generator = np.random.default_rng(3)
    roots = [np.tril(generator.normal(size=(3, 3))) + 2 * np.eye(3) for _ in range(2)]
    mixture = StudentMixture.of(generator.normal(size=(2, 3)), roots, 4.0, np.log([0.3, 0.7]))
    mixture = mixture._replace(degrees=np.array([4.0, np.inf]))
    rows, step = generator.normal(size=(5, 3)), 1e-6
    log_density, gradient = log_density_and_gradient(mixture, rows)
    assert np.allclose(log_density, mixture.log_density_of_rows(rows))
    for axis, unit in enumerate(np.eye(3)):
        ahead, behind = (mixture.log_density_of_rows(rows + sign * step * unit) for sign in (1, -1))
        assert np.allclose(gradient[:, axis], (ahead - behind) / (2 * step), atol=1e-7)


def test_places_are_where_the_ratio_is_large():
    """A Gaussian as wide as the base but for one direction: thin along that, both ways, and nowhere else."""
    wide = np.array([3.0, 1.0])
    with computing_in("float64"):
        target = tc.Target(lambda x: jnp.sum(jax.scipy.stats.norm.logpdf(x, 0.0, wide)), np.zeros(2))
        base = StudentMixture.of(np.zeros((1, 2)), [np.diag([1.0, 1.0])], 5.0, [0.0])
        starts = np.random.default_rng(0).normal(size=(32, 2)) * wide
        places = thin_places(checked_evaluator(target), base, starts, np.diag(wide), 0.0)
    assert {np.sign(place.location[0]) for place in places} == {-1.0, 1.0}
    for place in places:
        ratio = place.log_density - base.log_density_of_rows(place.location[None])[0]
        assert ratio > np.log(THIN)
        assert abs(place.location[1]) < 1


def test_a_covered_base_reaches_the_ends_of_the_arms():
    """By exact draws: before, far fewer draws count than the base's own draws say."""
    with computing_in("float64"):
        for seed in range(3):
            design = designer(banana, np.full(2, 0.1), seed)
            design.first()
            before = design.best
            design.cover()
            assert before.share > 5 * exact_share(before.mixture)
            assert exact_share(design.best.mixture) > 10 * exact_share(before.mixture)
            assert design.best.share < 1.5 * exact_share(design.best.mixture)  # and it says what is true


def test_a_base_that_fits_is_left_alone():
    with computing_in("float64"):
        scale = np.array([1e-3, 1.0, 40.0])
        log_density = lambda x: jnp.sum(jax.scipy.stats.norm.logpdf(x, 2.0, scale))  # noqa: E731
        design = designer(log_density, np.zeros(3), 0)
        design.first()
        before = design.best
        design.cover()
    assert design.best is before
