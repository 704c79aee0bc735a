"""Eight conjugate models in three front ends, with their evidence and posterior in closed form."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats
from scipy.special import betaln, gammaln

import thermocline as tc
from thermocline.support.precision import computing_in

PROGRAM = Path(__file__).with_name("conjugate.stan")
A, B, SCALE, NOISE = 2.5, 1.3, 1.7, 0.8
ALPHA = np.array([0.7, 1.5, 3.0])
Y = np.array([0.3, 1.9, 0.8, 2.4, 1.1])
COUNTS, TRIALS = np.array([3, 0, 4, 2, 1]), np.array([7, 3, 9, 4, 6])
X = np.array([[1.0, 0.2], [1.0, -1.3], [1.0, 0.7], [1.0, 2.1], [1.0, -0.4]])
N, K = X.shape


class Case(NamedTuple):
    """A model's log evidence, and its posterior on as many numbers as it has degrees of freedom."""

    log_evidence: float
    log_posterior: Callable[[np.ndarray], float]
    free: Callable[[dict[str, np.ndarray]], np.ndarray]
    shapes: dict[str, tuple[int, ...]]


def _normal(design: np.ndarray) -> tuple[float, Callable[[np.ndarray], float]]:
    """y = design @ slope + noise, with a Gaussian prior."""
    covariance = np.linalg.inv(design.T @ design / NOISE**2 + np.eye(design.shape[1]) / SCALE**2)
    mean = covariance @ design.T @ Y / NOISE**2
    evidence = stats.multivariate_normal(np.zeros(N), NOISE**2 * np.eye(N) + SCALE**2 * design @ design.T).logpdf(Y)
    return float(evidence), stats.multivariate_normal(mean, covariance).logpdf


def _beta(a: float, b: float) -> tuple[float, Any]:
    """Binomial counts with a beta prior."""
    after = a + COUNTS.sum(), b + (TRIALS - COUNTS).sum()
    choices = gammaln(TRIALS + 1) - gammaln(COUNTS + 1) - gammaln(TRIALS - COUNTS + 1)
    return float(choices.sum() + betaln(*after) - betaln(a, b)), stats.beta(*after)


def _gamma(shape: float, total: float, constant: float) -> tuple[float, Callable[[np.ndarray], float]]:
    """A rate with a gamma prior, `shape` events in `total` time."""
    evidence = A * np.log(B) - gammaln(A) + gammaln(A + shape) - (A + shape) * np.log(B + total) + constant
    return float(evidence), lambda rate: stats.gamma(A + shape, scale=1 / (B + total)).logpdf(rate)[0]


def _normal_inverse_gamma() -> tuple[float, Callable[[np.ndarray], float]]:
    """mu ~ N(0, scale^2 variance), variance ~ inverse gamma."""
    precision = 1 / SCALE**2 + N
    mean, shape = Y.sum() / precision, A + N / 2
    rate = B + 0.5 * (np.sum(Y**2) - precision * mean**2)
    spread = (B / A) * (np.eye(N) + SCALE**2 * np.ones((N, N)))

    def log_posterior(free: np.ndarray) -> float:
        mu, variance = free
        given = stats.norm(mean, np.sqrt(variance / precision)).logpdf(mu)
        return given + stats.invgamma(shape, scale=rate).logpdf(variance)

    return float(stats.multivariate_t(np.zeros(N), spread, 2 * A).logpdf(Y)), log_posterior


def _dirichlet() -> tuple[float, Callable[[np.ndarray], float]]:
    counts = COUNTS[:3]
    after = ALPHA + counts
    evidence = gammaln(counts.sum() + 1) - gammaln(counts + 1).sum()
    evidence += gammaln(ALPHA.sum()) - gammaln(after.sum()) + np.sum(gammaln(after) - gammaln(ALPHA))
    return float(evidence), lambda free: stats.dirichlet(after).logpdf(np.append(free, 1 - free.sum()))


def _cases() -> dict[str, Case]:
    binomial, on_unit = _beta(A, B)
    correlated, on_half = _beta(A, A)
    choose = lambda name: lambda draw: np.ravel(draw[name])  # noqa: E731
    return {
        "normal": Case(*_normal(np.ones((N, 1))), choose("mu"), {"mu": ()}),
        "binomial": Case(binomial, lambda p: on_unit.logpdf(p)[0], choose("probability"), {"probability": ()}),
        "poisson": Case(*_gamma(COUNTS.sum(), N, -gammaln(COUNTS + 1).sum()), choose("rate"), {"rate": ()}),
        "multinomial": Case(*_dirichlet(), lambda draw: np.ravel(draw["share"])[:-1], {"share": (3,)}),
        "normal, unknown variance": Case(
            *_normal_inverse_gamma(),
            lambda draw: np.concatenate([np.ravel(draw["mu"]), np.ravel(draw["variance"])]),
            {"mu": (), "variance": ()},
        ),
        "regression": Case(*_normal(X), choose("slope"), {"slope": (2,)}),
        "exponential": Case(*_gamma(N, Y.sum(), 0.0), choose("rate"), {"rate": ()}),
        "correlation": Case(
            correlated,
            lambda rho: on_half.logpdf((1 + rho[0]) / 2) - np.log(2),
            choose("correlation"),
            {"correlation": ()},
        ),
    }


