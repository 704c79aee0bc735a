"""Densities whose integral is known because they were made from normalised pieces."""

from typing import Any

import numpy as np
from scipy import special

from benchmarks.peers.priors import cauchy, logistic
from benchmarks.peers.record import NUMPY, Array, Library, Prior, Problem, log_sum_exp, softplus

FINE = np.linspace(-np.pi, np.pi, 2**14, endpoint=False)


def skew_logistic(u: Array, slant: Any, library: Library) -> Array:
    """The generalised logistic law of type I: skewed for `slant` other than 1, with tails of exponential weight."""
    return np.log(slant) - u - (slant + 1) * softplus(-u, library)


def skew_logistic_draws(generator: np.random.Generator, size: tuple[int, ...], slant: Any) -> np.ndarray:
    return -np.log(generator.uniform(size=size) ** (-1 / np.asarray(slant)) - 1)


def random_root(generator: np.random.Generator, dimension: int, scale: float, stretch: float) -> np.ndarray:
    """Axes in random directions, of lengths about `scale`; the longest is `stretch` times the shortest."""
    axes, _ = np.linalg.qr(generator.normal(size=(dimension, dimension)))
    return axes * (scale * stretch ** np.linspace(-0.5, 0.5, dimension))


def asymmetric(
    name: str, weights: list[float], scales: list[float], radius: float, dimension: int, seed: int
) -> Problem:
    """Components of skew-logistic margins, each under an affine map of its own; the constant is -7.3."""
    generator, constant = np.random.default_rng(seed), -7.3
    directions = generator.normal(size=(len(weights), dimension))
    means = radius * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    roots = np.stack([random_root(generator, dimension, scale, 3.0) for scale in scales])
    slants = 2.0 ** generator.uniform(-1, 2, (len(weights), dimension))
    whiteners, log_weights = np.linalg.inv(roots), np.log(weights) - np.linalg.slogdet(roots)[1]

    def parts(x: Array, library: Library) -> Array:
        white = library.np.einsum("kij,...kj->...ki", whiteners, x[..., None, :] - means)
        return log_weights + library.np.sum(skew_logistic(white, slants, library), axis=-1)

    def draws(generator: np.random.Generator, number: int) -> np.ndarray:
        which = generator.choice(len(weights), number, p=weights)
        white = skew_logistic_draws(generator, (number, dimension), slants[which])
        return means[which] + np.einsum("nij,nj->ni", roots[which], white)

    return Problem(
        name,
        dimension,
        lambda x, library: constant + log_sum_exp(parts(x, library), library),
        lambda: constant,
        logistic(0.0, 4.0),
        draws,
        len(weights),
        lambda rows: np.argmax(parts(rows, NUMPY), axis=1),
    )


def log_normal() -> Problem:
    """Twelve correlated log-normal variables, positive by a softplus: skewed, with tails heavier than exponential."""
    generator, dimension, constant = np.random.default_rng(12), 12, 21.6
    correlation = 0.8 ** np.abs(np.subtract.outer(np.arange(dimension), np.arange(dimension)))
    deviations, mean = np.linspace(0.3, 1.1, dimension), generator.normal(size=dimension)
    root = deviations[:, None] * np.linalg.cholesky(correlation)
    whitener, wide = np.linalg.inv(root), 2 * deviations
    log_determinant = np.log(np.diag(root)).sum() + 0.5 * dimension * np.log(2 * np.pi)

    def log_of(x: Array, library: Library) -> Array:
        return library.np.where(x < -30, x, library.np.log(softplus(library.np.maximum(x, -30.0), library)))

    def slope(x: Array, library: Library) -> Array:
        """The Jacobian of the logarithm of a softplus, in logs."""
        return library.np.sum(-softplus(-x, library) - log_of(x, library), axis=-1)

    def log_density(x: Array, library: Library) -> Array:
        white = (log_of(x, library) - mean) @ whitener.T
        return constant - 0.5 * library.np.sum(white**2, axis=-1) - log_determinant + slope(x, library)

    def of_log(logs: Array, library: Library) -> Array:
        large = library.np.exp(logs)
        return large + library.np.log(-library.np.expm1(-large))

    def log_prior(x: Array, library: Library) -> Array:
        z = (log_of(x, library) - mean) / wide
        return library.np.sum(-0.5 * z**2 - np.log(wide * np.sqrt(2 * np.pi)), axis=-1) + slope(x, library)

    prior = Prior(lambda unit, library: of_log(mean + wide * library.special.ndtri(unit), library), log_prior)

    def draws(generator: np.random.Generator, number: int) -> np.ndarray:
        return of_log(mean + generator.normal(size=(number, dimension)) @ root.T, NUMPY)

    return Problem("log-normal 12-D", dimension, log_density, lambda: constant, prior, draws)


