"""PyMC's sample_smc, its defaults, four chains of 2000 draws, on the unit cube; the error is that between chains."""

from benchmarks.peers.record import NUMPY, Answer, Problem

ENVIRONMENT, REQUIREMENTS = "pymc", ("pymc==5.28.5", "scipy")


def answer(problem: Problem, seed: int) -> Answer:
    import numpy as np
    import pymc as pm
    import pytensor.tensor as pt
    from pytensor.compile.ops import as_op

    calls = [0]

    @as_op(itypes=[pt.dvector], otypes=[pt.dscalar])
    def log_likelihood(unit):
        calls[0] += 1
        value = problem.log_likelihood(problem.prior.inverse(np.clip(unit, 1e-15, 1 - 1e-15), NUMPY), NUMPY)
        return np.asarray(value if np.isfinite(value) else -1e300, dtype=np.float64)

    with pm.Model():
        unit = pm.Uniform("unit", 0.0, 1.0, shape=problem.dimension)
        pm.Potential("likelihood", log_likelihood(unit))
        trace = pm.sample_smc(chains=4, cores=1, random_seed=seed, progressbar=False, compute_convergence_checks=False)
    each = [np.asarray(chain, float) for chain in np.asarray(trace.sample_stats["log_marginal_likelihood"]).T.tolist()]
    values = np.array([chain[np.isfinite(chain)][-1] for chain in map(np.atleast_1d, each)])
    ratios = np.exp(values - values.max())
    error = ratios.std(ddof=1) / ratios.mean() / np.sqrt(len(ratios))
    draws = trace.posterior["unit"].to_numpy().reshape(-1, problem.dimension)
    draws = problem.prior.inverse(np.clip(draws, 1e-15, 1 - 1e-15), NUMPY)
    return Answer(float(values.max() + np.log(ratios.mean())), float(error), calls[0], draws)
