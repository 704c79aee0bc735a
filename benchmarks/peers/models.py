"""Posteriors whose evidence is conjugate, or a sum over all allocations."""

import itertools

import numpy as np
from scipy import special

from benchmarks.peers.priors import sticks
from benchmarks.peers.record import Array, Library, Prior, Problem, log_sum_exp, softplus


def regression(dimension: int) -> Problem:
    """Correlated inputs, unknown variance (last, as its log): coefficients N(0, variance), 1/variance exponential."""
    generator, inputs = np.random.default_rng(dimension), dimension - 1
    rows, rate = 3 * dimension, 0.5
    chain = 0.9 ** np.abs(np.subtract.outer(np.arange(inputs), np.arange(inputs)))
    design = generator.normal(size=(rows, inputs)) @ np.linalg.cholesky(chain).T
    response = design @ (0.5 * generator.normal(size=inputs)) + 0.7 * generator.normal(size=rows)
    precision = design.T @ design + np.eye(inputs)
    mean = np.linalg.solve(precision, design.T @ response)
    shape, remains = 1 + rows / 2, rate + 0.5 * (response @ response - mean @ precision @ mean)

    def split(x: Array, library: Library) -> tuple[Array, Array, Array]:
        return x[..., :-1], x[..., -1], library.np.exp(-x[..., -1])

    def log_prior(x: Array, library: Library) -> Array:
        coefficients, log_variance, inverse = split(x, library)
        squares = library.np.sum(coefficients**2, axis=-1)
        of_coefficients = -0.5 * (squares * inverse + inputs * (log_variance + np.log(2 * np.pi)))
        return of_coefficients + np.log(rate) - log_variance - rate * inverse

    def log_density(x: Array, library: Library) -> Array:
        coefficients, log_variance, inverse = split(x, library)
        squares = library.np.sum((response - coefficients @ design.T) ** 2, axis=-1)
        return log_prior(x, library) - 0.5 * (squares * inverse + rows * (log_variance + np.log(2 * np.pi)))

    def from_unit(unit: Array, library: Library) -> Array:
        log_variance = np.log(rate) - library.np.log(-library.np.log1p(-unit[..., -1:]))
        coefficients = library.np.exp(0.5 * log_variance) * library.special.ndtri(unit[..., :-1])
        return library.np.concatenate([coefficients, log_variance], axis=-1)

    def log_evidence() -> float:
        log_determinant = np.linalg.slogdet(precision)[1]
        gammas = special.gammaln(shape) + np.log(rate) - shape * np.log(remains)
        return float(gammas - 0.5 * log_determinant - 0.5 * rows * np.log(2 * np.pi))

    def draws(generator: np.random.Generator, number: int) -> np.ndarray:
        variance = remains / generator.gamma(shape, size=number)
        white = np.linalg.solve(np.linalg.cholesky(precision).T, generator.normal(size=(inputs, number))).T
        return np.column_stack([mean + np.sqrt(variance)[:, None] * white, np.log(variance)])

    name = f"regression {dimension}-D"
    return Problem(name, dimension, log_density, log_evidence, Prior(from_unit, log_prior), draws)


COUNTS = np.array([0, 1, 1, 2, 7, 6, 9, 8, 24, 21, 30])


