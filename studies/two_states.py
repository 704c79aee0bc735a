"""What the base's own draws add to the chains': spreads of log Z over seeds, from either alone and from both together.

A logistic regression, a base found once, and runs that differ by their seed. The effective share of a chain's draws is
that of a run before them. The truth is importance sampling from very many draws of the base that the black box finds.

    python -m studies.two_states [--runs 12] [--dimension 24] [--draws 256] [--base-draws 4096] [--fit auto]
"""

import argparse
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

import thermocline as tc
from thermocline.estimators.two_state_answers import agreement, base_alone, expectation, log_evidence
from thermocline.estimators.two_states import TwoStates, combine, effective_share, pooled
from thermocline.evaluator import Evaluator
from thermocline.paths.laws import log_masses
from thermocline.support import special
from thermocline.support.precision import computing_in

NUM_ROWS = 200
NUM_FOR_TRUTH = 2**20
FITS = {"auto": tc.fit_auto, "laplace": tc.fit_laplace, "advi": tc.fit_advi}
NAMES = ("chains alone", "base alone", "together")


def log_density(x, data):
    """Standard normal prior and Bernoulli outcomes, normalised."""
    odds = data["design"] @ x
    likelihood = jnp.sum(data["outcome"] * odds - jax.nn.softplus(odds))
    return likelihood - 0.5 * x @ x - 0.5 * x.size * jnp.log(2 * jnp.pi)


def regression(dimension: int) -> tc.Target:
    """Correlated columns, and coefficients of which some are large."""
    generator = np.random.default_rng(18)
    mixing = np.eye(dimension) + 0.5 * generator.normal(size=(dimension, dimension)) / np.sqrt(dimension)
    design = generator.normal(size=(NUM_ROWS, dimension)) @ mixing
    outcome = generator.uniform(size=NUM_ROWS) < 1 / (1 + np.exp(-design @ generator.normal(size=dimension)))
    return tc.Target(log_density, np.zeros(dimension), {"design": design, "outcome": outcome.astype(float)})


class Run(NamedTuple):
    """One seed's estimates of log Z, and of the mean of the first coefficient from both states."""

    estimates: tuple[tc.Estimate, ...]  # by name
    mean: tc.Estimate
    difference: tc.Estimate
    pareto_k: float
    predicted: float
    num_gradients: int


def base_drawer(target: tc.Target, fit: tc.BaseFit) -> Callable[[int, int], tuple[np.ndarray, np.ndarray]]:
    """From a seed and a number to flat draws of the base and their log ratios."""
    evaluate = Evaluator(target)
    draw = jax.jit(jax.vmap(lambda key: ravel_pytree(fit.base.sample(key))[0]))
    log_base = jax.jit(jax.vmap(fit.base.log_density))

    def drawn(seed: int, number: int) -> tuple[np.ndarray, np.ndarray]:
        positions = np.asarray(draw(jax.random.split(jax.random.key(seed + 10**6), number)))
        return positions, evaluate.values(positions) - float(fit.log_zeta) - np.asarray(log_base(positions))

    return drawn


def states_of(result: tc.Result, log_ratio: np.ndarray, share: float) -> TwoStates:
    """The chains of a run and draws of its base."""
    chains, log_mass = result.draws, log_masses(result.need_joint("two states"), log_ratio)
    return combine(log_ratio, log_mass, chains.log_ratio, -chains.log_weight_base, share * chains.log_ratio.size)


def run_of(result: tc.Result, positions: np.ndarray, log_ratio: np.ndarray, share: float, log_zeta: float) -> Run:
    states = states_of(result, log_ratio, share)
    alone = agreement(states)
    num_effective = share * result.draws.log_ratio.size
    return Run(
        tuple(each + log_zeta for each in (alone.chains_alone, alone.base_alone, log_evidence(states))),
        expectation(states, (positions[:, 0], result.draws.position[..., 0]), states.log_weight_target),
        alone.difference,
        alone.pareto_k,
        predicted_error(states, log_ratio.size, num_effective),
        int(result.draws.num_gradients.sum()),
    )


