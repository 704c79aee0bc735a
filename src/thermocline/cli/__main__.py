"""`python -m thermocline.cli`: the same command."""

from thermocline.cli.commands import app

app()