def poisson_mixture() -> Problem:
    """Three Poisson rates, exponential of mean 10, and uniform weights: six modes, alike but for names.

    The evidence is a sum over all 3^11 allocations of eleven counts. Logs of rates first, then two sticks.
    """
    mean, weights_prior = 10.0, sticks(2)
    factorials = special.gammaln(COUNTS + 1.0)

    def log_weights(x: Array, library: Library) -> Array:
        first, second = x[..., 0], x[..., 1]
        rest = -softplus(first, library)
        shares = [-softplus(-first, library), rest - softplus(-second, library), rest - softplus(second, library)]
        return library.np.stack(shares, axis=-1)

    def log_prior(x: Array, library: Library) -> Array:
        rates = library.np.sum(x[..., :3] - library.np.exp(x[..., :3]) / mean - np.log(mean), axis=-1)
        return rates + weights_prior.log_density(x[..., 3:], library)

    def log_density(x: Array, library: Library) -> Array:
        logs = x[..., None, :3]
        parts = COUNTS[:, None] * logs - library.np.exp(logs) - factorials[:, None]
        parts = parts + log_weights(x[..., 3:], library)[..., None, :]
        return log_prior(x, library) + library.np.sum(log_sum_exp(parts, library), axis=-1)

    def from_unit(unit: Array, library: Library) -> Array:
        rates = library.np.log(-mean * library.np.log1p(-unit[..., :3]))
        return library.np.concatenate([rates, weights_prior.inverse(unit[..., 3:], library)], axis=-1)

    def allocations() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers and sums of the three clusters, (3^11, 3), and the log evidence of each allocation."""
        which = np.array(list(itertools.product(range(3), repeat=len(COUNTS))), dtype=np.int8)
        numbers = np.stack([(which == k).sum(axis=1) for k in range(3)], axis=1)
        totals = np.stack([(which == k) @ COUNTS for k in range(3)], axis=1)
        rates = special.gammaln(totals + 1.0) - (totals + 1) * np.log(numbers + 1 / mean) - np.log(mean)
        of_weights = special.gammaln(numbers + 1.0).sum(axis=1) + np.log(2.0) - special.gammaln(len(COUNTS) + 3.0)
        return numbers, totals, rates.sum(axis=1) + of_weights - factorials.sum()

    def draws(generator: np.random.Generator, number: int) -> np.ndarray:
        numbers, totals, logs = allocations()
        which = generator.choice(len(logs), number, p=np.exp(logs - special.logsumexp(logs)))
        rates = generator.gamma(totals[which] + 1.0) / (numbers[which] + 1 / mean)
        gammas = generator.gamma(numbers[which] + 1.0)
        odds = [np.log(gammas[:, 0] / gammas[:, 1:].sum(axis=1)), np.log(gammas[:, 1] / gammas[:, 2])]
        return np.column_stack([np.log(rates), *odds])

    def label(rows: np.ndarray) -> np.ndarray:
        order = np.argsort(rows[:, :3], axis=1)
        return 2 * order[:, 0] + (order[:, 1] > order[:, 2])

    return Problem(
        "Poisson mixture 5-D",
        5,
        log_density,
        lambda: float(special.logsumexp(allocations()[2])),
        Prior(from_unit, log_prior),
        draws,
        6,
        label,
    )


def simplex() -> Problem:
    """Shares of ten kinds under a uniform prior, given counts of which two are nought."""
    counts = np.array([60.0, 0.0, 30.0, 13.0, 1.0, 8.0, 5.0, 0.0, 3.0, 2.0])
    ones = 1 + counts[:-1]  # the fraction of stick i is Beta(1 + its count, all that are left)
    lefts = np.cumsum((1 + counts)[::-1])[::-1][1:]
    uniform = sticks(9)

    def log_density(x: Array, library: Library) -> Array:
        falls = -ones * softplus(-x, library) - lefts * softplus(x, library)
        return library.np.sum(falls, axis=-1) + special.gammaln(10.0)

    def log_evidence() -> float:
        return float(special.gammaln(1 + counts).sum() - special.gammaln(10 + counts.sum()) + special.gammaln(10.0))

    def draws(generator: np.random.Generator, number: int) -> np.ndarray:
        gammas = np.log(generator.gamma(1 + counts, size=(number, 10)))
        after = np.logaddexp.accumulate(gammas[:, ::-1], axis=1)[:, ::-1][:, 1:]
        return gammas[:, :-1] - after

    return Problem("simplex 9-D", 9, log_density, log_evidence, uniform, draws)
