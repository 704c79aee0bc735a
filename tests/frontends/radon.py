"""The paper's Radon model (section 7.3) in three front ends; `python -m tests.frontends.radon numpyro` samples it."""

import json
import sys
import time
from pathlib import Path

import numpy as np

import thermocline as tc

EXACT = -1081.0217  # by quadrature
PROGRAM = Path(__file__).with_name("radon.stan")


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """County of each house, its two regressors and its log radon."""
    import arviz

    folder = Path(arviz.__file__).parent / "data" / "example_data" / "code" / "radon"
    held = json.loads((folder / "radon.json").read_text())
    county = np.array(held["county"], int)
    x = np.stack([np.array(held["x"], float), np.array(held["u"])[county]], axis=1)
    return county, x, np.array(held["y"])


def numpyro_model(county, x, y, num_counties):
    import numpyro
    import numpyro.distributions as dist

    mu_alpha, mu_beta = (numpyro.sample(f"mu_{name}", dist.Normal(0, 1)) for name in ("alpha", "beta"))
    sigma_alpha, sigma_beta, epsilon = (
        numpyro.sample(name, dist.HalfCauchy(2.5)) for name in ("sigma_alpha", "sigma_beta", "epsilon")
    )
    with numpyro.plate("county", num_counties):
        alpha = numpyro.deterministic("alpha", mu_alpha + sigma_alpha * numpyro.sample("alpha_raw", dist.Normal(0, 1)))
    with numpyro.plate("regressor", 2):
        beta = numpyro.deterministic("beta", mu_beta + sigma_beta * numpyro.sample("beta_raw", dist.Normal(0, 1)))
    numpyro.sample("y", dist.Normal(alpha[county] + x @ beta, epsilon), obs=y)


def pymc_model(county, x, y, num_counties):
    import pymc as pm

    with pm.Model(coords={"county": range(num_counties), "regressor": ["floor", "uranium"]}) as model:
        mu_alpha, mu_beta = (pm.Normal(f"mu_{name}", 0, 1) for name in ("alpha", "beta"))
        sigma_alpha, sigma_beta, epsilon = (
            pm.HalfCauchy(name, 2.5) for name in ("sigma_alpha", "sigma_beta", "epsilon")
        )
        raw = pm.Normal("alpha_raw", 0, 1, dims="county")
        alpha = pm.Deterministic("alpha", mu_alpha + sigma_alpha * raw, dims="county")
        beta_raw = pm.Normal("beta_raw", 0, 1, dims="regressor")
        beta = pm.Deterministic("beta", mu_beta + sigma_beta * beta_raw, dims="regressor")
        pm.Normal("y", alpha[county] + x @ beta, epsilon, observed=y)
    return model


def target_of(front_end: str) -> tc.Target:
    county, x, y = data()
    number = int(county.max()) + 1
    if front_end == "numpyro":
        return tc.from_numpyro(numpyro_model, county, x, y, number)
    if front_end == "pymc":
        return tc.from_pymc(pymc_model(county, x, y, number))
    return tc.from_stan(PROGRAM, {"N": len(y), "J": number, "county": county + 1, "x": x, "y": y})


def main(front_end: str) -> tc.Result:
    """Sample it from a variational base, as the paper does, and print what it took."""
    begun = time.perf_counter()
    target = target_of(front_end)
    made = time.perf_counter() - begun
    result = tc.sample(target, seed=1, base=tc.fit_advi, target_error=0.04, progress=False)
    seconds = time.perf_counter() - begun
    estimate = result.log_evidence
    print(f"{front_end}: log Z {estimate} (exact {EXACT}, z {estimate.z_score(EXACT):.2f}), {result.verdict}")
    print(f"  {made:.1f} s to make the target, {seconds:.1f} s in all; {result.info['seconds']}")
    return result


if __name__ == "__main__":
    main(sys.argv[1])
