"""The fits, and what one of them gives on one target."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import thermocline as tc
from experiments.bases.problems import Problem

NUM_EXACT = 20_000  # draws of base and target for the divergences
WORK: Any = {"num_chains": 16, "num_warmup": 500, "num_draws": 1000}
LEAST, MOST = 1e-3, 1e3  # divergence that draws can tell from none, and what is far in any case


class Outcome(NamedTuple):
    """One fit with one seed; where it was refused, the sentence and nothing else."""

    problem: str
    fit: str
    seed: int
    kl_base_to_target: float = np.nan
    kl_target_to_base: float = np.nan
    fit_gradients: float = np.nan
    run_gradients: float = np.nan
    log_zeta_error: float = np.nan
    log_evidence_error: float = np.nan
    standard_error: float = np.nan
    verdict: str = "refused"
    kind: str = ""
    refusal: str = ""


def fit_moments_of_mixture(target: tc.Target, *, seed: int) -> tc.BaseFit:
    """The paper's proposal: one Gaussian with the mean and covariance of the mixture of local fits."""
    return tc.fit_moments(tc.fit_local_mixture(target, seed=seed))


FITS: dict[str, Callable[..., tc.BaseFit]] = {
    "laplace": tc.fit_laplace,
    "advi, mean field": tc.fit_advi,
    "advi, full rank": partial(tc.fit_advi, full_rank=True),
    "pathfinder": tc.fit_pathfinder,
    "renyi, order 2": partial(tc.fit_renyi, order=2.0),
    "ep": tc.fit_ep,
    "local mixture": tc.fit_local_mixture,
    "its moments": fit_moments_of_mixture,
    "bootstrap": tc.fit_bootstrap,
    "auto": tc.fit_auto,
}


@jax.jit
def log_ratios(target: tc.Target, base: Any, positions: Any) -> jax.Array:
    return jax.vmap(lambda position: target(position) - base.log_density(position))(positions)


def divergences(problem: Problem, base: Any, seed: int) -> tuple[float, float]:
    """KL(base ‖ target) and KL(target ‖ base), each from exact draws of the first."""
    with jax.enable_x64(True):
        base = jax.tree.map(jnp.asarray, base)  # a mixture of NumPy arrays cannot be sampled inside vmap
        of_base = jax.jit(jax.vmap(base.sample))(jax.random.split(jax.random.key(seed), NUM_EXACT))
        of_target = jax.tree.map(jnp.asarray, problem.draws(np.random.default_rng(seed), NUM_EXACT))
        from_base, from_target = (log_ratios(problem.target, base, draws) for draws in (of_base, of_target))
        return float(problem.log_evidence - from_base.mean()), float(from_target.mean() - problem.log_evidence)


def measure(problem: Problem, name: str, seed: int) -> Outcome:
    """Fit, compare with exact draws, and sample as long as with any other base."""
    try:
        fit = FITS[name](problem.target, seed=seed)
        result = tc.sample(problem.target, seed=seed, base=fit, progress=False, **WORK)
    except tc.ThermoclineError as error:
        return Outcome(problem.name, name, seed, refusal=str(error))
    evidence = result.log_evidence
    assert evidence is not None
    return Outcome(
        problem.name,
        name,
        seed,
        *divergences(problem, fit.base, seed),
        fit_gradients=int(fit.num_gradients),
        run_gradients=int(result.draws.num_gradients.sum()) + int(result.cost.evaluations.warmup),
        log_zeta_error=fit.log_zeta - problem.log_evidence,
        log_evidence_error=float(evidence.value) - problem.log_evidence,
        standard_error=float(evidence.standard_error),
        verdict=result.verdict,
        kind=type(fit.base).__name__,
    )


def of(outcomes: list[Outcome], problem: str, fit: str) -> list[Outcome]:
    return [outcome for outcome in outcomes if (outcome.problem, outcome.fit) == (problem, fit)]
