"""The paper's hierarchical regression (Figure 3a) in three languages, centred and non-centred."""

from pathlib import Path
from typing import Any

import thermocline as tc
from experiments.radon.data import Data, radon
from experiments.radon.exact import SCALE

PROGRAM = Path(__file__).with_name("radon.stan")  # non-centred
FRONT_ENDS = ("numpyro", "pymc", "stan")


def numpyro_model(data: Data, centred: bool = False) -> None:
    import numpyro
    import numpyro.distributions as dist

    def coefficients(name: str, plate: str, size: int, mean: Any, deviation: Any) -> Any:
        with numpyro.plate(plate, size):
            if centred:
                return numpyro.sample(name, dist.Normal(mean, deviation))
            return numpyro.deterministic(name, mean + deviation * numpyro.sample(f"{name}_raw", dist.Normal(0, 1)))

    mu_alpha, mu_beta = (numpyro.sample(f"mu_{name}", dist.Normal(0, 1)) for name in ("alpha", "beta"))
    sigma_alpha, sigma_beta, epsilon = (
        numpyro.sample(name, dist.HalfCauchy(SCALE)) for name in ("sigma_alpha", "sigma_beta", "epsilon")
    )
    alpha = coefficients("alpha", "county", data.num_counties, mu_alpha, sigma_alpha)
    beta = coefficients("beta", "regressor", 2, mu_beta, sigma_beta)
    numpyro.sample("y", dist.Normal(alpha[data.county] + data.x @ beta, epsilon), obs=data.y)


def pymc_model(data: Data, centred: bool = False) -> Any:
    import pymc as pm

    def coefficients(name: str, dims: str, mean: Any, deviation: Any) -> Any:
        if centred:
            return pm.Normal(name, mean, deviation, dims=dims)
        return pm.Deterministic(name, mean + deviation * pm.Normal(f"{name}_raw", 0, 1, dims=dims), dims=dims)

    with pm.Model(coords={"county": range(data.num_counties), "regressor": ["floor", "uranium"]}) as model:
        mu_alpha, mu_beta = (pm.Normal(f"mu_{name}", 0, 1) for name in ("alpha", "beta"))
        sigma_alpha, sigma_beta, epsilon = (
            pm.HalfCauchy(name, SCALE) for name in ("sigma_alpha", "sigma_beta", "epsilon")
        )
        alpha: Any = coefficients("alpha", "county", mu_alpha, sigma_alpha)
        beta = coefficients("beta", "regressor", mu_beta, sigma_beta)
        pm.Normal("y", alpha[data.county] + data.x @ beta, epsilon, observed=data.y)
    return model


def target_of(front_end: str, data: Data | None = None, *, centred: bool = False) -> tc.Target:
    """The model as a target; Stan's program has the non-centred form only."""
    data = radon() if data is None else data
    if front_end == "numpyro":
        return tc.from_numpyro(numpyro_model, data, centred)
    if front_end == "pymc":
        return tc.from_pymc(pymc_model(data, centred))
    if centred:
        raise ValueError("the Stan program is non-centred; take NumPyro or PyMC for the centred form.")
    county = data.county + 1  # Stan counts from one
    return tc.from_stan(PROGRAM, {"N": len(data.y), "J": data.num_counties, "county": county, "x": data.x, "y": data.y})
