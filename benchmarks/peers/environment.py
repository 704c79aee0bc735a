"""A virtual environment for each peer, under build/peers: made when first asked for, and when its packages change."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "build" / "peers"


class NotInstalledError(RuntimeError):
    """What pip said when a peer could not be installed here."""


def python_of(environment: str, requirements: Sequence[str]) -> Path:
    """The interpreter of an environment that has these packages; installs them where it has not."""
    folder = FOLDER / "environments" / environment
    python, stamp, wanted = folder / "bin" / "python", folder / "requirements.txt", "\n".join(sorted(requirements))
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", *requirements]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip failed without a word"]
        raise NotInstalledError(f"{environment} cannot be installed here: {said[-1]}")
    stamp.write_text(wanted)
    return python
