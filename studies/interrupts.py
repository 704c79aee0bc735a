"""Ctrl-C and SIGTERM at random moments: how calls and commands end, and whether what they kept goes on.

Of every try: the exit status, how long it took to end and what it said. A try is right if it ends as a shell expects
(130, or 143 by SIGTERM), never by signal 11, with one sentence and no frames of JAX; one that had finished is right
with 0. Tries with a checkpoint share a folder, which is gone on with at the end: the answer must be the straight run's.

    python -m studies.interrupts [--tries 50] [--seed 0] [--warm]
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

MODEL = """
import jax.numpy as jnp, numpy as np, thermocline as tc

def log_density(position):
    return -0.5 * jnp.sum(position["x"] ** 2) - jnp.sum(jnp.cos(2 * position["x"]))

target = tc.Target(log_density, {"x": np.zeros(3)})
"""
CALL = "import sys; from model import *; print('begun', file=sys.stderr, flush=True)\n"
CALL += "print(tc.sample(target, num_draws=4000, progress=False, checkpoint={folder}).log_evidence)"
WORDS = ["run", "model.py:target", "--num-draws", "4000", "--no-progress", "--json"]


class Kind(NamedTuple):
    """What is run, with which signal it is ended, and whether it has a checkpoint."""

    is_command: bool
    number: signal.Signals
    folder: str | None

    def words(self) -> list[str]:
        if self.is_command:
            kept = [] if self.folder is None else ["--checkpoint", self.folder]
            return ["-c", "import sys; from thermocline.cli import app; print('begun', file=sys.stderr, flush=True)\n"
                    "sys.argv[0] = 'thermocline'; app()", *WORDS, *kept]
        return ["-c", CALL.format(folder=repr(self.folder))]

    def __str__(self) -> str:
        what = "command" if self.is_command else "call"
        return f"{what}, {self.number.name}{'' if self.folder is None else ', checkpoint'}"


KINDS = [
    *(Kind(True, number, folder) for number in (signal.SIGINT, signal.SIGTERM) for folder in (None, "command")),
    *(Kind(False, signal.SIGINT, folder) for folder in (None, "call")),
]


class Ended(NamedTuple):
    """How a try ended: its status as a shell has it, seconds from the signal, and what it said."""

    status: int
    seconds: float
    out: str
    said: list[str]


def tried(kind: Kind, place: Path, delay: float | None, *, is_warm: bool) -> Ended:
    """One run; the signal comes some time after what it needs is imported."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    if is_warm:
        environment |= {"JAX_COMPILATION_CACHE_DIR": str(place / "programs")}
        environment |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, *kind.words()], cwd=place, env=environment, stdout=pipe, stderr=pipe, text=True
    )
    assert process.stderr is not None
    process.stderr.readline()
    if delay is not None:
        time.sleep(delay)
        process.send_signal(kind.number)
    began = time.monotonic()
    out, said = process.communicate()
    status = 128 - process.returncode if process.returncode < 0 else process.returncode
    return Ended(status, time.monotonic() - began, out, said.splitlines())


def faults(kind: Kind, ended: Ended) -> list[str]:
    """What is wrong with how a try ended."""
    if ended.status == 0:
        return []
    found = [f"status {ended.status}"] if ended.status != 128 + kind.number else []
    if ended.out:
        found.append("something half-made")
    if any("/jax/" in line or "site-packages" in line for line in ended.said):
        found.append("frames of libraries")
    last = ended.said[-1] if ended.said else ""
    if not (kind.is_command or last.startswith("KeyboardInterrupt: interrupted")):
        found.append(f"said {last!r}")
    if kind.is_command and (any("Traceback" in line for line in ended.said) or not ended.said):
        found.append(f"said {last!r}")
    return found


def study(num_tries: int, seed: int, *, is_warm: bool, kinds: list[Kind] = KINDS) -> int:
    """Prints every try, and returns how many were wrong."""
    generator, wrong = random.Random(seed), 0
    with TemporaryDirectory() as name:
        place = Path(name)
        (place / "model.py").write_text(MODEL)
        straight = tried(kinds[0]._replace(folder=None), place, None, is_warm=is_warm)
        print(f"a straight run takes {straight.seconds:.1f} s", flush=True)
        for index in range(num_tries):
            kind, delay = kinds[index % len(kinds)], generator.uniform(0, straight.seconds)
            ended = tried(kind, place, delay, is_warm=is_warm)
            found = faults(kind, ended)
            wrong += bool(found)
            print(
                f"{index:3d}  {kind!s:30s}  after {delay:5.2f} s: status {ended.status}, {ended.seconds:4.1f} s, "
                f"{len(ended.said)} lines  {'; '.join(found)}",
                flush=True,
            )
        wrong += _resumed(kinds, place, is_warm)
    print(f"{num_tries} tries, {wrong} wrong")
    return wrong


def _resumed(kinds: list[Kind], place: Path, is_warm: bool) -> int:
    """Checkpoints that are gone on with, whose answer is not that of a straight run."""
    wrong = 0
    for kind in {kind.folder: kind for kind in kinds if kind.folder is not None}.values():
        resumed = tried(kind, place, None, is_warm=is_warm)
        straight = tried(kind._replace(folder=None), place, None, is_warm=is_warm)
        same = _answer(resumed) == _answer(straight) and resumed.status == 0
        print(f"{kind} gone on with: {'the answer of a straight run' if same else 'ANOTHER ANSWER'}")
        wrong += not same
    return wrong


def _answer(ended: Ended) -> str:
    """The evidence, in what was printed."""
    return ended.out.split('"log_evidence"')[-1].split("}")[0]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tries", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--warm", action="store_true", help="with compiled programs kept, so that tries are short")
    options = parser.parse_args()
    sys.exit(study(options.tries, options.seed, is_warm=options.warm) > 0)
