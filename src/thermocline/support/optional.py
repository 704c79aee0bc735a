"""Optional packages: named, with the command that installs them, when they are missing."""

from importlib import import_module

from thermocline.support.errors import ThermoclineError


def require(extra: str, what: str, *packages: str) -> None:
    """Raise with the remedy unless all of an extra's `packages` can be imported."""
    for package in packages:
        try:
            import_module(package)
        except ImportError as error:
            raise ThermoclineError(
                f"{what} needs {package}, which is not installed: pip install 'thermocline[{extra}]'."
            ) from error
