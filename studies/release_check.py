"""Does what is built install and work? `make release-check`, in environments made anew on every Python found here.

Wheel and sdist are built; then, on each Python and with the oldest and the newest dependencies that `pyproject.toml`
allows, the wheel is installed alone and its size taken, the extras `arviz` and `report` are added, and
`studies/smoke.py` runs. On the newest Python the sdist is installed too. Oldest is the oldest release that has a wheel
for that Python. The table is stored when all cases are known, and stands in docs/platforms.md; environments and rows
stay in build/release, so that `--built --only CASE` repeats one, or goes on.
"""

import argparse
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.version import Version

from studies.tables import REPOSITORY, store

BUILD = REPOSITORY / "build" / "release"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
TESTED_EXTRAS = ("arviz", "report")
SHOWN = ("jax", "numpy", "scipy", "blackjax", "arviz")


class Case(NamedTuple):
    """One environment: which Python, which end of the ranges, what is installed."""

    python: str
    end: str  # "oldest" or "newest"
    file: Path

    @property
    def name(self) -> str:
        return f"{self.python}-{self.end}-{self.kind}"

    @property
    def kind(self) -> str:
        return "wheel" if self.file.suffix == ".whl" else "sdist"

    @property
    def kept(self) -> Path:
        """The file of its row."""
        return BUILD / f"{self.name}.json"


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """What a command prints; its complaint, where it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode:
        raise RuntimeError("\n".join((done.stdout + done.stderr).strip().splitlines()[-8:]))
    return done.stdout


def pythons() -> dict[str, str]:
    """Every supported Python that starts here, on the path or among pyenv's."""
    found = {}
    for version in VERSIONS:
        kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        for candidate in (*map(str, kept[::-1]), shutil.which(f"python{version}") or ""):
            if candidate and runs(candidate):
                found.setdefault(version, candidate)
    return found


def runs(python: str) -> bool:
    """Whether it starts and can make environments: what is on the path may stand for a version that is not there."""
    return subprocess.run([python, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0


def environment(name: str, python: str) -> Path:
    """A new virtual environment; returns its Python."""
    folder = BUILD / name
    shutil.rmtree(folder, ignore_errors=True)
    run(python, "-m", "venv", folder)
    return folder / "bin" / "python"


def build(python: str) -> list[Path]:
    """The sdist, and the wheel made from it."""
    for old in (*BUILD.glob("*.json"), *BUILD.glob("dist/*")):
        old.unlink()
    tool = environment("tool", python)
    run(tool, "-m", "pip", "install", "--quiet", "build")
    run(tool, "-m", "build", "--outdir", BUILD / "dist", REPOSITORY)
    return sorted((BUILD / "dist").iterdir())


def requirements(extras: tuple[str, ...] = ()) -> list[Requirement]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    lines = project["dependencies"] + [line for extra in extras for line in project["optional-dependencies"][extra]]
    return [Requirement(line) for line in lines]


def oldest(python: Path, needed: list[Requirement]) -> list[str]:
    """Of each requirement the oldest release that is allowed and has a wheel."""
    pins = []
    for requirement in needed:
        told = run(python, "-m", "pip", "index", "versions", "--only-binary", ":all:", requirement.name)
        listed = re.search(r"Available versions: (.*)", told)
        assert listed is not None, told
        versions = [Version(text) for text in listed[1].split(", ")]
        pins.append(f"{requirement.name}=={min(each for each in versions if each in requirement.specifier)}")
    return pins


def megabytes(python: Path) -> int:
    """What the environment holds, without pip."""
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    files = [file for file in packages.rglob("*") if file.is_file() and not file.is_symlink()]
    mine = [file for file in files if not file.relative_to(packages).parts[0].startswith("pip")]
    return round(sum(file.stat().st_size for file in mine if file.suffix != ".pyc") / 1e6)


def check(case: Case, interpreter: str) -> list[str]:
    """Install, weigh, add the extras, and try: one row of the table."""
    python = environment(case.name, interpreter)
    pins = oldest(python, requirements(TESTED_EXTRAS)) if case.end == "oldest" else []
    names = {requirement.name for requirement in requirements()}
    install = (python, "-m", "pip", "install", "--quiet", "--no-compile")
    try:
        run(*install, case.file, *(pin for pin in pins if pin.split("==")[0] in names))
        size = megabytes(python)
        run(*install, f"{case.file}[{','.join(TESTED_EXTRAS)}]", *pins)
        shutil.copy(REPOSITORY / "studies" / "smoke.py", BUILD / "smoke.py")
        said = run(python, BUILD / "smoke.py", cwd=BUILD)
    except RuntimeError as error:
        print(f"{case.name}: {error}")
        return [case.python, case.end, case.kind, *[""] * len(SHOWN), "", "fails"]
    versions = dict(part.split(" ", 1) for part in said.strip().splitlines()[-1].split("; "))
    return [case.python, case.end, case.kind, *(versions[name] for name in SHOWN), f"{size}", "works"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="the cases whose names contain this")
    parser.add_argument("--built", action="store_true", help="take what was built before")
    options = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    found = pythons()
    newest = list(found)[-1]
    sdist, wheel = (sorted((BUILD / "dist").iterdir()) if options.built else build(found[newest]))[::-1]
    cases = [Case(version, end, wheel) for version in found for end in ("oldest", "newest")]
    cases.append(Case(newest, "newest", sdist))
    for case in cases:
        if options.only in case.name:
            row = check(case, found[case.python])
            case.kept.write_text(json.dumps(row))
            print(" | ".join(row), flush=True)
    rows = [json.loads(case.kept.read_text()) for case in cases if case.kept.exists()]
    if len(rows) == len(cases):
        store("release", "make release-check", ["Python", "dependencies", "from", *SHOWN, "MB", ""], rows)
    if any(row[-1] != "works" for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
