"""The models of PyMC's gallery, each a function of the data of `studies.galleries_data`, as NumPyro's are."""

# pyright: reportPrivateImportUsage=false, reportOperatorIssue=false, reportAttributeAccessIssue=false
# (PyTensor's variables are hardly typed)

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

import thermocline as tc
from studies.galleries_data import GALLERIES

RATES, SPECIES = ("birth", "eaten", "death", "eats"), ("hare", "lynx")
STEPS = 20  # of Runge and Kutta's method a year


def schools(effect, error):
    mean, spread = pm.Normal("mean", 0, 5), pm.HalfCauchy("spread", 5)
    pm.Normal("y", pm.Normal("theta", mean, spread, dims="school"), error, observed=effect)


def schools_noncentred(effect, error):
    mean, spread = pm.Normal("mean", 0, 5), pm.HalfCauchy("spread", 5)
    theta = pm.Deterministic("theta", mean + spread * pm.Normal("theta_decentered", dims="school"), dims="school")
    pm.Normal("y", theta, error, observed=effect)


def _of_parts(y, centre):
    weight, scale = pm.Dirichlet("weight", 2 * np.ones(3)), pm.HalfNormal("scale", 1)
    pm.NormalMixture("y", weight, centre, scale, observed=y)
    return weight


def mixture(y):
    centre = pm.Normal("centre", 0, 4, dims="component")
    order, weight = pt.argsort(centre), _of_parts(y, centre)
    pm.Deterministic("centre_sorted", centre[order])
    pm.Deterministic("weight_sorted", weight[order])


def mixture_ordered(y):
    ordered = pm.distributions.transforms.ordered
    _of_parts(y, pm.Normal("centre", 0, 4, dims="component", transform=ordered, initval=[-1.0, 0.0, 1.0]))


def areas(adjacency, expected, x, counts):
    intercept, slope = pm.Normal("intercept", 0, 1), pm.Normal("slope", 0, 1)
    correlation, precision = pm.Uniform("correlation", 0, 1), pm.Gamma("precision", 2, 0.5)
    spatial = pm.CAR("spatial", np.zeros(len(x)), adjacency, correlation, precision, dims="area")
    effect = spatial + pm.HalfNormal("scale", 0.5) * pm.Normal("local", dims="area")
    pm.Poisson("counts", expected * pt.exp(intercept + slope * x + effect), observed=counts, dims="area")


def volatility(returns):
    step, freedom = pm.Exponential("step", 10), pm.Gamma("freedom", 2, 0.1)
    first = pm.Normal.dist(0, step)
    log_scale = pm.GaussianRandomWalk("volatility", sigma=step, init_dist=first, dims="day")
    pm.StudentT("returns", freedom, 0, sigma=pt.exp(log_scale), observed=returns, dims="day")


def gaussian_process(x, y):
    length, height, noise = pm.LogNormal("length", 0, 1), pm.LogNormal("height", 0, 1), pm.LogNormal("noise", -1, 1)
    process = pm.gp.Marginal(cov_func=height**2 * pm.gp.cov.ExpQuad(1, ls=length))
    process.marginal_likelihood("y", X=x[:, None], y=y, sigma=noise)


def horseshoe(x, y):
    overall, intercept = pm.HalfCauchy("global", 1), pm.Normal("intercept", 0, 2)
    local, raw = pm.HalfCauchy("local", 1, dims="regressor"), pm.Normal("raw", dims="regressor")
    slope = pm.Deterministic("slope", overall * local * raw, dims="regressor")
    pm.Deterministic("log_local", pt.log(local), dims="regressor")
    pm.Deterministic("log_global", pt.log(overall))
    pm.Bernoulli("y", logit_p=intercept + x @ slope, observed=y)


def ode(pelts):
    """Lotka and Volterra's equations, by Runge and Kutta's method."""
    start = pm.LogNormal("start", np.log(10), 1, shape=2)
    prior = {"mu": np.array([1.0, 0.05, 1.0, 0.05]), "sigma": np.array([0.5, 0.05, 0.5, 0.05])}
    theta = pm.TruncatedNormal("theta", **prior, lower=0, dims="rate")
    sigma = pm.LogNormal("sigma", -1, 1, dims="species")

    def slopes(z):
        return pt.stack([(theta[0] - theta[1] * z[1]) * z[0], (-theta[2] + theta[3] * z[0]) * z[1]])

    def step(z, *_):
        h = 1 / STEPS
        first = slopes(z)
        second = slopes(z + h / 2 * first)
        third = slopes(z + h / 2 * second)
        return z + h / 6 * (first + 2 * second + 2 * third + slopes(z + h * third))

    path = pytensor.scan(step, outputs_info=[start], non_sequences=[theta], n_steps=STEPS * (len(pelts) - 1))[0]
    path = pt.concatenate([start[None], path[STEPS - 1 :: STEPS]])
    pm.LogNormal("pelts", pt.log(path), sigma, observed=pelts)


def dirichlet_multinomial(counts):
    share = pm.Dirichlet("share", np.ones(counts.shape[1]), dims="species")
    concentration = pm.LogNormal("concentration", 1, 1)
    pm.DirichletMultinomial("counts", n=counts.sum(-1), a=concentration * share, observed=counts)


def survival(x, time, censored):
    shape, intercept = pm.LogNormal("shape", 0, 1), pm.Normal("intercept", 0, 2)
    slope = pm.Normal("slope", 0, 1, dims="regressor")
    lifetime = pm.Weibull.dist(shape, pt.exp(intercept + x @ slope))
    pm.Censored("time", lifetime, lower=None, upper=np.where(censored, time, np.inf), observed=time)


def item_response(correct):
    spread = pm.HalfNormal("spread", 1)
    discrimination = pm.LogNormal("discrimination", 0, 0.5, dims="item")
    difficulty, ability = pm.Normal("difficulty", 0, spread, dims="item"), pm.Normal("ability", 0, 1, dims="person")
    pm.Bernoulli("correct", logit_p=discrimination * (ability[:, None] - difficulty), observed=correct)


COORDS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "schools": (schools, {"school": list("ABCDEFGH")}),
    "schools_noncentred": (schools_noncentred, {"school": list("ABCDEFGH")}),
    "mixture": (mixture, {"component": range(3)}),
    "mixture_ordered": (mixture_ordered, {"component": ["low", "middle", "high"]}),
    "areas": (areas, {"area": [f"{row}{column}" for row in "abcdef" for column in range(6)]}),
    "volatility": (volatility, {"day": np.arange("2024-01-01", "2024-10-27", dtype="datetime64[D]")}),
    "gaussian_process": (gaussian_process, {}),
    "horseshoe": (horseshoe, {"regressor": [f"x{i}" for i in range(15)]}),
    "ode": (ode, {"rate": RATES, "species": SPECIES}),
    "dirichlet_multinomial": (dirichlet_multinomial, {"species": ["pine", "oak", "ebony", "rosewood", "mahogany"]}),
    "survival": (survival, {"regressor": ["age", "dose"]}),
    "item_response": (item_response, {"person": range(40), "item": range(12)}),
}


def target_of(name: str) -> tc.Target:
    build, coords = COORDS[name]
    with pm.Model(coords=coords) as model:
        build(**GALLERIES[name].data)
    return tc.from_pymc(model)
