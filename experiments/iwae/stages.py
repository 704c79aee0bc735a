"""What is computed for each set of images: bounds, annealed runs, chains; each stage stored as soon as it is done."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

import thermocline as tc
from experiments.iwae.model import Autoencoder, generate, importance_bound

PRECISION = "float32"  # as the paper's GPU had it; the log density of an image is right to about 1e-5
NUM_ANNEALED = 16  # runs a schedule, as in the paper
ZETA_SAMPLES = 100  # of the importance weighted bound
GROUP = 64  # images at once, at most
SEED = 0


class Settings(NamedTuple):
    """How much is computed; the step sizes and numbers of leapfrog steps are the paper's."""

    num_images: int
    num_repeats: int  # chains an image, each of which is a run by itself
    num_draws: dict[str, int]  # of each chain, by method; only these methods run
    annealed: tuple[int, ...]  # temperatures
    bounds: int  # temperatures of the runs both ways
    parallel: tuple[int, ...]  # chains at once, for how time grows with their number; not measured where empty


class Problem(NamedTuple):
    """Generated images, the latents they came from, and the target of one image given the image."""

    name: str
    target: tc.Target
    data: dict[str, np.ndarray]
    latents: np.ndarray
    base: Callable[[Any], tc.BaseFit]

    def first(self, number: int) -> "Problem":
        """The same with the first images only."""
        return self._replace(data=jax.tree.map(lambda leaf: leaf[:number], self.data), latents=self.latents[:number])


def pose(name: str, model: Autoencoder, num_images: int) -> Problem:
    """The posterior of the latents given each image; the encoder is the base, its importance weighted bound zeta."""
    latents, images = generate(jax.random.key(201702), model, num_images)
    log_zeta = importance_bound(jax.random.key(1), model, images, ZETA_SAMPLES)

    def base(datum: dict[str, jax.Array]) -> tc.BaseFit:
        return tc.BaseFit(tc.Gaussian(*model.encode(datum["image"])), datum["log_zeta"])  # pyright: ignore[reportArgumentType]

    def log_density(latents: jax.Array, datum: dict[str, jax.Array]) -> jax.Array:
        return model.log_joint(latents, datum["image"])

    data = {"image": np.asarray(images), "log_zeta": np.asarray(log_zeta)}
    target = tc.Target(log_density, np.zeros(np.shape(latents)[1]))
    return Problem(name, target, data, np.asarray(latents), base)


def hmc(step_size: float) -> tc.HMC:
    """Ten leapfrog steps, of a size in units of the encoder's standard deviations, as the paper's are."""
    return tc.HMC(step_size=step_size, num_steps=10, jitter=0.0)


def chain_methods() -> dict[str, Any]:
    """The paper's three, without warm-up or jumps, and the library's own way, which learns its law of beta first."""
    betas = tc.sigmoidal_betas(1000)
    return {
        "gibbs": tc.GibbsTempering(hmc(0.25), tc.Continuous(), jumps=False),
        "joint": tc.JointTempering(hmc(0.15), tc.Continuous(), tc.Logistic(8.0), mass=1.0, jumps=False),
        "simulated": tc.GibbsTempering(hmc(0.25), tc.Ladder(betas, np.zeros(len(betas))), jumps=False),
        "library": tc.GibbsTempering(),
    }


def annealed(num_temperatures: int) -> tc.AnnealedImportance:
    return tc.AnnealedImportance(hmc(0.3), betas=tc.sigmoidal_betas(num_temperatures))


def prefixes(num_draws: int) -> np.ndarray:
    """Numbers of draws, about evenly spaced in their logarithm."""
    return np.unique(np.geomspace(min(5, num_draws), num_draws, 24).astype(int))


def run_bounds(problem: Problem, num_temperatures: int) -> dict[str, np.ndarray]:
    """Stochastic bounds on log p of each image (bidirectional Monte Carlo)."""
    found = tc.bidirectional_many(
        problem.target, problem.data, problem.latents, base=problem.base, method=annealed(num_temperatures),
        seed=SEED + 1, num_runs=NUM_ANNEALED, precision=PRECISION, group_size=group_of(problem),
    )
    names = "lower", "upper", "lower_error", "upper_error"
    return {name: getattr(found, name) for name in names} | {"seconds": np.array(sampling_seconds(found.forward))}


