"""Many targets: seconds against those of another commit, in one run, and peak memory with draws streamed to disk.

python -m benchmarks.many [--before REF] [--targets 1000] [--turns 2] [--memory 1000 2000 4000]

Speed is that of posteriors of the shape of the paper's autoencoder (50 latents, 784 pixels, weights at random) by
annealed runs and by chains. Before and after take turns, each in a process of its own that has compiled everything
before the clock starts. Memory is that of runs with a checkpoint: 16 chains of 1000 draws in 10 dimensions a target.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
NUM_CHAINS, NUM_DRAWS, DIMENSION = 16, 1000, 10  # of the measure of memory
FEW = 32  # targets that everything is compiled with: one block


def autoencoder(number: int) -> tuple[Any, Any, Any]:
    """A target given an image, images, and the encoder as base."""
    import jax.numpy as jnp

    import thermocline as tc
    from experiments.iwae.model import NUM_HIDDEN, NUM_LATENTS, NUM_PIXELS, Autoencoder, Layer

    generator = np.random.default_rng(0)

    def layer(inputs: int, outputs: int, scale: float = 1.0) -> Layer:
        weights = scale * generator.normal(size=(inputs, outputs)) / np.sqrt(inputs)
        return Layer(jnp.asarray(weights, "float32"), jnp.zeros(outputs, "float32"))

    hidden = layer(NUM_PIXELS, NUM_HIDDEN), layer(NUM_HIDDEN, NUM_HIDDEN)
    decoder = layer(NUM_LATENTS, NUM_HIDDEN), layer(NUM_HIDDEN, NUM_HIDDEN), layer(NUM_HIDDEN, NUM_PIXELS)
    model = Autoencoder(hidden, layer(NUM_HIDDEN, NUM_LATENTS, 0.1), layer(NUM_HIDDEN, NUM_LATENTS, 0.1), decoder)
    target = tc.Target(lambda latents, image: model.log_joint(latents, image), np.zeros(NUM_LATENTS))
    images = (generator.uniform(size=(number, NUM_PIXELS)) < 0.5).astype(float)
    return target, images, lambda image: tc.Gaussian(*model.encode(image))  # pyright: ignore[reportArgumentType]


def time_runs(number: int) -> None:
    """Print the seconds of annealed runs and of chains, with whichever code is to be found first."""
    import thermocline as tc

    mover = tc.HMC(step_size=0.3, num_steps=10, jitter=0.0)
    works = {
        "annealed": (tc.AnnealedImportance(mover, betas=tc.sigmoidal_betas(50)), 0, 4),
        "chains": (tc.GibbsTempering(mover, tc.Continuous(), jumps=False), 0, 300),
        "library": (tc.GibbsTempering(), 100, 100),
    }
    target, images, base = autoencoder(number)
    for method, num_warmup, num_draws in works.values():
        options: dict[str, Any] = {
            "base": base, "method": method, "num_chains": 4, "num_warmup": num_warmup, "num_draws": num_draws,
            "precision": "float32", "progress": False,
        }  # fmt: skip
        tc.sample_many(target, images[:FEW], **options)
        began, began_cpu = time.monotonic(), time.process_time()
        value = tc.sample_many(target, images, **options).log_evidence
        spent = time.monotonic() - began, time.process_time() - began_cpu
        print(*spent, np.nan if value is None else value.value)


def seconds_with(source: Path, number: int) -> np.ndarray:
    command = [sys.executable, __file__, "--time", str(number)]
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    return np.array([[float(word) for word in line.split()] for line in printed.splitlines()])


def compare_speed(before: str, number: int, num_turns: int) -> None:
    """Seconds of both, by turns, and their ratio."""
    commit = subprocess.run(["git", "rev-parse", before], cwd=ROOT, capture_output=True, text=True, check=True)
    folder = ROOT / "build" / "many" / commit.stdout.strip()
    folder.mkdir(parents=True, exist_ok=True)
    archive = subprocess.run(["git", "archive", before, "src"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    old, new = [], []
    for turn in range(num_turns):
        pair = [(old, folder / "src"), (new, ROOT / "src")]
        for seconds, source in pair if turn % 2 == 0 else pair[::-1]:
            seconds.append(seconds_with(source, number))
    for place, name in enumerate(("annealed", "chains", "library")):
        (first, first_cpu), (second, second_cpu) = (np.array(turns)[:, place, :2].min(axis=0) for turns in (old, new))
        answers = [np.array(turns)[0, place, 2] for turns in (old, new)]
        print(
            f"{name:9s} {number} targets: before {first:.1f} s ({first_cpu:.1f} s of CPU), now {second:.1f} s "
            f"({second_cpu:.1f}); now over before {second / first:.2f} (CPU {second_cpu / first_cpu:.2f}); "
            f"joint log Z {answers[0]:.1f} and {answers[1]:.1f}"
        )


def peak_of(number: int) -> None:
    """Print the peak memory of this process after a run of so many targets whose draws go to disk."""
    import resource

    import jax.numpy as jnp

    import thermocline as tc

    target = tc.Target(lambda x, mean: -0.5 * jnp.sum((x - mean) ** 2), np.zeros(DIMENSION))
    means = np.random.default_rng(0).normal(size=(number, DIMENSION))
    base = tc.Gaussian.diagonal(np.zeros(DIMENSION), 2.0)
    mover = tc.HMC(num_steps=1, jitter=0.0)
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        results = tc.sample_many(
            target, means, base=base, method=tc.GibbsTempering(mover), num_chains=NUM_CHAINS, num_warmup=100,
            num_draws=NUM_DRAWS, checkpoint=folder, progress=False,
        )  # fmt: skip
        joint = results.log_evidence
        stored = sum(file.stat().st_size for file in Path(folder).rglob("*.npz"))
    unit = 1e6 if sys.platform == "darwin" else 1e3  # getrusage counts bytes on macOS, kilobytes on Linux
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(f"{number} targets x {NUM_CHAINS} chains x {NUM_DRAWS} draws in {DIMENSION} dimensions: peak {peak:.0f} MB, "
          f"{stored / 1e6:.0f} MB on disk, joint log Z {joint}, exact {number * DIMENSION * np.log(2 * np.pi) / 2:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before")
    parser.add_argument("--targets", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--memory", type=int, nargs="*", default=[])
    parser.add_argument("--time", type=int)
    parser.add_argument("--peak", type=int)
    options = parser.parse_args()
    if options.time is not None:
        return time_runs(options.time)
    if options.peak is not None:
        return peak_of(options.peak)
    if options.before is not None:
        compare_speed(options.before, options.targets, options.turns)
    for number in options.memory:
        subprocess.run([sys.executable, __file__, "--peak", str(number)], check=True)
    return None


if __name__ == "__main__":
    main()
