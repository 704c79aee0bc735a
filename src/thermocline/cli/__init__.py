"""The `thermocline` command."""

from thermocline.cli.commands import app

__all__ = ["app"]
