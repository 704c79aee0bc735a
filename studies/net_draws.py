"""Draws of every method on one asymmetric problem, into a file: what `studies.net` compares between two commits.

PYTHONPATH=src python studies/net_draws.py OUT.npz

It imports nothing of the tests and only public names and registries, so that it runs with older code too.
"""

import inspect
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import thermocline as tc
from thermocline.methods import METHODS

MEANS = np.array([[1.5, -0.5, 0.0], [-1.5, 0.7, 0.4]])
SCALES, LOG_WEIGHTS = np.array([[1.0, 0.8, 1.2], [0.7, 1.1, 0.9]]), np.log([0.7, 0.3])
OPTIONS: dict[str, Any] = {"num_warmup": 48, "num_draws": 40, "progress": False}


def log_density(position, data):
    """Two Gaussians of unequal weight and scales, sheared."""
    x = jnp.concatenate([jnp.atleast_1d(position["a"]), position["b"]])
    x = x.at[2].add(0.4 * x[0])
    squares = jnp.sum(((x - data["means"]) / data["scales"]) ** 2 + 2 * jnp.log(data["scales"]), axis=1)
    return jax.nn.logsumexp(data["log_weights"] - 0.5 * squares) + data["constant"]


def target(constant: float = 2.0) -> tc.Target:
    data = {"means": MEANS, "scales": SCALES, "log_weights": LOG_WEIGHTS, "constant": np.float64(constant)}
    return tc.Target(log_density, {"a": 0.2, "b": np.array([0.1, -0.3])}, data)


def base() -> tc.BaseFit:
    covariance = np.array([[3.5, -0.8, -1.2], [-0.8, 1.6, 0.3], [-1.2, 0.3, 2.0]])
    return tc.BaseFit(tc.Gaussian.from_covariance({"a": 0.5, "b": np.array([0.0, -0.2])}, covariance), 4.0)


def methods() -> dict[str, Any]:
    """Every registered method, small, and the variants that have code of their own."""
    small = {
        "parallel": {"num_replicas": 4},
        "annealed": {"num_temperatures": 8},
        "sequential": {"num_particles": 8},
        "transitions": {"num_temperatures": 6},
    }
    registered: dict[str, Any] = {name: make(**small.get(name, {})) for name, make in METHODS.items()}
    experimental = tc.experimental
    return registered | {
        "gibbs, no jumps": tc.GibbsTempering(jumps=False),
        "gibbs, plain law": tc.GibbsTempering(law=tc.Continuous()),
        "joint, NUTS": tc.JointTempering(tc.NUTS(max_doublings=4)),
        "simulated, neighbours": tc.SimulatedTempering(betas=tc.sigmoidal_betas(8), neighbours=True),
        "parallel, sized by itself": tc.ParallelTempering(),
        "extended": experimental.ExtendedHamiltonian(),
        "adiabatic": experimental.AdiabaticMonteCarlo(),
    }


def draws_of(method: Any) -> dict[str, np.ndarray]:
    can_skip = "search" in inspect.signature(tc.sample).parameters
    options: dict[str, Any] = OPTIONS | ({"search": False} if can_skip else {})
    result = tc.sample(target(), base=base(), method=method, seed=5, num_chains=4, **options)
    return {**result.draws._asdict(), "log_evidence": _of(result.log_evidence)}


def many_draws() -> dict[str, np.ndarray]:
    constants = np.array([2.0, -1.0, 0.5])
    one = target()
    data = jax.tree.map(lambda leaf: np.stack([leaf] * len(constants)), one.data) | {"constant": constants}
    results = tc.sample_many(one, data, base=base(), seed=5, num_chains=2, **OPTIONS)
    each = [results[i] for i in range(len(constants))]
    fields = {name: np.stack([getattr(r.draws, name) for r in each]) for name in each[0].draws._fields}
    merged = {name: np.concatenate(list(leaf)) for name, leaf in fields.items()}
    return {**merged, "log_evidence": np.concatenate([_of(r.log_evidence) for r in each])}


def _of(estimate: Any) -> np.ndarray:
    return np.zeros(0) if estimate is None else np.array([estimate.value, estimate.standard_error])


def main(path: str) -> None:
    arrays = {}
    for name, method in methods().items():
        arrays |= {f"{name}/{field}": leaf for field, leaf in draws_of(method).items()}
        print(name, flush=True)
    arrays |= {f"many/{field}": leaf for field, leaf in many_draws().items()}
    np.savez(path, **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
