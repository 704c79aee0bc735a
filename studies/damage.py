"""Damaged checkpoints and saved runs: each gets a sentence or gives the right answer, and none runs anything.

Files are cut at random lengths, bytes in them flipped, blocks of bytes swapped or overwritten; files are emptied,
removed, made foreign, put in one another's place, or exchanged with those of another run or of an earlier moment.
A try is right if it ends in a ThermoclineError, or in the draws and the evidence of the run that was damaged.

    python -m studies.damage [--tries 500] [--seed 0]
"""

import argparse
import collections
import pickle
import shutil
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import thermocline as tc

START = {"x": np.zeros(2)}
TARGET = tc.Target(lambda p: -0.5 * jnp.sum(p["x"] ** 2) - jnp.sum(jnp.cos(p["x"])), START)
BASE = tc.Gaussian.diagonal(START, 1.5)
METHOD = tc.ParallelTempering(num_replicas=3)  # with a pilot: a folder within the folder
Generator = np.random.Generator


class Runs(NamedTuple):
    """What is damaged: folders of whole runs and one that was cut off, files of Results, and the right answer."""

    folder: Path
    another: Path
    earlier: Path
    saved: Path
    saved_another: Path
    many: Path
    result: tc.Result
    results: tc.ManyResults


def sample(folder: Path, seed: int = 0) -> tc.Result:
    """The run that the study is about; chunks are small, so that there are some files."""
    options: dict[str, Any] = {"num_chains": 4, "num_warmup": 40, "num_draws": 40, "search": False, "progress": False}
    return tc.sample(TARGET, seed=seed, base=BASE, method=METHOD, checkpoint=folder, chunk_size=8, **options)


@cache
def runs() -> Runs:
    """Made once."""
    place = Path(mkdtemp())
    whole = sample(place / "run")
    other = sample(place / "another", seed=1)
    whole.save(place / "run.nc")
    other.save(place / "another.nc")
    shutil.copytree(place / "run", place / "earlier")
    stopped = place / "earlier" / "state.npz"
    stopped.write_bytes((place / "run" / "pilot" / "state.npz").read_bytes())
    family = tc.Target(lambda p, d: -0.5 * jnp.sum((p["x"] - d) ** 2), START)
    many = tc.sample_many(
        family, np.arange(3.0), base=BASE, num_warmup=20, num_draws=20, num_chains=2, group_size=4, progress=False
    )
    many.save(place / "many.nc")
    run, another, earlier = (place / name for name in ("run", "another", "earlier"))
    saved = (place / "run.nc", place / "another.nc", place / "many.nc")
    return Runs(run, another, earlier, *saved, whole, many)


def cut(path: Path, generator: Generator) -> None:
    """Shorter, anywhere or near the end."""
    size = path.stat().st_size
    length = generator.integers(size) if generator.random() < 0.5 else max(size - int(generator.integers(1, 200)), 0)
    path.write_bytes(path.read_bytes()[:length])


def flipped(path: Path, generator: Generator) -> None:
    """One bit to a few bytes, near the ends as often as anywhere: there headers are."""
    content = bytearray(path.read_bytes())
    reach = len(content) if generator.random() < 0.5 else min(600, len(content))
    for place in generator.integers(reach, size=generator.choice([1, 1, 2, 16])):
        content[-1 - place if generator.random() < 0.5 else place] ^= 1 << int(generator.integers(8))
    path.write_bytes(content)


