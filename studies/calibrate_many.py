"""Is the error of a *sum* right? The joint log evidence of a thousand targets with exact answers, over seeds.

Errors of targets add in squares and their biases add up, so that a bias of a thirtieth of a target's error, which
no calibration of single targets sees, is as large as the error of the sum. Prints z of the sum for each seed, then
what the seeds have in common: the mean miss, which is the bias, against the error that is claimed.

    python -m studies.calibrate_many [--targets 1000] [--seeds 10] [--problem NAME …] [--chains 4] [--draws 1000]
"""

import argparse
import sys
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats
from scipy.special import betaln

import thermocline as tc


class ManyProblem(NamedTuple):
    """Targets that differ in their data, a base that is a function of the datum, and the exact log evidences."""

    target: tc.Target
    data: Any
    base: Any
    log_evidences: np.ndarray


def rotations(generator: np.random.Generator, number: int, dimension: int) -> np.ndarray:
    return np.linalg.qr(generator.normal(size=(number, dimension, dimension)))[0]


def gaussian_log_density(x, datum):
    white = datum["whitener"] @ (x - datum["mean"])
    return datum["constant"] - 0.5 * white @ white


def gaussian_base(datum):
    """Off by half a deviation in every other coordinate, too wide or too narrow by a fifth, without correlations."""
    deviation = jnp.sqrt(jnp.diagonal(jnp.linalg.inv(datum["whitener"].T @ datum["whitener"])))
    shift = jnp.where(jnp.arange(deviation.size) % 2 == 0, 0.5, -0.1) * deviation
    return tc.Gaussian(datum["mean"] + shift, deviation * jnp.where(datum["constant"] > 0, 1.2, 0.85))


def gaussians(number: int, dimension: int = 8) -> ManyProblem:
    """Correlated Gaussians: scales between 0.5 and 1.5 in random directions."""
    generator = np.random.default_rng(1)
    widths = generator.uniform(0.5, 1.5, size=(number, dimension))
    whitener = np.swapaxes(rotations(generator, number, dimension), 1, 2) / widths[:, :, None]
    data = {
        "mean": generator.normal(size=(number, dimension)),
        "whitener": whitener,
        "constant": generator.normal(size=number) * 5,
    }
    truths = data["constant"] + 0.5 * dimension * np.log(2 * np.pi) + np.log(widths).sum(axis=1)
    return ManyProblem(tc.Target(gaussian_log_density, np.zeros(dimension)), data, gaussian_base, truths)


def bernoulli_log_density(u, datum):
    """Beta priors and sequences of flips, on the logit scale."""
    ones, zeros = datum["a"] + datum["k"], datum["b"] + datum["n"] - datum["k"]
    constant = jax.scipy.special.betaln(datum["a"], datum["b"])
    return jnp.sum(ones * jax.nn.log_sigmoid(u) + zeros * jax.nn.log_sigmoid(-u) - constant)


def bernoulli_base(datum):
    """Moments of the logit by Stirling's formula, a bit too wide and moved towards the prior."""
    ones, zeros = datum["a"] + datum["k"], datum["b"] + datum["n"] - datum["k"]
    mean = 0.9 * (jnp.log(ones) - jnp.log(zeros))
    return tc.Gaussian(mean, 1.15 * jnp.sqrt(1 / ones + 1 / zeros))


def bernoullis(number: int, dimension: int = 5) -> ManyProblem:
    """Beta-Bernoulli in each coordinate, few flips: skewed, with exponential tails."""
    generator = np.random.default_rng(2)
    shape = number, dimension
    n = generator.integers(2, 30, size=shape).astype(float)
    a, b = generator.uniform(1, 3, size=shape), generator.uniform(1, 3, size=shape)
    data = {"a": a, "b": b, "n": n, "k": generator.binomial(n.astype(int), generator.beta(a, b)).astype(float)}
    truths = np.sum(betaln(a + data["k"], b + n - data["k"]) - betaln(a, b), axis=1)
    target = tc.Target(bernoulli_log_density, np.zeros(dimension), constrain=jax.nn.sigmoid)
    return ManyProblem(target, data, bernoulli_base, truths)


def logistic_log_density(x, datum):
    """A standard normal prior, and binomial counts whose log odds are rotated coordinates."""
    odds = 2.0 * datum["rotation"] @ x
    likelihood = datum["k"] * jax.nn.log_sigmoid(odds) + (datum["n"] - datum["k"]) * jax.nn.log_sigmoid(-odds)
    return jnp.sum(likelihood) - 0.5 * x @ x - 0.5 * x.size * jnp.log(2 * jnp.pi)