def run_annealed(problem: Problem, num_temperatures: int) -> dict[str, np.ndarray]:
    """Log p of each image from the mean weight of annealed runs, and its error."""
    results = sample(problem, annealed(num_temperatures), 4, 0, NUM_ANNEALED // 4)
    log_weights = results.stacked("log_weight_target").reshape(len(results), -1).astype(float)
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    error = weights.std(axis=1, ddof=1) / weights.mean(axis=1) / np.sqrt(NUM_ANNEALED)
    value = logsumexp(log_weights, axis=1) - np.log(NUM_ANNEALED) + results.runs.by_target.log_zeta
    return {"value": value, "error": error, "seconds": np.array(sampling_seconds(results))}


def run_chains(problem: Problem, method: Any, num_repeats: int, num_draws: int) -> dict[str, np.ndarray]:
    """Log p of each image (image, chain, prefix) from the first draws of each chain; and chains cut and pooled."""
    num_warmup = num_draws // 4 if isinstance(getattr(method, "law", None), tc.Learned) else 0
    results = sample(problem, method, num_repeats, num_warmup, num_draws)
    log_zeta = results.runs.by_target.log_zeta
    counts = prefixes(num_draws)
    pair = [results.stacked(name).astype(float) for name in ("log_weight_target", "log_weight_base")]
    above, below = (np.logaddexp.accumulate(weights, axis=2)[:, :, counts - 1] for weights in pair)
    short = num_draws // num_repeats
    above_all, below_all = (
        np.logaddexp.reduce(weights[:, :, :short].reshape(len(log_zeta), -1), axis=1) for weights in pair
    )
    return {
        "value": above - below + log_zeta[:, None, None],
        "pooled": above_all - below_all + log_zeta,  # as many draws as one chain, from all of them
        "num_draws": counts,
        "acceptance": np.array(results.stacked("acceptance").mean()),
        "seconds": np.array(sampling_seconds(results)),
        "warmup_seconds": np.array(sum(seconds_of(results, phase) for phase in ("ramp", "warmup", "adapt"))),
    }


def run_parallel(problem: Problem, numbers: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Seconds that runs (50 temperatures) and chains (draws) take, by how many there are of each at once."""
    few, gibbs = problem.first(4), chain_methods()["gibbs"]
    seconds = [
        [sampling_seconds(sample(few, method, number, 0, num_draws)) / num_draws for number in numbers]
        for method, num_draws in ((annealed(50), 4), (gibbs, 100))
    ]
    return {"numbers": np.array(numbers), "annealed": np.array(seconds[0]), "gibbs": np.array(seconds[1])}


def sample(problem: Problem, method: Any, num_chains: int, num_warmup: int, num_draws: int) -> tc.ManyResults:
    return tc.sample_many(
        problem.target, problem.data, base=problem.base, method=method, seed=SEED, num_chains=num_chains,
        num_warmup=num_warmup, num_draws=num_draws, precision=PRECISION, group_size=group_of(problem),
    )


def group_of(problem: Problem) -> int:
    """The size of equal groups, so that none has to be filled up."""
    number = len(problem.latents)
    return -(-number // -(-number // GROUP))


def seconds_of(results: tc.ManyResults, phase: str) -> float:
    return getattr(results.runs.seconds, phase)


def sampling_seconds(results: tc.ManyResults) -> float:
    """Of all images together, without compiling."""
    return seconds_of(results, "sampling")


def stored(path: Path, settings: Any, compute: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """What an earlier run with these settings left, or else what is computed now, and stored."""
    key = json.dumps(settings)
    if path.exists():
        with np.load(path) as file:
            if str(file["settings"]) == key:
                return {name: file[name] for name in file.files if name != "settings"}
    found = compute()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part.npz")
    arrays: dict[str, Any] = {"settings": np.array(key), **found}
    np.savez(partial, **arrays)
    partial.rename(path)
    return found


def run_all(problem: Problem, settings: Settings, folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """Every stage, those that an earlier run finished read back; says which stage is under way."""
    number, repeats = settings.num_images, settings.num_repeats
    fingerprint = float(jnp.sum(problem.data["log_zeta"]))
    plan: list[tuple[str, Any, Callable[[], dict[str, np.ndarray]]]] = [
        ("bounds", settings.bounds, lambda: run_bounds(problem, settings.bounds)),
        *[(f"annealed-{n}", n, lambda n=n: run_annealed(problem, n)) for n in settings.annealed],
        *[
            (name, [repeats, num_draws],
             lambda name=name, num_draws=num_draws: run_chains(problem, chain_methods()[name], repeats, num_draws))
            for name, num_draws in settings.num_draws.items()
        ],
    ]  # fmt: skip
    if settings.parallel:
        plan.append(("parallel", list(settings.parallel), lambda: run_parallel(problem, settings.parallel)))
    found = {}
    for stage, options, compute in plan:
        print(f"{problem.name}: {stage}", flush=True)
        path = folder / f"{problem.name}-{stage}.npz"
        found[stage] = stored(path, [number, options, PRECISION, fingerprint], compute)
    return found