CASES = _cases()


def numpyro_target(name: str) -> tc.Target:
    import numpyro
    import numpyro.distributions as dist

    sample, numbers = numpyro.sample, range(len(CASES))
    which = dict(zip(CASES, numbers, strict=True))[name]

    def model(y, counts, design):
        if which == 0:
            sample("y", dist.Normal(sample("mu", dist.Normal(0, SCALE)), NOISE), obs=y)
        elif which == 1:
            sample("counts", dist.Binomial(TRIALS, sample("probability", dist.Beta(A, B))), obs=counts)
        elif which == 2:
            sample("counts", dist.Poisson(sample("rate", dist.Gamma(A, B))), obs=counts)
        elif which == 3:
            share = sample("share", dist.Dirichlet(ALPHA))
            sample("counts", dist.Multinomial(int(COUNTS[:3].sum()), share), obs=counts[:3])
        elif which == 4:
            variance = sample("variance", dist.InverseGamma(A, B))
            mu = sample("mu", dist.Normal(0, SCALE * jnp.sqrt(variance)))
            sample("y", dist.Normal(mu, jnp.sqrt(variance)), obs=y)
        elif which == 5:
            slope = sample("slope", dist.Normal(0, SCALE).expand([K]).to_event(1))
            sample("y", dist.Normal(design @ slope, NOISE), obs=y)
        elif which == 6:
            sample("y", dist.Exponential(sample("rate", dist.Gamma(A, B))), obs=y)
        else:
            factor = sample("factor", dist.LKJCholesky(2, A))
            rho = numpyro.deterministic("correlation", factor[1, 0])
            sample("counts", dist.Binomial(TRIALS, (1 + rho) / 2), obs=counts)

    return tc.from_numpyro(model, Y, COUNTS, design=X)


def pymc_target(name: str) -> tc.Target:
    import pymc as pm

    which = list(CASES).index(name)
    with pm.Model() as model:
        if which == 0:
            pm.Normal("y", pm.Normal("mu", 0, SCALE), NOISE, observed=Y)
        elif which == 1:
            pm.Binomial("counts", TRIALS, pm.Beta("probability", A, B), observed=COUNTS)
        elif which == 2:
            pm.Poisson("counts", pm.Gamma("rate", A, B), observed=COUNTS)
        elif which == 3:
            pm.Multinomial("counts", COUNTS[:3].sum(), pm.Dirichlet("share", ALPHA), observed=COUNTS[:3])
        elif which == 4:
            variance = pm.InverseGamma("variance", A, B)
            pm.Normal("y", pm.Normal("mu", 0, SCALE * variance**0.5), variance**0.5, observed=Y)
        elif which == 5:
            pm.Normal("y", X @ pm.Normal("slope", 0, SCALE, shape=K), NOISE, observed=Y)
        elif which == 6:
            pm.Exponential("y", pm.Gamma("rate", A, B), observed=Y)
        else:
            rho = pm.Deterministic("correlation", pm.LKJCorr("packed", n=2, eta=A, return_matrix=False)[0])
            pm.Binomial("counts", TRIALS, (1 + rho) / 2, observed=COUNTS)
    return tc.from_pymc(model)


def stan_target(name: str) -> tc.Target:
    which = list(CASES).index(name) + 1
    number = 3 if which == 4 else N
    return tc.from_stan(
        PROGRAM,
        {"which": which, "N": number, "K": 3 if which == 4 else K, "y": Y[:number], "counts": COUNTS[:number]}
        | {"trials": TRIALS[:number], "X": np.ones((number, 3)) if which == 4 else X}
        | {"alpha": ALPHA if which == 4 else ALPHA[:K], "a": A, "b": B, "scale": SCALE, "noise": NOISE},
    )


TARGETS = {"numpyro": numpyro_target, "pymc": pymc_target, "stan": stan_target}


def log_constant(target: tc.Target, case: Case, positions: np.ndarray) -> np.ndarray:
    """Log density minus the log posterior, both unconstrained: the log evidence, wherever it is taken."""
    from jax.flatten_util import ravel_pytree

    with computing_in("float64"):
        unravel = ravel_pytree(jax.tree.map(jnp.asarray, target.initial_position))[1]
        log_density = jax.jit(jax.vmap(lambda x, data: target.log_density(unravel(x), data), (0, None)))
        shown = jax.jit(jax.vmap(lambda x: target.shown(unravel(x))))

        def free(rows: np.ndarray) -> np.ndarray:
            draws = jax.tree.map(np.asarray, shown(rows))
            return np.stack([case.free({name: leaf[i] for name, leaf in draws.items()}) for i in range(len(rows))])

        constants = []
        for x, value in zip(positions, np.asarray(log_density(positions, target.data)), strict=True):
            steps = 1e-3 * np.eye(x.size)
            slope = lambda h, x=x, steps=steps: (free(x + h * steps) - free(x - h * steps)) / (2e-3 * h)  # noqa: E731
            jacobian = (64 * slope(1) - 20 * slope(2) + slope(4)) / 45  # Richardson
            log_posterior = case.log_posterior(free(x[None])[0])
            constants.append(value - log_posterior - np.linalg.slogdet(jacobian)[1])
        return np.array(constants)