def logistic_base(datum):
    """A Laplace approximation about a poor guess of the mode, dense."""
    n, k, rotation = datum["n"], datum["k"], datum["rotation"]
    share = (k + 1) / (n + 2)
    curvature = 1 + 4 * n * share * (1 - share)
    mean = rotation.T @ (2 * n * share * (1 - share) * (jnp.log(share) - jnp.log1p(-share)) / curvature)
    return tc.Gaussian(0.8 * mean, jnp.linalg.cholesky((rotation.T / curvature) @ rotation) * 1.1)


def logistics(number: int, dimension: int = 6) -> ManyProblem:
    """Logistic-normal, correlated by a rotation that leaves the prior alone: exact by quadrature in each direction."""
    generator = np.random.default_rng(3)
    n = generator.integers(1, 20, size=(number, dimension)).astype(float)
    k = generator.binomial(n.astype(int), 1 / (1 + np.exp(-2 * generator.normal(size=n.shape)))).astype(float)
    points, weights = np.polynomial.hermite_e.hermegauss(200)
    log_one = -np.logaddexp(0, -2.0 * points)
    terms = k[..., None] * log_one + (n - k)[..., None] * (log_one - 2.0 * points)
    truths = np.log(np.exp(terms) @ (weights / np.sqrt(2 * np.pi))).sum(axis=1)
    data = {"n": n, "k": k, "rotation": rotations(generator, number, dimension)}
    return ManyProblem(tc.Target(logistic_log_density, np.zeros(dimension)), data, logistic_base, truths)


PROBLEMS = {"gaussians": gaussians, "bernoullis": bernoullis, "logistics": logistics}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--problem", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--warmup", type=int, default=500)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--verdicts", action="store_true", help="make the checks of every target, too")
    options = parser.parse_args()
    misses = 0
    for name in options.problem:
        misses += not calibrated(name, PROBLEMS[name](options.targets), options)
    return 1 if misses else 0


def calibrated(name: str, problem: ManyProblem, options: argparse.Namespace) -> bool:
    """Run the seeds, print what they gave, and tell whether the sum is within its error on the whole."""
    print(f"{name}: {options.targets} targets, {options.chains} chains of {options.draws}, warm-up {options.warmup}")
    rows, each = [], []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        began = time.process_time()
        results = tc.sample_many(
            problem.target,
            problem.data,
            base=problem.base,
            seed=seed,
            num_chains=options.chains,
            num_warmup=options.warmup,
            num_draws=options.draws,
            progress=False,
        )
        seconds = time.process_time() - began
        joint: Any = results.log_evidence
        estimates: Any = results.log_evidences
        miss, z = joint.value - problem.log_evidences.sum(), joint.z_score(problem.log_evidences.sum())
        own = (estimates.value - problem.log_evidences) / estimates.standard_error
        rows.append((miss, joint.standard_error, z))
        each.append(own)
        verdicts = f", {results.verdict}, {results.verdict_counts}" if options.verdicts else ""
        print(
            f"  seed {seed:3d}  miss {miss:+8.4f}  error {joint.standard_error:7.4f}  z {z:+5.2f}   bias by halves "
            f"{results.bias}   each: mean z {own.mean():+6.3f}, sd {own.std():5.3f}, largest {np.abs(own).max():4.1f}"
            f"   {1e3 * seconds / options.targets:.0f} ms of CPU a target{verdicts}",
            flush=True,
        )
    misses, errors, z = np.array(rows).T
    bias, its_error = misses.mean(), misses.std(ddof=1) / np.sqrt(len(misses))
    print(
        f"  {name}: bias of the sum {bias:+.4f} ± {its_error:.4f}, {bias / errors.mean():+.2f} of its error "
        f"{errors.mean():.4f}; sd of the misses {misses.std(ddof=1):.4f}; "
        f"z: mean {z.mean():+.2f}, sd {z.std(ddof=1):.2f}; "
        f"z of each target: mean {np.mean(each):+.4f}, sd {np.std(each):.3f}",
        flush=True,
    )
    spread = stats.chi2.cdf(np.sum((z - z.mean()) ** 2), len(z) - 1)
    is_centred = abs(z.mean()) * np.sqrt(len(z)) < 4 and abs(bias) < errors.mean() + 2 * its_error
    return bool(is_centred and 5e-4 < spread < 0.9995)


if __name__ == "__main__":
    sys.exit(main())
