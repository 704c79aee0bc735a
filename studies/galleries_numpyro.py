"""The models of NumPyro's gallery, each a function of the data of `studies.galleries_data`."""

# pyright: reportIndexIssue=false, reportAttributeAccessIssue=false, reportOperatorIssue=false
# (what numpyro.sample returns is typed as any number)

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.experimental.ode import odeint
from numpyro import deterministic, handlers, plate, sample
from numpyro.infer.reparam import LocScaleReparam

import thermocline as tc
from studies.galleries_data import GALLERIES


def schools(effect, error):
    mean, spread = sample("mean", dist.Normal(0, 5)), sample("spread", dist.HalfCauchy(5))
    with plate("school", 8):
        theta = sample("theta", dist.Normal(mean, spread))
        sample("y", dist.Normal(theta, error), obs=effect)


def schools_noncentred(effect, error):
    with handlers.reparam(config={"theta": LocScaleReparam(0)}):
        schools(effect, error)


def _of_parts(y, centre):
    weight, scale = sample("weight", dist.Dirichlet(2 * jnp.ones(3))), sample("scale", dist.HalfNormal(1))
    parts = dist.MixtureSameFamily(dist.Categorical(probs=weight), dist.Normal(centre, scale))
    with plate("observation", len(y)):
        sample("y", parts, obs=y)
    return weight


def mixture(y):
    with plate("component", 3):
        centre = sample("centre", dist.Normal(0, 4))
    order, weight = jnp.argsort(centre), _of_parts(y, centre)
    deterministic("centre_sorted", centre[order])
    deterministic("weight_sorted", weight[order])


def mixture_ordered(y):
    """The normal prior, cut to the ordered third of its values: improper in itself, so the factor is its density."""
    in_order = dist.ImproperUniform(dist.constraints.ordered_vector, (), (3,))
    centre = sample("centre", in_order, infer={"event_dims": ["component"]})
    numpyro.factor("centre_prior", dist.Normal(0, 4).log_prob(centre).sum())
    _of_parts(y, centre)


def areas(adjacency, expected, x, counts):
    intercept, slope = sample("intercept", dist.Normal(0, 1)), sample("slope", dist.Normal(0, 1))
    correlation, precision = sample("correlation", dist.Uniform(0, 1)), sample("precision", dist.Gamma(2, 0.5))
    prior = dist.CAR(jnp.zeros(len(x)), correlation, precision, adjacency)
    spatial = sample("spatial", prior, infer={"event_dims": ["area"]})
    scale = sample("scale", dist.HalfNormal(0.5))
    with plate("area", len(x)):
        local = sample("local", dist.Normal(0, 1))
        sample("counts", dist.Poisson(expected * jnp.exp(intercept + slope * x + spatial + scale * local)), obs=counts)


def volatility(returns):
    step, freedom = sample("step", dist.Exponential(10)), sample("freedom", dist.Gamma(2, 0.1))
    walk = dist.GaussianRandomWalk(step, len(returns))
    log_scale = sample("volatility", walk, infer={"event_dims": ["day"]})
    with plate("day", len(returns)):
        sample("returns", dist.StudentT(freedom, 0, jnp.exp(log_scale)), obs=returns)


def gaussian_process(x, y):
    length, height = sample("length", dist.LogNormal(0, 1)), sample("height", dist.LogNormal(0, 1))
    noise = sample("noise", dist.LogNormal(-1, 1))
    covariance = height**2 * jnp.exp(-0.5 * ((x[:, None] - x) / length) ** 2)
    covariance += (noise**2 + 1e-6) * jnp.eye(len(x))
    sample("y", dist.MultivariateNormal(jnp.zeros(len(x)), covariance), obs=y)


def horseshoe(x, y):
    overall, intercept = sample("global", dist.HalfCauchy(1)), sample("intercept", dist.Normal(0, 2))
    with plate("regressor", x.shape[1]):
        local, raw = sample("local", dist.HalfCauchy(1)), sample("raw", dist.Normal(0, 1))
        slope = deterministic("slope", overall * local * raw)
        deterministic("log_local", jnp.log(local))
    deterministic("log_global", jnp.log(overall))
    with plate("observation", len(y)):
        sample("y", dist.Bernoulli(logits=intercept + x @ slope), obs=y)


def ode(pelts):
    """Lotka and Volterra's equations, by an adaptive solver."""
    start = sample("start", dist.LogNormal(jnp.log(10), 1).expand([2]).to_event(1))
    prior = dist.TruncatedNormal(jnp.array([1.0, 0.05, 1.0, 0.05]), jnp.array([0.5, 0.05, 0.5, 0.05]), low=0.0)
    theta = sample("theta", prior.to_event(1), infer={"event_dims": ["rate"]})
    sigma = sample("sigma", dist.LogNormal(-1, 1).expand([2]).to_event(1), infer={"event_dims": ["species"]})

    def slopes(z, _, theta):
        return jnp.stack([(theta[0] - theta[1] * z[1]) * z[0], (-theta[2] + theta[3] * z[0]) * z[1]])

    path = odeint(slopes, start, jnp.arange(float(len(pelts))), theta, rtol=1e-6, atol=1e-5, mxstep=1000)
    sample("pelts", dist.LogNormal(jnp.log(path), sigma), obs=pelts)


def dirichlet_multinomial(counts):
    share = sample("share", dist.Dirichlet(jnp.ones(counts.shape[1])), infer={"event_dims": ["species"]})
    concentration = sample("concentration", dist.LogNormal(1, 1))
    with plate("forest", len(counts)):
        sample("counts", dist.DirichletMultinomial(concentration * share, counts.sum(-1)), obs=counts)


def survival(x, time, censored):
    shape, intercept = sample("shape", dist.LogNormal(0, 1)), sample("intercept", dist.Normal(0, 2))
    with plate("regressor", x.shape[1]):
        slope = sample("slope", dist.Normal(0, 1))
    lifetime = dist.Weibull(jnp.exp(intercept + x @ slope), shape)
    with plate("patient", len(time)):
        sample("time", dist.RightCensoredDistribution(lifetime, censored), obs=time)


def item_response(correct):
    spread = sample("spread", dist.HalfNormal(1))
    with plate("item", correct.shape[1]):
        discrimination = sample("discrimination", dist.LogNormal(0, 0.5))
        difficulty = sample("difficulty", dist.Normal(0, spread))
    with plate("person", correct.shape[0]):
        ability = sample("ability", dist.Normal(0, 1))
    logits = discrimination * (ability[:, None] - difficulty)
    with plate("people", correct.shape[0], dim=-2), plate("items", correct.shape[1], dim=-1):
        sample("correct", dist.Bernoulli(logits=logits), obs=correct)


MODELS: dict[str, Callable[..., Any]] = {
    model.__name__: model
    for model in (
        *(schools, schools_noncentred, mixture, mixture_ordered, areas, volatility, gaussian_process, horseshoe, ode),
        *(dirichlet_multinomial, survival, item_response),
    )
}


def target_of(name: str) -> tc.Target:
    return tc.from_numpyro(MODELS[name], **GALLERIES[name].data)
