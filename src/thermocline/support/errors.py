"""The library's own exceptions and warnings."""


class ThermoclineError(ValueError):
    """The input cannot be sampled as given; the message says why and what to change."""


class CheckpointError(ThermoclineError):
    """A checkpoint is damaged, or belongs to another run."""


class ThermoclineWarning(UserWarning):
    """Results may be unreliable; the message names what was noticed."""
