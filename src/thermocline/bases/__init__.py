"""Bases: normalised densities that can be sampled exactly."""

from thermocline.bases.base import (
    Base,
    BaseFit,
    NormalisedDensity,
    centres_of,
    check_base,
    fresh_draws,
    initial_scale,
)
from thermocline.bases.gaussian import Gaussian
from thermocline.bases.mixture import Mixture

BASES: dict[str, type] = {"gaussian": Gaussian, "mixture": Mixture, "base": Base}

__all__ = [
    "BASES",
    "Base",
    "BaseFit",
    "Gaussian",
    "Mixture",
    "NormalisedDensity",
    "centres_of",
    "check_base",
    "fresh_draws",
    "initial_scale",
]
