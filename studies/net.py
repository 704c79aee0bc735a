"""The net: does every method still draw what it drew at another commit, on this machine?

python -m studies.net REF [--rounding]

Bit for bit; with --rounding, for a change of rounding alone, the first 20 draws to 1e-8. Not part of the test suite,
because bits depend on the processor and on jaxlib.
"""

import argparse
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
NUM_ALIKE, TOLERANCE = 20, 1e-8


def draws_at(commit: str) -> dict[str, np.ndarray]:
    """The draws of a commit's code, made once and kept."""
    script = (ROOT / "studies" / "net_draws.py").read_bytes()
    folder = ROOT / "build" / "net" / f"{commit}-{hashlib.sha256(script).hexdigest()[:8]}"
    if not (folder / "draws.npz").exists():
        folder.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
        make_draws(folder / "src", folder / "draws.npz")
    return read(folder / "draws.npz")


def make_draws(source: Path, out: Path) -> None:
    script = str(ROOT / "studies" / "net_draws.py")
    subprocess.run([sys.executable, script, str(out)], env={**os.environ, "PYTHONPATH": str(source)}, check=True)


def read(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def difference(old: dict[str, np.ndarray], new: dict[str, np.ndarray]) -> tuple[bool, float]:
    """Whether all fields of a method are the same bits, and how far its first draws are apart."""
    same = all(old[name].tobytes() == new[name].tobytes() for name in old)
    fields = [name for name in old if name in ("position", "inverse_temperature", "log_ratio")]
    first = (slice(None), slice(NUM_ALIKE))
    with np.errstate(invalid="ignore"):
        gaps = [np.abs(old[name][first] - new[name][first]) / (1 + np.abs(old[name][first])) for name in fields]
    return same, max(float(np.nanmax(gap)) for gap in gaps)


def by_method(arrays: dict[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    methods: dict[str, dict[str, np.ndarray]] = {}
    for name, leaf in arrays.items():
        method, field = name.split("/")
        methods.setdefault(method, {})[field] = leaf
    return methods


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ref")
    parser.add_argument("--rounding", action="store_true")
    options = parser.parse_args()
    words = ["git", "rev-parse", "--verify", f"{options.ref}^{{commit}}"]
    commit = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    old = by_method(draws_at(commit))
    present = ROOT / "build" / "net" / "present.npz"
    make_draws(ROOT / "src", present)
    new = by_method(read(present))
    torn = []
    for method in old:
        if method not in new or set(old[method]) != set(new[method]):
            print(f"{method:28s} gone, or with other fields")
            torn.append(method)
            continue
        same, gap = difference(old[method], new[method])
        holds = same or (options.rounding and gap < TOLERANCE)
        print(f"{method:28s} {'identical' if same else f'first {NUM_ALIKE} draws within {gap:.1e}'}")
        torn += [] if holds else [method]
    print(f"{len(old) - len(torn)} of {len(old)} hold" + (f"; torn: {', '.join(torn)}" if torn else ""))
    sys.exit(bool(torn))


if __name__ == "__main__":
    main()
