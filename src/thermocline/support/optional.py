"""Optional packages: named, with the command that installs them, when they are missing."""

from importlib import import_module
from typing import Any

from thermocline.support.errors import ThermoclineError


def require(extra: str, *packages: str) -> Any:
    """The first of an extra's `packages`; raises with the remedy unless all of them can be imported."""
    for package in packages:
        try:
            import_module(package)
        except ImportError as error:
            remedy = f"run `pip install 'thermocline[{extra}]'`."
            raise ThermoclineError(f"{package} is not installed ({error}); {remedy}") from None
    return import_module(packages[0])