def swapped(path: Path, generator: Generator) -> None:
    """Two stretches of a file in one another's place."""
    content = bytearray(path.read_bytes())
    length = int(generator.integers(1, max(len(content) // 4, 2)))
    first, second = sorted(generator.integers(max(len(content) - length, 1), size=2).tolist())
    one, other = content[first : first + length], content[second : second + length]
    content[first : first + length], content[second : second + length] = other, one
    path.write_bytes(content[: path.stat().st_size])


def overwritten(path: Path, generator: Generator) -> None:
    """Zeros for a stretch, as file systems leave them."""
    content = bytearray(path.read_bytes())
    first = int(generator.integers(len(content)))
    length = min(4096, len(content) - first)
    content[first : first + length] = bytes(length)
    path.write_bytes(content)


def foreign(path: Path, generator: Generator) -> None:
    """Nothing, words, noise, or the arrays of somebody else."""
    contents: list[Callable[[], Any]] = [
        lambda: path.write_bytes(b""),
        lambda: path.write_text("not a file of ours"),
        lambda: path.write_bytes(generator.bytes(4000)),
        lambda: np.savez(path.open("wb"), header=np.array("{}"), leaf_0=np.ones(3)),
        lambda: hostile(path),
    ]
    contents[generator.integers(len(contents))]()


class Hostile:
    """Unpickled, it leaves a file behind."""

    def __reduce__(self) -> Any:
        return Path.touch, (executed(),)


def executed() -> Path:
    """Exists if anything in a hostile file was run."""
    return Path(gettempdir()) / "thermocline-executed"


def hostile(path: Path) -> None:
    """An archive of pickles in the place of arrays, or pickles alone."""
    np.savez(path.open("wb"), header=np.array(Hostile(), object), seal=np.array([Hostile()], object))
    if path.suffix == ".nc":
        path.write_bytes(pickle.dumps(Hostile()))


def removed(path: Path, generator: Generator) -> None:
    path.unlink()


def doubled(path: Path, generator: Generator) -> None:
    """Something after its end."""
    with path.open("ab") as file:
        file.write(generator.bytes(int(generator.integers(1, 500))))


DAMAGES = (cut, flipped, swapped, overwritten, foreign, removed, doubled)


def displaced(folder: Path, generator: Generator) -> None:
    """A file in the place of another: of this run, of another run, or of this one earlier."""
    source = generator.choice([runs().folder, runs().folder, runs().another, runs().earlier])  # pyright: ignore
    mine, theirs = _files(folder), _files(Path(source))
    alike = generator.random() < 0.5
    target = mine[generator.integers(len(mine))]
    from_there = Path(source) / target.relative_to(folder) if alike else theirs[generator.integers(len(theirs))]
    target.write_bytes(from_there.read_bytes())


def damaged_run(generator: Generator) -> tuple[str, str]:
    """A copy of the folder, damaged and gone on with: what was done, and how it ended."""
    folder = Path(mkdtemp()) / "copy"
    shutil.copytree(runs().folder, folder)
    files = _files(folder)
    if generator.random() < 0.25:
        what = "displaced"
        displaced(folder, generator)
    else:
        damage = DAMAGES[generator.integers(len(DAMAGES))]
        what = damage.__name__
        damage(files[generator.integers(len(files))], generator)
    ended = _ended(lambda: _same(sample(folder), runs().result))
    shutil.rmtree(folder.parent)
    return f"checkpoint {what}", ended


def damaged_file(generator: Generator) -> tuple[str, str]:
    """A copy of a saved Result, or of many, damaged and loaded."""
    path = Path(mkdtemp()) / "copy.nc"
    is_many = generator.random() < 0.3
    shutil.copy(runs().many if is_many else runs().saved, path)
    if generator.random() < 0.1:
        what, content, theirs = "mixed", path.read_bytes(), runs().saved_another.read_bytes()
        half = int(generator.integers(1, len(content)))
        path.write_bytes(content[:half] + theirs[half:])
    else:
        damage = DAMAGES[generator.integers(len(DAMAGES))]
        what = damage.__name__
        damage(path, generator)
    ended = _ended(lambda: _same_many(tc.load(path)) if is_many else _same(tc.load(path), runs().result))
    shutil.rmtree(path.parent)
    return f"saved run {what}", ended


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.npz"))


def _same(result: tc.Result, right: tc.Result) -> bool:
    pairs = zip(result.draws, right.draws, strict=True)
    return all(map(np.array_equal, *zip(*pairs, strict=True))) and result.log_evidence == right.log_evidence


def _same_many(results: tc.ManyResults) -> bool:
    return all(_same(one, right) for one, right in zip(results, runs().results, strict=True))


def _ended(attempt: Callable[[], bool]) -> str:
    """In a word; anything but a sentence or the right answer is a fault, in capitals."""
    try:
        return "right" if attempt() else "WRONG ANSWER"
    except tc.ThermoclineError as error:
        return "sentence" if str(error).endswith(".") and "\n" not in str(error) else f"NO SENTENCE: {error}"
    except Exception as error:  # noqa: BLE001 - what the study looks for
        return f"{type(error).__name__.upper()}: {error}"


def study(num_tries: int, seed: int) -> int:
    """Prints a table, and returns how many tries were wrong."""
    executed().unlink(missing_ok=True)
    generator, counts, began = np.random.default_rng(seed), collections.Counter[tuple[str, str]](), time.monotonic()
    for _ in range(num_tries):
        counts[(damaged_run if generator.random() < 0.5 else damaged_file)(generator)] += 1
    for (what, ended), number in sorted(counts.items()):
        print(f"{what:26s} {ended[:200]:12s} {number:4d}")
    wrong = sum(number for (_, ended), number in counts.items() if ended not in ("right", "sentence"))
    wrong += executed().exists()
    print(f"{num_tries} tries, {wrong} wrong, {time.monotonic() - began:.0f} s; executed: {executed().exists()}")
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tries", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sys.exit(study(options.tries, options.seed) > 0)
