"""What models are made of besides plain priors and likelihoods, in two front ends, with exact evidences."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import integrate, stats
from scipy.special import gammaln

import thermocline as tc

A, B, SCALE, NOISE, LOW, HIGH = 2.5, 1.3, 1.7, 0.8, 0.5, 3.0
Y = np.array([0.7, 1.9, 0.8, 2.4, 1.1])
CENSORED = np.array([False, True, False, False, True])
COUNTS = np.array([2, 0, 3])
GROUPS = np.array([[0.3, 1.9, 0.8], [-1.4, -0.2, 0.1]])


class Piece(NamedTuple):
    """The exact log evidence, the box of unconstrained coordinates that holds it, and how many caveats are due."""

    log_evidence: float
    box: tuple[tuple[float, float, int], ...]  # from, to, points
    num_caveats: tuple[int, int] = (0, 0)  # in NumPyro, in PyMC


def _normal(y: np.ndarray) -> float:
    """Of y about a mean with a normal prior."""
    covariance = NOISE**2 * np.eye(y.size) + SCALE**2
    return float(stats.multivariate_normal(np.zeros(y.size), covariance).logpdf(y))


def _posterior(y: np.ndarray) -> Any:
    """Of that mean."""
    precision = y.size / NOISE**2 + 1 / SCALE**2
    return stats.norm(y.sum() / NOISE**2 / precision, precision**-0.5)


def _inside(law: Any) -> float:
    return float(np.log(law.cdf(HIGH) - law.cdf(LOW)))


def _censored() -> float:
    """Exponential lifetimes: those that are censored add their time and no event."""
    after = A + np.sum(~CENSORED), B + Y.sum()
    return float(A * np.log(B) - gammaln(A) + gammaln(after[0]) - after[0] * np.log(after[1]))


def _truncated_data() -> float:
    """Observations that were seen because they exceed LOW."""

    def joint(mean: float) -> float:
        law = stats.norm(mean, NOISE)
        return np.exp(np.sum(law.logpdf(Y) - law.logsf(LOW)) + stats.norm(0, SCALE).logpdf(mean))

    return float(np.log(integrate.quad(joint, -15, 15, points=[1.0], epsabs=1e-16)[0]))


def _ordered() -> float:
    """Two means with a normal prior each, cut to the half where the first is less: nothing makes up for the half."""
    low, high = _posterior(GROUPS[1]), _posterior(GROUPS[0])
    is_ordered = stats.norm(high.mean() - low.mean(), np.hypot(low.std(), high.std())).logsf(0.0)
    return _normal(GROUPS[0]) + _normal(GROUPS[1]) + float(is_ordered)


LINE, LOG_LINE = (-14.0, 14.0, 1001), (-60.0, 8.0, 1501)
PLANE = (-6.0, 6.0, 121)
PIECES = {
    "factor": Piece(_normal(Y), (LINE,), (1, 1)),
    "plate": Piece(_normal(GROUPS[0]) + _normal(GROUPS[1]), (PLANE, PLANE)),
    "censored": Piece(_censored(), (LOG_LINE,)),
    "truncated": Piece(_normal(Y) + _inside(_posterior(Y)) - _inside(stats.norm(0, SCALE)), ((-40.0, 40.0, 1501),)),
    "truncated data": Piece(_truncated_data(), (LINE,)),
    "ordered": Piece(_ordered(), (PLANE, (-25.0, 3.0, 281)), (2, 1)),
}


def numpyro_target(name: str) -> tc.Target:
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro import plate, sample

    prior = dist.Normal(0, SCALE)

    def factor(y):
        numpyro.factor("likelihood", dist.Normal(sample("mean", prior), NOISE).log_prob(y).sum())

    def of_groups(y):
        with plate("group", 2, dim=-2):
            mean = sample("mean", prior)
            with plate("member", 3, dim=-1):
                sample("y", dist.Normal(mean, NOISE), obs=y)

    def censored(y):
        lifetime = dist.Exponential(sample("rate", dist.Gamma(A, B)))
        sample("y", dist.RightCensoredDistribution(lifetime, CENSORED), obs=y)

    def truncated(y):
        mean = sample("mean", dist.TruncatedNormal(0, SCALE, low=LOW, high=HIGH))
        sample("y", dist.Normal(mean, NOISE), obs=y)

    def truncated_data(y):
        sample("y", dist.TruncatedNormal(sample("mean", prior), NOISE, low=LOW), obs=y)

    def ordered(y):
        mean = sample("mean", dist.ImproperUniform(dist.constraints.ordered_vector, (), (2,)))
        numpyro.factor("prior of the mean", prior.log_prob(mean).sum())
        sample("y", dist.Normal(mean[::-1, None], NOISE), obs=y)

    def overflow(y):
        sample("y", dist.Poisson(jnp.exp(sample("log_rate", prior))), obs=y)

    models: dict[str, tuple[Callable[..., None], np.ndarray]] = {
        "factor": (factor, Y),
        "plate": (of_groups, GROUPS),
        "censored": (censored, Y),
        "truncated": (truncated, Y),
        "truncated data": (truncated_data, Y),
        "ordered": (ordered, GROUPS),
        "overflow": (overflow, COUNTS),
    }
    return tc.from_numpyro(*models[name])


def pymc_target(name: str) -> tc.Target:
    import pymc as pm

    with pm.Model(coords={"group": ["a", "b"], "member": range(3)}) as model:
        if name == "factor":
            pm.Potential("likelihood", pm.logp(pm.Normal.dist(pm.Normal("mean", 0, SCALE), NOISE), Y).sum())
        elif name == "plate":
            mean = pm.Normal("mean", 0, SCALE, dims="group")
            pm.Normal("y", mean[:, None], NOISE, observed=GROUPS, dims=("group", "member"))
        elif name == "censored":
            lifetime = pm.Exponential.dist(pm.Gamma("rate", A, B))
            pm.Censored("y", lifetime, lower=None, upper=np.where(CENSORED, Y, np.inf), observed=Y)
        elif name == "truncated":
            mean = pm.Truncated("mean", pm.Normal.dist(0, SCALE), lower=LOW, upper=HIGH)
            pm.Normal("y", mean, NOISE, observed=Y)
        elif name == "truncated data":
            pm.Truncated("y", pm.Normal.dist(pm.Normal("mean", 0, SCALE), NOISE), lower=LOW, observed=Y)
        elif name == "overflow":
            pm.Poisson("y", pm.math.exp(pm.Normal("log_rate", 0, SCALE)), observed=COUNTS)
        else:
            in_order = {"transform": pm.distributions.transforms.ordered, "initval": [-1.0, 1.0]}
            mean = pm.Normal("mean", 0, SCALE, dims="group", **in_order)
            pm.Normal("y", mean[::-1, None], NOISE, observed=GROUPS)
    return tc.from_pymc(model)


TARGETS = {"numpyro": numpyro_target, "pymc": pymc_target}