def predicted_error(states: TwoStates, num_base: float, num_effective: float) -> float:
    r"""Standard error of log Z that so many draws of the base and effective draws of chains would have.

    Both densities are known by the draws at hand. With q the weights for the base, u = N/C and w = e^r over its mean, a
    draw adds $h = (w - \gamma)/d$, where $\gamma$ is C's part, which spreads by q under the base and by q u under the
    chains. There has to be a draw of the base.
    """
    log_base, log_u = pooled(states.log_weight_base), pooled(states.log_mass) - states.log_constant
    log_w = pooled(states.log_ratio) - special.logsumexp(pooled(states.log_weight_target))
    with np.errstate(divide="ignore"):
        log_d = np.logaddexp(np.log(num_base), np.log(num_effective) + log_u)
    log_pull = special.logsumexp(log_base + log_w + log_u - log_d) - special.logsumexp(log_base + log_u - log_d)
    added = np.exp(log_w - log_d) - np.exp(log_pull - log_d)
    of_base, of_chains = np.exp(log_base), np.exp(log_base + log_u)
    return float(np.sqrt(num_base * _variance(added, of_base) + num_effective * _variance(added, of_chains)))


def _variance(values: np.ndarray, weight: np.ndarray) -> float:
    """Of values with weights that sum to one; what has no weight does not count."""
    values = np.where(weight > 0, values, 0.0)
    return float(weight @ (values - weight @ values) ** 2)


def table(runs: list[Run], truth: tc.Estimate, mean: float) -> str:
    """Spread over runs, errors as stated, and z."""
    lines = ["              mean - truth       sd   error   mean z   sd z"]
    for name, estimates in zip(NAMES, zip(*(run.estimates for run in runs), strict=True), strict=True):
        lines.append(_row(name, list(estimates), truth.value))
    lines.append(_row("E[x0] together", [run.mean for run in runs], mean))
    apart = [run.difference.z_score(0.0) for run in runs]
    lines.append(
        f"gradients a run {np.mean([run.num_gradients for run in runs]):.0f}; Pareto k of base draws "
        f"{np.max([run.pareto_k for run in runs]):.2f} at most; states differ by {np.abs(apart).max():.1f} errors at "
        f"most; error foreseen {np.mean([run.predicted for run in runs]):.4f}; truth ± {truth.standard_error:.4f}"
    )
    return "\n".join(lines)


def _row(name: str, estimates: list[Any], truth: float) -> str:
    values, errors = (np.array([getattr(each, part) for each in estimates]) for part in ("value", "standard_error"))
    z = np.array([each.z_score(truth) for each in estimates])
    return (
        f"{name:14s} {values.mean() - truth:+11.4f} {values.std(ddof=1):8.4f} {np.sqrt(np.mean(errors**2)):7.4f} "
        f"{z.mean():+8.2f} {z.std(ddof=1):6.2f}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--dimension", type=int, default=24)
    parser.add_argument("--draws", type=int, default=256)
    parser.add_argument("--base-draws", type=int, default=4096)
    parser.add_argument("--fit", choices=FITS, default="auto")
    options = parser.parse_args()
    target = regression(options.dimension)
    with computing_in("float64"):
        truth, mean = truth_of(target)
        fit = FITS[options.fit](target, seed=0)
        drawn = base_drawer(target, fit)
        share, runs = None, []
        for seed in range(options.runs + 1):
            result = tc.sample(target, base=fit, seed=seed, num_draws=options.draws, search=False, progress=False)
            positions, log_ratio = drawn(seed, options.base_draws)
            if share is None:  # the run before
                share = effective_share(*states_of(result, log_ratio, 1.0).log_mass)
                print(
                    f"{options.fit}: a draw of a chain counts for {share:.3f}, of the base {effective(log_ratio):.3f}"
                )
                continue
            runs.append(run_of(result, positions, log_ratio, share, float(fit.log_zeta)))
    print(table(runs, truth, mean))
    return 0


def truth_of(target: tc.Target) -> tuple[tc.Estimate, float]:
    """Log Z and the mean of the first coefficient."""
    fit = tc.fit_auto(target, seed=0)
    positions, log_ratio = base_drawer(target, fit)(-1, NUM_FOR_TRUTH)
    weight = np.exp(log_ratio - log_ratio.max())
    return base_alone(log_ratio) + float(fit.log_zeta), float(weight @ positions[:, 0] / weight.sum())


def effective(log_ratio: np.ndarray) -> float:
    """Share of the base's draws that count for the target, by Kish."""
    weight = np.exp(log_ratio - log_ratio.max())
    return float(weight.mean() ** 2 / np.mean(weight**2))


if __name__ == "__main__":
    sys.exit(main())