def von_mises() -> Problem:
    """Five angles, three modes of unequal mass each, 243 together; exact by the trapezoidal rule on the circle."""
    depth, shift = np.array([4.0, 4.5, 5.0, 5.5, 6.0]), np.array([0.3, -0.5, 0.1, 0.4, -0.2])
    tilt, towards = np.array([0.3, 0.2, 0.4, 0.1, 0.3]), np.array([1.0, -2.0, 0.5, 3.0, 2.2])

    def of_angle(angle: Array, library: Library) -> Array:
        return depth * library.np.cos(3 * angle - shift) + tilt * library.np.cos(angle - towards)

    def to_angle(x: Array, library: Library) -> Array:
        return np.pi * library.np.tanh(x / 2)

    prior = logistic(np.zeros(5), 1.0)

    def log_density(x: Array, library: Library) -> Array:
        return library.np.sum(of_angle(to_angle(x, library), library), axis=-1) + prior.log_density(x, library)

    densities = np.exp(of_angle(FINE[:, None], NUMPY))

    def draws(generator: np.random.Generator, number: int) -> np.ndarray:
        angles = np.stack([generator.choice(FINE, number, p=each / each.sum()) for each in densities.T], axis=1)
        return 2 * np.arctanh((angles + generator.uniform(size=angles.shape) * (FINE[1] - FINE[0])) / np.pi)

    def label(rows: np.ndarray) -> np.ndarray:
        thirds = np.rint((3 * to_angle(rows, NUMPY) - shift) / (2 * np.pi)).astype(int) % 3
        return thirds @ 3 ** np.arange(5)

    return Problem(
        "von Mises 5-D",
        5,
        log_density,
        lambda: float(np.log(densities.mean(axis=0)).sum()),
        prior,
        draws,
        3**5,
        label,
    )


def ring() -> Problem:
    """A ring about three times as heavy on one side, times a skewed margin, under an affine map."""
    generator, constant, shape, radius, lean, slant = np.random.default_rng(3), 4.4, 300.0, 5.0, 0.5, 0.4
    matrix, shift = random_root(generator, 3, 1.5, 5.0), np.array([3.0, -2.0, 1.0])
    whitener = np.linalg.inv(matrix)
    log_constant = shape * np.log(shape / radius) - special.gammaln(shape) - np.log(2 * np.pi)
    log_constant += constant - np.linalg.slogdet(matrix)[1]

    def log_density(x: Array, library: Library) -> Array:
        u = (x - shift) @ whitener.T
        length = library.np.sqrt(u[..., 0] ** 2 + u[..., 1] ** 2 + 1e-300)
        round_part = (shape - 2) * library.np.log(length) - shape * length / radius
        leaning = library.np.log1p(lean * u[..., 0] / length)
        return log_constant + round_part + leaning + skew_logistic(u[..., 2], slant, library)

    def draws(generator: np.random.Generator, number: int) -> np.ndarray:
        length = generator.gamma(shape, radius / shape, number)
        weight = 1 + lean * np.cos(FINE)
        angle = generator.choice(FINE, number, p=weight / weight.sum())
        margin = skew_logistic_draws(generator, (number,), slant)
        return shift + np.stack([length * np.cos(angle), length * np.sin(angle), margin], axis=1) @ matrix.T

    return Problem("ring 3-D", 3, log_density, lambda: constant, logistic(0.0, 6.0), draws)


def crossed_funnel() -> Problem:
    """One variable sets the widths of seven others: three widen where four narrow, so that both ends have a neck."""
    constant, spread, lean = -3.9, 1.2, 0.5
    powers = np.array([0.8, -0.7, 0.6, -0.5, 0.9, -0.6, -0.4])

    def normal(x: Array, mean: Array, log_scale: Array, library: Library) -> Array:
        return -0.5 * ((x - mean) * library.np.exp(-log_scale)) ** 2 - log_scale - 0.5 * np.log(2 * np.pi)

    def log_density(x: Array, library: Library) -> Array:
        top = x[..., :1]
        others = library.np.sum(normal(x[..., 1:], lean * top, powers * top, library), axis=-1)
        return constant + normal(x[..., 0], 0.0, np.log(spread), library) + others

    def draws(generator: np.random.Generator, number: int) -> np.ndarray:
        top = spread * generator.normal(size=(number, 1))
        return np.hstack([top, lean * top + np.exp(powers * top) * generator.normal(size=(number, 7))])

    prior = cauchy(np.zeros(8), np.full(8, 2.0))
    return Problem("crossed funnel 8-D", 8, log_density, lambda: constant, prior, draws)


def student() -> Problem:
    """Ten independent Student's t variables of 2.2 to 6 degrees of freedom, in units from 0.01 to 100."""
    constant, freedoms = 15.0, np.linspace(2.2, 6.0, 10)
    scales, centres = np.logspace(-2, 2, 10), 3 * np.logspace(-2, 2, 10) * (-1.0) ** np.arange(10)
    log_constants = special.gammaln((freedoms + 1) / 2) - special.gammaln(freedoms / 2)
    log_constants = log_constants - 0.5 * np.log(freedoms * np.pi) - np.log(scales)

    def log_density(x: Array, library: Library) -> Array:
        z = (x - centres) / scales
        margins = -0.5 * (freedoms + 1) * library.np.log1p(z**2 / freedoms)
        return constant + library.np.sum(margins + log_constants, axis=-1)

    def draws(generator: np.random.Generator, number: int) -> np.ndarray:
        return centres + scales * generator.standard_t(freedoms, (number, 10))

    prior = cauchy(np.zeros(10), 5 * scales)
    return Problem("Student's t 10-D", 10, log_density, lambda: constant, prior, draws)
